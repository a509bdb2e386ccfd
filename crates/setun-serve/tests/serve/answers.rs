//! Answers against the engine's own, whole and streamed.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use setun::{Completion, GenerateOptions, Message, Pooling, Prompt};

use crate::support::{MODEL, get, post, shared, shared_router, with};

const PROMPT: &str = "Once upon a time";

/// Options of a text that is drawn, as a request has them.
fn drawn() -> Value {
    json!({"model": MODEL, "max_tokens": 24, "temperature": 0.9, "seed": 11, "top_k": 50})
}

/// The same for the engine.
fn options() -> GenerateOptions {
    GenerateOptions::new().max_tokens(24).temperature(0.9).seed(11).top_k(50)
}

fn expected(prompt: impl Into<Prompt>, options: GenerateOptions, n: usize) -> Vec<Completion> {
    let streams = shared().generate_many(prompt, options, n).expect("streams");
    streams.into_iter().map(|stream| stream.wait().expect("a text")).collect()
}

/// The texts of choices, whose pieces are joined by their index.
fn joined(chunks: &[Value], count: usize, text: impl Fn(&Value) -> Option<&str>) -> Vec<String> {
    let mut texts = vec![String::new(); count];
    for choice in chunks.iter().flat_map(|chunk| chunk["choices"].as_array().expect("choices")) {
        let index = choice["index"].as_u64().expect("an index");
        texts[usize::try_from(index).expect("small")].extend(text(choice));
    }
    texts
}

/// The usage of a prompt's choices, with those that were found in the cache left out.
fn usage(completions: &[Completion]) -> Value {
    let prompt = completions[0].done.usage.prompt_tokens;
    let text: usize = completions.iter().map(|text| text.done.usage.completion_tokens).sum();
    json!({"prompt_tokens": prompt, "completion_tokens": text, "total_tokens": prompt + text})
}

fn without_details(mut usage: Value) -> Value {
    for (field, count) in [
        ("prompt_tokens_details", "cached_tokens"),
        ("completion_tokens_details", "reasoning_tokens"),
    ] {
        let details = usage.as_object_mut().expect("usage").shift_remove(field);
        assert!(details.expect("details")[count].is_u64());
    }
    usage
}

#[tokio::test]
async fn chats_are_the_engines_whole_and_streamed() {
    let (router, path) = (shared_router(), "/v1/chat/completions");
    let messages = json!([
        {"role": "developer", "content": "You are a dog."},
        {"role": "user", "content": [{"type": "text", "text": "A cat sat."}], "name": null},
    ]);
    let request = with(&drawn(), &json!({"messages": messages, "n": 2, "unknown": {"a": 1}}));
    let own = vec![Message::system("You are a dog."), Message::user("A cat sat.")];
    let expected = expected(own, options(), 2);
    assert_ne!(expected[0].text, expected[1].text, "two draws");
    let whole = post(&router, path, &request).await.json();
    assert_eq!(whole["object"], "chat.completion");
    assert_eq!(without_details(whole["usage"].clone()), usage(&expected));
    for (choice, expected) in whole["choices"].as_array().expect("choices").iter().zip(&expected) {
        assert_eq!(choice["message"]["content"], *expected.text);
        assert_eq!(choice["finish_reason"], expected.done.finish_reason.as_str());
    }
    let more = json!({"stream": true, "stream_options": {"include_usage": true}});
    let chunks = post(&router, path, &with(&request, &more)).await.chunks();
    let texts = joined(&chunks, 2, |choice| choice["delta"]["content"].as_str());
    assert_eq!(texts, [&*expected[0].text, &*expected[1].text]);
    let last = chunks.last().expect("a chunk");
    assert_eq!(last["choices"], json!([]));
    assert_eq!(without_details(last["usage"].clone()), usage(&expected));
}

#[tokio::test]
async fn completions_are_the_engines_for_texts_tokens_and_lists() {
    let (router, path) = (shared_router(), "/v1/completions");
    let tokens = shared().tokenize(PROMPT).expect("tokens");
    let one = expected(PROMPT, options(), 1);
    let both = json!([tokens, [1, 5, 7]]);
    for (prompt, own) in [
        (json!(PROMPT), vec![Prompt::from(PROMPT)]),
        (json!(tokens), vec![Prompt::from(PROMPT)]),
        (json!([PROMPT, "A dog"]), vec![Prompt::from(PROMPT), Prompt::from("A dog")]),
        (both, vec![Prompt::from(PROMPT), Prompt::from(vec![1, 5, 7])]),
    ] {
        let request = with(&drawn(), &json!({"prompt": prompt}));
        let whole = post(&router, path, &request).await.json();
        let texts = joined(std::slice::from_ref(&whole), own.len(), |one| one["text"].as_str());
        let own = own.into_iter().map(|prompt| expected(prompt, options(), 1)[0].text.clone());
        assert_eq!(texts, own.collect::<Vec<_>>(), "{prompt}");
        assert_eq!(texts[0], one[0].text);
        let streamed = post(&router, path, &with(&request, &json!({"stream": true}))).await;
        let chunks = streamed.chunks();
        assert_eq!(joined(&chunks, texts.len(), |one| one["text"].as_str()), texts);
        assert!(chunks[0].get("usage").is_none(), "it was not requested");
    }
}

