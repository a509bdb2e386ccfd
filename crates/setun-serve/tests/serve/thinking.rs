//! Reasoning apart from the answer, in each API.

use std::sync::LazyLock;

use axum::Router;
use serde_json::{Value, json};
use setun::{Completion, Engine, GenerateOptions, Message, ReasoningEffort};
use setun_serve::{ServeOptions, router};

use crate::support::{engine_with, post, with};

/// Opens the reasoning of each answer. Histories have theirs.
const TEMPLATE: &str = "{{ reasoning_effort or '' }}{% for m in messages %}{{ m.role }}: \
    {% if m.reasoning_content and preserve_thinking is not false %}<think>{{ m.reasoning_content }}</think>{% endif %}\
    {{ m.content }}\n{% endfor %}{% if add_generation_prompt %}assistant: \
    {{ '<think></think>' if enable_thinking is false else '<think>' }}{% endif %}";

const CHAT: &str = "/v1/chat/completions";
const RESPONSES: &str = "/v1/responses";
const MESSAGES: &str = "/v1/messages";
const OLLAMA: &str = "/api/chat";
const ALL: [&str; 4] = [CHAT, RESPONSES, MESSAGES, OLLAMA];

fn thinking() -> (Engine, Router) {
    static ENGINE: LazyLock<Engine> = LazyLock::new(|| engine_with(TEMPLATE, |_| {}));
    (ENGINE.clone(), router(ENGINE.clone(), ServeOptions::new()))
}

fn options() -> GenerateOptions {
    GenerateOptions::new().temperature(0.9).seed(11).max_tokens(40)
}

/// A request of an API with these options.
fn request(path: &str, messages: &Value) -> Value {
    match path {
        RESPONSES => {
            json!({"input": messages, "temperature": 0.9, "seed": 11, "max_output_tokens": 40})
        }
        OLLAMA => json!({"messages": messages, "stream": false,
            "options": {"temperature": 0.9, "seed": 11, "num_predict": 40}}),
        _ => json!({"messages": messages, "temperature": 0.9, "seed": 11, "max_tokens": 40}),
    }
}

/// Adds an option of setun's own.
fn limited(path: &str, request: &Value, budget: usize) -> Value {
    let given = json!({"max_thinking_tokens": budget});
    match path {
        OLLAMA => with(request, &json!({"options": with(&request["options"], &given)})),
        MESSAGES => {
            let thinking = json!({"type": "enabled", "budget_tokens": budget});
            with(request, &json!({"thinking": thinking}))
        }
        _ => with(request, &given),
    }
}

/// Reasoning, text and the tokens of the reasoning, where the API counts them.
fn parts(path: &str, answer: &Value) -> (String, String, Option<u64>) {
    let of = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let items = |list: &Value, kind: &str, field: &str| -> String {
        let list = list.as_array().expect("a list").iter().filter(|item| item["type"] == kind);
        list.map(|item| of(item.pointer(field).unwrap_or(&Value::Null))).collect()
    };
    match path {
        CHAT => {
            let message = &answer["choices"][0]["message"];
            assert_eq!(message.get("reasoning"), message.get("reasoning_content"));
            let tokens = &answer["usage"]["completion_tokens_details"]["reasoning_tokens"];
            (of(&message["reasoning"]), of(&message["content"]), tokens.as_u64())
        }
        RESPONSES => {
            let output = &answer["output"];
            let tokens = &answer["usage"]["output_tokens_details"]["reasoning_tokens"];
            let reasoning = items(output, "reasoning", "/content/0/text");
            (reasoning, items(output, "message", "/content/0/text"), tokens.as_u64())
        }
        MESSAGES => {
            let blocks = &answer["content"];
            (items(blocks, "thinking", "/thinking"), items(blocks, "text", "/text"), None)
        }
        _ => (of(&answer["message"]["thinking"]), of(&answer["message"]["content"]), None),
    }
}

