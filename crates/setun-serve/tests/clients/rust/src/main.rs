//! The client `async-openai` against `setun serve`: every answer and event is read into its types.

mod given;

use anyhow::{Context, Result, ensure};
use async_openai::{
    Client,
    config::OpenAIConfig,
    error::OpenAIError,
    types::{
        chat::{
            ChatCompletionMessageToolCalls, CompletionFinishReason, CreateChatCompletionResponse,
            CreateChatCompletionStreamResponse, FinishReason,
        },
        completions::CreateCompletionResponse,
        embeddings::CreateEmbeddingResponse,
    },
};
use futures::{Stream, TryStreamExt};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::given::Given;

type Streamed<T> = std::pin::Pin<Box<dyn Stream<Item = Result<T, OpenAIError>> + Send>>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let mut given = Given::read(std::env::args().skip(1))?;
    println!("async-openai: {} draws, {} calls, --seed {}", given.draws, given.calls, given.seed);
    let config = OpenAIConfig::new().with_api_base(format!("{}/v1", given.base_url));
    let client = Client::with_config(config.with_api_key("none"));
    completions(&mut given, &client).await?;
    embeddings(&given, &client).await?;
    refusals(&client).await?;
    let mut passed = 3;
    if given.folder.is_some() {
        chats(&mut given, &client).await?;
        tools(&mut given, &client).await?;
        passed += 2;
    }
    println!("# pass {passed}");
    Ok(())
}

async fn completions(given: &mut Given, client: &Client<OpenAIConfig>) -> Result<()> {
    for _ in 0..given.draws {
        let request = given.draw();
        let (text, reason) = given.run(&request)?;
        let mut body = request.options.clone();
        body.extend(fields(json!({"model": given.model, "prompt": request.prompt})));
        let whole: CreateCompletionResponse = client.completions().create_byot(&body).await?;
        let choice = &whole.choices[0];
        ensure!(choice.text == text, "{request:?}: {choice:?} and {text:?}");
        let is_stop = choice.finish_reason == Some(CompletionFinishReason::Stop);
        ensure!(is_stop == (reason == "stop"), "{request:?}: {choice:?} and {reason}");
        body.insert("stream".to_owned(), json!(true));
        let stream: Streamed<CreateCompletionResponse> =
            client.completions().create_stream_byot(&body).await?;
        let chunks: Vec<_> = stream.try_collect().await?;
        let streamed: String = chunks.iter().map(|it| it.choices[0].text.as_str()).collect();
        ensure!(streamed == text, "{request:?}: {streamed:?} and {text:?}");
    }
    Ok(())
}

async fn embeddings(given: &Given, client: &Client<OpenAIConfig>) -> Result<()> {
    let body = json!({"model": given.model, "input": ["A cat", "a dog"]});
    let answer: CreateEmbeddingResponse = client.embeddings().create_byot(body).await?;
    let sizes: Vec<usize> = answer.data.iter().map(|it| it.embedding.len()).collect();
    ensure!(sizes.len() == 2 && sizes[0] > 1 && sizes[0] == sizes[1], "{sizes:?}");
    Ok(())
}

async fn refusals(client: &Client<OpenAIConfig>) -> Result<()> {
    let body = json!({"model": "absent", "prompt": "a"});
    let answer: Result<CreateCompletionResponse, _> = client.completions().create_byot(body).await;
    let Err(OpenAIError::ApiError(error)) = answer else {
        anyhow::bail!("there is no such model: {answer:?}")
    };
    ensure!(error.api_error.code.as_deref() == Some("model_not_found"), "{error:?}");
    Ok(())
}

async fn chats(given: &mut Given, client: &Client<OpenAIConfig>) -> Result<()> {
    for _ in 0..given.draws {
        let request = given.draw();
        let text = given.chat(&request)?;
        let mut body = request.options.clone();
        let messages = json!([{"role": "user", "content": request.prompt}]);
        body.extend(fields(json!({"model": given.model, "messages": messages})));
        let whole: CreateChatCompletionResponse = client.chat().create_byot(&body).await?;
        let content = whole.choices[0].message.content.as_deref();
        ensure!(content == Some(&text), "{request:?}: {content:?} and {text:?}");
        body.extend(fields(json!({"stream": true, "stream_options": {"include_usage": true}})));
        let stream: Streamed<CreateChatCompletionStreamResponse> =
            client.chat().create_stream_byot(&body).await?;
        let chunks: Vec<_> = stream.try_collect().await?;
        let deltas = chunks.iter().flat_map(|chunk| &chunk.choices);
        let streamed: String = deltas.filter_map(|it| it.delta.content.as_deref()).collect();
        ensure!(streamed == text, "{request:?}: {streamed:?} and {text:?}");
        let usage = chunks.last().and_then(|chunk| chunk.usage.as_ref()).context("the usage")?;
        let tokens = whole.usage.as_ref().map(|usage| usage.completion_tokens);
        ensure!(tokens == Some(usage.completion_tokens), "{tokens:?} and {usage:?}");
    }
    Ok(())
}