/// No tokens after a prompt: as scores of texts are asked for.
#[tokio::test]
async fn a_prompt_alone_has_the_log_probabilities_that_it_has_before_a_text() {
    let (router, path) = (shared_router(), "/v1/completions");
    let tokenized = async |adds: bool| {
        let body = json!({"prompt": PROMPT, "add_special_tokens": adds});
        post(&router, "/tokenize", &body).await.json()["tokens"].clone()
    };
    let (with_first, plain) = (tokenized(true).await, tokenized(false).await);
    assert_eq!(with_first.as_array().expect("tokens")[1..], plain.as_array().expect("tokens")[..]);
    let base = json!({"echo": true, "logprobs": 1, "n": 2});
    for (prompt, tokens, adds) in [(json!(PROMPT), with_first, true), (json!(PROMPT), plain, false)]
    {
        let request = with(&base, &json!({"prompt": prompt, "add_special_tokens": adds}));
        let longer = post(&router, path, &with(&request, &json!({"max_tokens": 1}))).await.json();
        let none = with(&request, &json!({"max_tokens": 0}));
        let whole = post(&router, path, &none).await.json();
        let count = tokens.as_array().expect("tokens").len();
        let usage = json!({"prompt_tokens": count, "completion_tokens": 0, "total_tokens": count});
        assert_eq!(without_details(whole["usage"].clone()), usage);
        let choices = whole["choices"].as_array().expect("choices");
        assert_eq!(choices.len(), 2);
        for choice in choices {
            assert_eq!((&choice["text"], &choice["finish_reason"]), (&prompt, &json!("length")));
            for (list, values) in longer["choices"][0]["logprobs"].as_object().expect("lists") {
                let values = values.as_array().expect(list);
                let (_, before) = values.split_last().expect("a token of the text");
                assert_eq!(choice["logprobs"][list], json!(before), "{list}");
                assert_eq!(before.len(), count, "{list}");
            }
        }
        let given = with(&with(&none, &json!({"prompt": tokens})), &json!({"stream": true}));
        let chunks = post(&router, path, &given).await.chunks();
        let texts = joined(&chunks, 2, |choice| choice["text"].as_str());
        assert_eq!(texts, [PROMPT, PROMPT]);
    }
    let full = vec![7; shared().context_length()];
    let request = json!({"prompt": full, "max_tokens": 0});
    assert_eq!(post(&router, path, &request).await.json()["choices"][0]["text"], "");
    let info = get(&router, "/tokenizer_info").await.json();
    assert_eq!(info, json!({"bos_token": "<s>", "eos_token": "</s>", "model_max_length": 512}));
}

#[tokio::test]
async fn log_probabilities_are_the_engines_with_those_of_an_echoed_prompt() {
    let (router, path) = (shared_router(), "/v1/completions");
    let request = json!({"prompt": PROMPT, "max_tokens": 5, "echo": true, "logprobs": 2});
    let own = GenerateOptions::new().max_tokens(5).logprobs(true).top_logprobs(2);
    let expected = expected(PROMPT, own.prompt_logprobs(true), 1).remove(0);
    let deltas: Vec<_> = expected.prompt.iter().chain(&expected.deltas).collect();
    let answer = post(&router, path, &request).await;
    let whole = answer.json();
    let choice = &whole["choices"][0];
    assert_eq!(choice["text"], format!("{PROMPT}{}", expected.text));
    let own: Vec<_> = deltas.iter().map(|delta| delta.logprob).collect();
    assert_eq!(own[0], None, "nothing comes before the first");
    // As text, which has every digit.
    assert!(answer.text.contains(&json!(own).to_string()), "{}", answer.text);
    for list in ["tokens", "top_logprobs", "text_offset"] {
        assert_eq!(choice["logprobs"][list].as_array().expect(list).len(), own.len());
    }
    let chunks = post(&router, path, &with(&request, &json!({"stream": true}))).await.chunks();
    let all = |name: &str| {
        let lists = chunks
            .iter()
            .filter_map(|chunk| chunk["choices"][0]["logprobs"].get(name)?.as_array().cloned());
        Value::Array(lists.flatten().collect())
    };
    for list in ["tokens", "token_logprobs", "top_logprobs", "text_offset"] {
        assert_eq!(all(list), choice["logprobs"][list], "{list}");
    }

    let messages = json!([{"role": "user", "content": "A cat"}]);
    let more = json!({"logprobs": true, "top_logprobs": 3, "max_tokens": 4});
    let request = with(&json!({"messages": messages}), &more);
    let chat = post(&router, "/v1/chat/completions", &request).await.json();
    let content = chat["choices"][0]["logprobs"]["content"].as_array().expect("tokens");
    let joined: Vec<u8> = content
        .iter()
        .flat_map(|token| token["bytes"].as_array().expect("bytes"))
        .map(|byte| u8::try_from(byte.as_u64().expect("a byte")).expect("a byte"))
        .collect();
    let text = chat["choices"][0]["message"]["content"].as_str().expect("a text");
    assert!(String::from_utf8_lossy(&joined).contains(text.trim()), "{text}");
    assert!(content.iter().all(|token| token["top_logprobs"][0]["logprob"] == token["logprob"]));
}