/// The same of a stream.
fn streamed(path: &str, text: &str) -> (String, String) {
    let data = text.lines().filter_map(|line| line.strip_prefix("data: ").or(Some(line)));
    let events = data.filter_map(|data| serde_json::from_str::<Value>(data).ok());
    let (mut reasoning, mut answer) = (String::new(), String::new());
    for event in events {
        let kind = event["type"].as_str().unwrap_or_default().to_owned();
        let delta = &event["delta"];
        let (thought, said) = match path {
            CHAT => {
                let delta = &event["choices"][0]["delta"];
                (&delta["reasoning_content"], &delta["content"])
            }
            RESPONSES if kind == "response.reasoning_text.delta" => (delta, &Value::Null),
            RESPONSES if kind == "response.output_text.delta" => (&Value::Null, delta),
            MESSAGES => (&delta["thinking"], &delta["text"]),
            OLLAMA => (&event["message"]["thinking"], &event["message"]["content"]),
            _ => continue,
        };
        reasoning += thought.as_str().unwrap_or_default();
        answer += said.as_str().unwrap_or_default();
    }
    (reasoning, answer)
}

fn ask(engine: &Engine, options: GenerateOptions) -> Completion {
    let messages = vec![Message::user("A cat sat.")];
    engine.chat(messages, options).expect("a stream").wait().expect("an answer")
}

#[tokio::test]
async fn every_api_has_reasoning_apart_whole_and_streamed() {
    let (engine, router) = thinking();
    let messages = json!([{"role": "user", "content": "A cat sat."}]);
    for budget in [0, 1, 7, 50] {
        // The budget of Anthropic's API says that the model is to think, even if it is 0.
        for path in ALL {
            let own = options().max_thinking_tokens(budget);
            let own = if path == MESSAGES { own.enable_thinking(true) } else { own };
            let expected = ask(&engine, own);
            let tokens = expected.done.usage.reasoning_tokens;
            assert!(
                tokens <= budget && (budget == 50 || !expected.text.is_empty()),
                "{expected:?}"
            );
            let request = limited(path, &request(path, &messages), budget);
            let whole = post(&router, path, &request).await.json();
            let (reasoning, text, counted) = parts(path, &whole);
            assert_eq!((&reasoning, &text), (&expected.reasoning, &expected.text), "{path}");
            assert!(counted.is_none_or(|counted| counted == tokens as u64), "{whole}");
            let answer = post(&router, path, &with(&request, &json!({"stream": true}))).await;
            assert_eq!(streamed(path, &answer.text), (reasoning, text), "{path}: {}", answer.text);
        }
    }
    let expected = ask(&engine, options().max_thinking_tokens(7));
    assert!(!expected.reasoning.is_empty(), "it thinks");
    let body = json!({"prompt": "A cat sat.", "stream": false,
        "options": {"temperature": 0.9, "seed": 11, "num_predict": 40, "max_thinking_tokens": 7}});
    let answer = post(&router, "/api/generate", &body).await.json();
    assert_eq!(answer["thinking"], expected.reasoning);
    assert_eq!(answer["response"], expected.text);
}

#[tokio::test]
async fn every_api_turns_thinking_off_and_says_how_much() {
    let (engine, router) = thinking();
    let messages = json!([{"role": "user", "content": "A cat sat."}]);
    let off = ask(&engine, options().enable_thinking(false));
    assert_eq!(off.reasoning, "");
    let low = ask(&engine, options().reasoning_effort(ReasoningEffort::Low));
    assert_ne!(low.done.usage.prompt_tokens, off.done.usage.prompt_tokens);
    for (path, more, expected) in [
        (CHAT, json!({"reasoning_effort": "none"}), &off),
        (CHAT, json!({"enable_thinking": false}), &off),
        (CHAT, json!({"chat_template_kwargs": {"enable_thinking": false}}), &off),
        (CHAT, json!({"reasoning_effort": "low"}), &low),
        (RESPONSES, json!({"reasoning": {"effort": "none", "summary": "auto"}}), &off),
        (RESPONSES, json!({"reasoning": {"effort": "low"}}), &low),
        (MESSAGES, json!({"thinking": {"type": "disabled"}}), &off),
        (OLLAMA, json!({"think": false}), &off),
        (OLLAMA, json!({"think": "low"}), &low),
    ] {
        let answer = post(&router, path, &with(&request(path, &messages), &more)).await.json();
        let (reasoning, text, _) = parts(path, &answer);
        assert_eq!((&reasoning, &text), (&expected.reasoning, &expected.text), "{path} {more}");
        if path == RESPONSES {
            assert_eq!(answer["reasoning"]["effort"], more["reasoning"]["effort"]);
        }
    }
    for (path, more, words) in [
        (CHAT, json!({"reasoning_effort": "much"}), "reasoning_effort: expected one of none"),
        (RESPONSES, json!({"reasoning": {"effort": "much"}}), "reasoning.effort: expected one of"),
        (MESSAGES, json!({"thinking": {"type": "on"}}), "thinking.type: expected enabled"),
        (CHAT, json!({"max_thinking_tokens": -1}), "max_thinking_tokens: expected"),
    ] {
        let answer = post(&router, path, &with(&request(path, &messages), &more)).await;
        assert_eq!(answer.status, 400, "{path} {more}");
        assert!(answer.text.contains(words), "{}", answer.text);
    }
}