/// The arguments of the tool; what else there is would be an error.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Weather {
    city: City,
    days: u64,
    is_hot: bool,
    notes: Vec<City>,
}

#[derive(Debug, Deserialize, Serialize)]
enum City {
    Oslo,
    #[serde(rename = "a \"b\"")]
    Quoted,
}

/// Each call is read, and the model gets its result; every other one is streamed.
async fn tools(given: &mut Given, client: &Client<OpenAIConfig>) -> Result<()> {
    for index in 0..given.calls {
        let (days, seed) = (1 + given.below(5000), given.below(1 << 31));
        let city = json!({"enum": ["Oslo", "a \"b\""]});
        let parameters = json!({
            "type": "object",
            "properties": {
                "city": city,
                "days": {"type": "integer", "minimum": 1, "maximum": days},
                "is_hot": {"type": "boolean"},
                "notes": {"type": "array", "items": city, "maxItems": 2},
            },
            "required": ["city", "days", "is_hot", "notes"],
            "additionalProperties": false,
        });
        let mut messages = vec![json!({"role": "user", "content": "Rain?"})];
        let body = fields(json!({
            "model": given.model, "temperature": 1, "seed": seed, "parallel_tool_calls": false,
            "tools": [{"type": "function", "function": {"name": "weather", "parameters": parameters}}],
        }));
        let mut asked = body.clone();
        asked.extend(fields(
            json!({"messages": messages, "max_tokens": 1000, "tool_choice": "required"}),
        ));
        let (id, arguments) = match index % 2 {
            0 => whole_call(client, &asked).await,
            _ => streamed_call(client, &mut asked).await,
        }
        .with_context(|| format!("seed {seed}"))?;
        let weather: Weather = serde_json::from_str(&arguments).context(arguments.clone())?;
        ensure!((1..=days).contains(&weather.days) && weather.notes.len() <= 2, "{weather:?}");
        ensure!(serde_json::to_value(&weather)? == serde_json::from_str::<Value>(&arguments)?);
        let function = json!({"name": "weather", "arguments": arguments});
        let call = json!({"id": id, "type": "function", "function": function});
        messages.push(json!({"role": "assistant", "tool_calls": [call]}));
        messages.push(json!({"role": "tool", "tool_call_id": id, "content": "sunny"}));
        let mut asked = body;
        asked.extend(fields(json!({"messages": messages, "max_tokens": 4, "tool_choice": "none"})));
        let answer: CreateChatCompletionResponse = client.chat().create_byot(&asked).await?;
        ensure!(answer.choices[0].message.content.is_some(), "{answer:?}");
    }
    Ok(())
}

/// The id and the arguments of a call.
async fn whole_call(
    client: &Client<OpenAIConfig>,
    asked: &Map<String, Value>,
) -> Result<(String, String)> {
    let answer: CreateChatCompletionResponse = client.chat().create_byot(asked).await?;
    let choice = &answer.choices[0];
    ensure!(choice.finish_reason == Some(FinishReason::ToolCalls), "{choice:?}");
    let calls = choice.message.tool_calls.as_deref().unwrap_or_default();
    let [ChatCompletionMessageToolCalls::Function(call)] = calls else {
        anyhow::bail!("{choice:?}")
    };
    Ok((call.id.clone(), call.function.arguments.clone()))
}

async fn streamed_call(
    client: &Client<OpenAIConfig>,
    asked: &mut Map<String, Value>,
) -> Result<(String, String)> {
    asked.insert("stream".to_owned(), json!(true));
    let stream: Streamed<CreateChatCompletionStreamResponse> =
        client.chat().create_stream_byot(&*asked).await?;
    let chunks: Vec<_> = stream.try_collect().await?;
    let choices = || chunks.iter().flat_map(|chunk| &chunk.choices);
    let reason = choices().find_map(|choice| choice.finish_reason);
    ensure!(reason == Some(FinishReason::ToolCalls), "{reason:?}");
    let calls = || choices().flat_map(|choice| choice.delta.tool_calls.iter().flatten());
    let id = calls().find_map(|call| call.id.clone()).context("an id")?;
    let functions = calls().filter_map(|call| call.function.as_ref());
    let arguments = functions.filter_map(|function| function.arguments.as_deref()).collect();
    Ok((id, arguments))
}

fn fields(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}