#[tokio::test]
async fn embeddings_are_the_engines_as_numbers_and_bytes() {
    let router = shared_router();
    let texts = ["A cat", "A dog"];
    let own = shared().embed(texts, Pooling::Last, true).await;
    let own: Vec<_> = own.into_iter().map(|one| one.expect("a vector")).collect();
    let request = json!({"model": MODEL, "input": texts});
    let answer = post(&router, "/v1/embeddings", &request).await;
    let bytes = with(&request, &json!({"encoding_format": "base64"}));
    let bytes = post(&router, "/v1/embeddings", &bytes).await.json();
    for (index, own) in own.iter().enumerate() {
        let numbers = serde_json::to_string(&own.values).expect("JSON");
        assert!(answer.text.contains(&numbers), "{}", answer.text);
        let packed = bytes["data"][index]["embedding"].as_str().expect("base64");
        let packed = STANDARD.decode(packed).expect("base64");
        let values: Vec<u8> = own.values.iter().flat_map(|value| value.to_le_bytes()).collect();
        assert_eq!(packed, values);
    }
    let tokens: usize = own.iter().map(|one| one.tokens).sum();
    assert_eq!(answer.json()["usage"], json!({"prompt_tokens": tokens, "total_tokens": tokens}));
}

#[tokio::test]
async fn scores_are_the_engines_for_texts_tokens_and_chats() {
    let router = shared_router();
    let texts = [" there was", " there"];
    let tokens = shared().tokenize(PROMPT).expect("tokens");
    let messages = json!([{"role": "user", "content": "A cat"}]);
    for (request, prompt) in [
        (json!({"prompt": PROMPT}), Prompt::from(PROMPT)),
        (json!({"prompt": tokens.clone()}), Prompt::from(tokens)),
        (json!({"messages": messages}), vec![Message::user("A cat")].into()),
    ] {
        let own = shared().score(prompt, &texts).await.expect("scores");
        let body = with(&request, &json!({"continuations": texts}));
        let scores = texts.iter().zip(&own).map(|(text, own)| {
            let mean_logprob = own.mean_logprob();
            json!({"text": text, "logprob": own.logprob, "mean_logprob": mean_logprob, "tokens": own.tokens})
        });
        // As text, which has every digit.
        let expected = json!({"model": MODEL, "scores": scores.collect::<Vec<_>>()}).to_string();
        assert_eq!(post(&router, "/score", &body).await.text, expected);
    }
}

#[tokio::test]
async fn models_tokens_and_the_state_are_told() {
    let router = shared_router();
    let models = get(&router, "/v1/models").await.json();
    assert_eq!(models["data"][0]["id"], MODEL);
    let one = get(&router, &format!("/v1/models/{MODEL}")).await.json();
    assert_eq!(one, models["data"][0]);
    assert_eq!(get(&router, "/v1/models/other").await.error()["code"], "model_not_found");
    let tokens = post(&router, "/tokenize", &json!({"prompt": PROMPT})).await.json();
    assert_eq!(tokens["tokens"], json!(shared().tokenize(PROMPT).expect("tokens")));
    let messages = json!([{"role": "user", "content": "A cat"}]);
    let chat = post(&router, "/tokenize", &json!({"messages": messages})).await.json();
    let own = shared().tokenize_chat(&[Message::user("A cat")], &GenerateOptions::new());
    assert_eq!(chat["count"], own.expect("tokens").len());
    let time = json!({"messages": messages, "chat_template_time": 1_709_209_445,
        "chat_template_kwargs": {"dated": true}});
    let dated = post(&router, "/tokenize", &time).await.json();
    let with_date = shared().tokenize_plain("29 02\nuser: A cat\n").expect("tokens");
    assert_eq!(dated["tokens"], json!(with_date), "29 February 2024");
    let spelled = [false, true].map(|special| {
        let options = GenerateOptions::new().parse_special(special);
        let own = shared().tokenize_chat(&[Message::user("<s>")], &options);
        (special, json!(own.expect("tokens")))
    });
    assert_ne!(spelled[0].1, spelled[1].1, "text, and a token");
    for (special, own) in spelled {
        let spelled =
            json!({"messages": [{"role": "user", "content": "<s>"}], "parse_special": special});
        assert_eq!(post(&router, "/tokenize", &spelled).await.json()["tokens"], own);
    }
    let text = post(&router, "/detokenize", &json!({"tokens": tokens["tokens"]})).await.json();
    assert_eq!(text["prompt"], PROMPT);
    assert_eq!(get(&router, "/health").await.json()["status"], "ok");
    assert_eq!(get(&router, "/ready").await.json()["models"], json!([MODEL]));
    assert!(get(&router, "/version").await.json()["version"].is_string());
}