#[tokio::test]
async fn histories_give_their_reasoning_to_the_template() {
    let (engine, router) = thinking();
    let question = |text| json!({"role": "user", "content": text});
    let messages = |answer: Value| json!([question("A cat sat."), answer, question("Why?")]);
    let answer = |more: Value| with(&json!({"role": "assistant", "content": "Yes."}), &more);
    let own = vec![
        Message::user("A cat sat."),
        Message::assistant("Yes.").with_reasoning("It did."),
        Message::user("Why?"),
    ];
    let expected = engine.count_tokens(own.clone(), &GenerateOptions::new()).expect("a count");
    let thought = json!({"type": "thinking", "thinking": "It did.", "signature": ""});
    let blocks = json!([thought, {"type": "text", "text": "Yes."}]);
    let item = json!({"type": "reasoning", "id": "rs_1", "summary": [],
        "content": [{"type": "reasoning_text", "text": "It did."}]});
    let items = json!([question("A cat sat."), item, answer(json!({})), question("Why?")]);
    for (path, messages, tokens) in [
        (CHAT, messages(answer(json!({"reasoning_content": "It did."}))), "/usage/prompt_tokens"),
        (CHAT, messages(answer(json!({"reasoning": "It did."}))), "/usage/prompt_tokens"),
        (RESPONSES, items, "/usage/input_tokens"),
        (OLLAMA, messages(answer(json!({"thinking": "It did."}))), "/prompt_eval_count"),
    ] {
        let answer = post(&router, path, &request(path, &messages)).await.json();
        assert_eq!(answer.pointer(tokens), Some(&json!(expected)), "{path}");
    }
    let dropped = GenerateOptions::new().preserve_thinking(false);
    let dropped = engine.count_tokens(own, &dropped).expect("a count");
    assert!(dropped < expected);
    let thought = messages(answer(json!({"reasoning_content": "It did."})));
    for more in [
        json!({"preserve_thinking": false}),
        json!({"preserve_thinking": true, "chat_template_kwargs": {"preserve_thinking": false}}),
    ] {
        let answer = post(&router, CHAT, &with(&request(CHAT, &thought), &more)).await.json();
        assert_eq!(answer["usage"]["prompt_tokens"], dropped, "{more}");
    }
    let messages = messages(json!({"role": "assistant", "content": blocks}));
    let count = post(&router, "/v1/messages/count_tokens", &json!({"messages": messages})).await;
    assert_eq!(count.json()["input_tokens"], expected);
}

#[tokio::test]
async fn completions_and_formats_know_nothing_of_reasoning() {
    let (_, router) = thinking();
    let schema = json!({"type": "object", "properties": {"a": {"enum": ["b"]}},
        "required": ["a"], "additionalProperties": false});
    let format = json!({"type": "json_schema", "json_schema": {"name": "n", "schema": schema}});
    let messages = json!([{"role": "user", "content": "A cat sat."}]);
    let request = with(&request(CHAT, &messages), &json!({"max_tokens": 100}));
    let request = with(&request, &json!({"response_format": format, "max_thinking_tokens": 5}));
    let answer = post(&router, CHAT, &request).await.json();
    let (reasoning, text, tokens) = parts(CHAT, &answer);
    assert_eq!(serde_json::from_str::<Value>(&text).expect("JSON"), json!({"a": "b"}));
    assert!(!reasoning.is_empty() && tokens == Some(5), "{answer}");
    let request = json!({"prompt": "<think>", "max_tokens": 9, "temperature": 0});
    let answer = post(&router, "/v1/completions", &request).await.json();
    assert_ne!(answer["choices"][0]["text"], "", "a text is continued as it is");
}
