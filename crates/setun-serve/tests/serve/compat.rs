//! Words of other servers, and bodies and names as their clients write them.

use axum::{body::Body, http::Request};
use serde_json::{Value, json};
use setun::{GenerateOptions, Prompt};

use crate::support::{MODEL, get, post, send, shared, shared_router, with};

const CHAT: &str = "/v1/chat/completions";
const COMPLETIONS: &str = "/v1/completions";
const RESPONSES: &str = "/v1/responses";
const MESSAGES: &str = "/v1/messages";

/// A request of a route for a text of this many tokens, and where its text is.
fn request(path: &str, tokens: usize) -> (Value, &'static str) {
    let messages = json!([{"role": "user", "content": "Go"}]);
    match path {
        CHAT => (json!({"messages": messages, "max_tokens": tokens}), "/choices/0/message/content"),
        COMPLETIONS => (json!({"prompt": "Go", "max_tokens": tokens}), "/choices/0/text"),
        RESPONSES => {
            (json!({"input": messages, "max_output_tokens": tokens}), "/output/0/content/0/text")
        }
        _ => (json!({"messages": messages, "max_tokens": tokens}), "/content/0/text"),
    }
}

#[tokio::test]
async fn constraints_of_other_servers_hold_on_every_route() {
    let router = shared_router();
    let object = json!({"type": "object", "properties": {"a": {"const": 7}}, "required": ["a"],
        "additionalProperties": false});
    for path in [CHAT, COMPLETIONS, RESPONSES, MESSAGES] {
        let (body, place) = request(path, 40);
        for (field, value, expected) in [
            ("guided_choice", json!(["yes"]), json!("yes")),
            ("guided_json", json!({"const": 7}), json!(7)),
            ("guided_json", json!("{\"const\": 7}"), json!(7)),
            ("guided_regex", json!("yes"), json!("yes")),
            ("guided_grammar", json!("start: \"yes\""), json!("yes")),
            ("guided_grammar", json!("root ::= \"yes\""), json!("yes")),
            ("structured_outputs", json!({"choice": ["yes"]}), json!("yes")),
            ("structured_outputs", json!({"json": {"const": 7}}), json!(7)),
            ("grammar", json!("root ::= \"yes\""), json!("yes")),
            ("json_schema", json!({"const": 7}), json!(7)),
        ] {
            let answer = post(&router, path, &with(&body, &json!({field: value}))).await.json();
            let text = answer.pointer(place).and_then(Value::as_str).expect("a text");
            let found = serde_json::from_str(text).unwrap_or_else(|_| json!(text));
            assert_eq!(found, expected, "{path} {field}");
        }
        let refused = json!({"guided_json": {"not": {}}});
        let answer = post(&router, path, &with(&body, &refused)).await;
        assert_eq!(answer.status.as_u16(), 400);
        if path != MESSAGES {
            assert_eq!(answer.error()["param"], "guided_json");
        }
    }
    let (body, place) = request(CHAT, 40);
    let format = json!({"response_format": {"type": "json_object", "schema": object}});
    let answer = post(&router, CHAT, &with(&body, &format)).await.json();
    let text = answer.pointer(place).and_then(Value::as_str).expect("a text");
    assert_eq!(serde_json::from_str::<Value>(text).expect("JSON"), json!({"a": 7}));
    let ollama = json!({"prompt": "a", "guided_json": {"const": 7}});
    let answer = post(&router, "/api/generate", &ollama).await;
    assert!(answer.text.contains("guided_json: not supported: use format"), "{}", answer.text);
}

#[tokio::test]
async fn what_would_change_an_answer_is_refused_on_every_route() {
    let router = shared_router();
    for path in [CHAT, COMPLETIONS, RESPONSES, MESSAGES] {
        let (body, _) = request(path, 2);
        for (field, value) in [
            ("chat_template", json!("{{ messages }}")),
            ("prompt_logprobs", json!(1)),
            ("logits_processors", json!(["a"])),
            ("use_beam_search", json!(true)),
            ("lora", json!([{"id": 0, "scale": 1}])),
            ("repeat_last_n", json!(64)),
        ] {
            let answer = post(&router, path, &with(&body, &json!({field: value}))).await;
            assert_eq!(answer.status.as_u16(), 400, "{path} {field}");
            assert!(answer.text.contains(&format!("{field}: not supported")), "{}", answer.text);
        }
        let nothing = json!({"user": "a", "store": true, "metadata": {"a": "b"}, "cache_prompt": true,
            "use_beam_search": false, "length_penalty": 1.0, "skip_special_tokens": true});
        let answer = post(&router, path, &with(&body, &nothing)).await;
        assert!(!answer.headers.contains_key("x-setun-warning"), "{:?}", answer.headers);
        answer.json();
        let answer = post(&router, path, &with(&body, &json!({"temprature": 0.1}))).await;
        assert_eq!(answer.headers["x-setun-warning"], "`temprature` is unknown and is ignored");
        answer.json();
    }
    let options = json!({"repeat_last_n": 64, "num_ctx": 99, "num_predict": 2});
    let body = json!({"prompt": "a", "stream": false, "options": options});
    let answer = post(&router, "/api/generate", &body).await;
    let words = "`options.repeat_last_n` is not supported and is ignored";
    assert_eq!(answer.headers["x-setun-warning"], words);
    answer.json();
}

#[tokio::test]
async fn the_end_of_a_text_is_as_other_servers_have_it() {
    let router = shared_router();
    let (body, place) = request(COMPLETIONS, 300);
    let ignoring = with(&body, &json!({"ignore_eos": true, "seed": 1, "temperature": 1}));
    let answer = post(&router, COMPLETIONS, &ignoring).await.json();
    assert_eq!(answer["usage"]["completion_tokens"], 300);
    assert_eq!(answer["choices"][0]["finish_reason"], "length");
    let format = json!({"ignore_eos": true, "guided_choice": ["a"]});
    let error = post(&router, COMPLETIONS, &with(&body, &format)).await.error();
    assert_eq!(error["param"], "ignore_eos");
    // Greedy, the first token ends the text, unless two must come.
    let (body, _) = request(COMPLETIONS, 4);
    let body = with(&body, &json!({"temperature": 0}));
    let own = shared()
        .complete(Prompt::from("Go"), GenerateOptions::new().max_tokens(4).temperature(0.0));
    let first = own.expect("a text").tokens[0];
    let stopped =
        post(&router, COMPLETIONS, &with(&body, &json!({"stop_token_ids": [first]}))).await;
    assert_eq!(stopped.json()["usage"]["completion_tokens"], 1);
    let more = json!({"stop_token_ids": [first], "min_tokens": 2.0});
    let longer = post(&router, COMPLETIONS, &with(&body, &more)).await.json();
    assert_ne!(longer["usage"]["completion_tokens"], 1);
    let story = json!({"prompt": "Once upon a time", "max_tokens": 20, "temperature": 0});
    let plain = post(&router, COMPLETIONS, &story).await.json();
    let text = plain.pointer(place).and_then(Value::as_str).expect("a text");
    let is_word = |word: &&str| word.len() > 2 && word.chars().all(char::is_alphabetic);
    let word = text.split_whitespace().find(is_word).expect("a word");
    let without = with(&story, &json!({"bad_words": [word]}));
    let other = post(&router, COMPLETIONS, &without).await.json();
    let other = other.pointer(place).and_then(Value::as_str).expect("a text");
    assert!(other.split_whitespace().all(|found| found != word), "{word}: {other}");
    let both = with(&body, &json!({"max_completion_tokens": 2}));
    let answer = post(
        &router,
        CHAT,
        &with(
            &both,
            &json!({"prompt": null,
        "messages": [{"role": "user", "content": "Go"}]}),
        ),
    )
    .await;
    assert_eq!(answer.json()["usage"]["completion_tokens"], 2);
}

#[tokio::test]
async fn a_name_with_the_tag_latest_is_the_model() {
    let router = shared_router();
    let name = format!("{MODEL}:latest");
    for path in [CHAT, COMPLETIONS, RESPONSES, MESSAGES] {
        let (body, _) = request(path, 2);
        let answer = post(&router, path, &with(&body, &json!({"model": name}))).await.json();
        assert_eq!(answer["model"], MODEL, "{path}");
    }
    for (path, body) in [
        ("/v1/embeddings", json!({"input": "a"})),
        ("/tokenize", json!({"prompt": "a"})),
        ("/score", json!({"prompt": "a", "continuations": ["b"]})),
        ("/api/show", json!({})),
    ] {
        post(&router, path, &with(&body, &json!({"model": name}))).await.json();
    }
    assert_eq!(get(&router, &format!("/v1/models/{name}")).await.json()["id"], MODEL);
    let unknown = json!({"model": "x:latest", "prompt": "a"});
    assert_eq!(post(&router, COMPLETIONS, &unknown).await.status.as_u16(), 404);
}

#[tokio::test]
async fn integers_may_have_a_fraction_of_zero() {
    let router = shared_router();
    let whole = json!({"max_tokens": 3, "seed": 42, "top_k": 5, "n": 1, "logprobs": 2});
    let text = r#"{"max_tokens": 3.0, "seed": 42.0, "top_k": 5.0, "n": 1.0, "logprobs": 2.0}"#;
    let same: Value = serde_json::from_str(text).expect("JSON");
    let prompt = json!({"prompt": "Go"});
    let choices = |answer: Value| answer["choices"].clone();
    let expected = post(&router, COMPLETIONS, &with(&prompt, &whole)).await.json();
    let found = post(&router, COMPLETIONS, &with(&prompt, &same)).await.json();
    assert_eq!(choices(found), choices(expected));
    for body in [
        r#"{"prompt": [5.0], "max_tokens": 1}"#,
        r#"{"prompt": "a", "max_tokens": -1.0, "stop_token_ids": [2.0]}"#,
    ] {
        let body: Value = serde_json::from_str(body).expect("JSON");
        post(&router, COMPLETIONS, &body).await.json();
    }
    let options =
        r#"{"prompt": "a", "stream": false, "options": {"num_predict": 2.0, "mirostat": 0.0}}"#;
    let options: Value = serde_json::from_str(options).expect("JSON");
    post(&router, "/api/generate", &options).await.json();
    for (field, text) in [("max_tokens", "1.5"), ("seed", "1e300"), ("n", "1.5"), ("top_k", "0.1")]
    {
        let value: Value = serde_json::from_str(text).expect("JSON");
        let error =
            post(&router, COMPLETIONS, &with(&prompt, &json!({field: value}))).await.error();
        assert_eq!(error["param"], field);
    }
    let beyond: Value = serde_json::from_str("9007199254740994.0").expect("JSON");
    let beyond = with(&prompt, &json!({"seed": beyond}));
    let error = post(&router, COMPLETIONS, &beyond).await.error();
    assert!(error["message"].as_str().expect("words").ends_with("found 9007199254740994.0"));
    let error = post(&router, COMPLETIONS, &json!({"prompt": [5.5]})).await.error();
    assert_eq!(error["param"], "prompt[0]");
}

/// Line breaks that JSON allows in strings.
#[tokio::test]
async fn streams_have_no_line_breaks_but_their_own() {
    let router = shared_router();
    let choice = "a\u{2028}b\u{2029}c\u{85}d\u{b}e\u{c}f\u{1c}g\u{1e}h";
    let is_break = |letter: char| {
        matches!(letter, '\u{85}' | '\u{2028}' | '\u{2029}') || (letter < ' ' && letter != '\n')
    };
    for path in [CHAT, COMPLETIONS, RESPONSES, MESSAGES] {
        let (body, _) = request(path, 100);
        let more = json!({"stream": true, "guided_choice": [choice]});
        let answer = post(&router, path, &with(&body, &more)).await;
        assert!(answer.status.is_success(), "{}", answer.text);
        assert!(!answer.text.contains(is_break), "{path}: {}", answer.text);
        let escaped = answer.text.contains("\\u2028") && answer.text.contains("\\u0085");
        assert!(escaped, "{path}: {}", answer.text);
    }
    let schema = json!({"const": "a\u{2028}b\u{2029}c\u{85}d"});
    for (path, body) in [
        ("/api/generate", json!({"prompt": "a", "raw": true, "format": schema})),
        ("/api/chat", json!({"messages": [{"role": "user", "content": "Go"}], "format": schema})),
    ] {
        let answer = post(&router, path, &body).await;
        assert!(answer.status.is_success() && !answer.text.contains(is_break), "{}", answer.text);
        let texts = answer.text.lines().map(|line| {
            let line: Value = serde_json::from_str(line).expect("JSON");
            let text = line.get("response").unwrap_or(&line["message"]["content"]);
            text.as_str().expect("a text").to_owned()
        });
        assert_eq!(texts.collect::<String>(), schema["const"].to_string());
    }
}

/// Log-probabilities are those of the tokens of the text.
#[tokio::test]
async fn log_probabilities_leave_out_the_end_the_stop_string_and_calls() {
    let router = shared_router();
    let (body, _) = request(CHAT, 60);
    let body = with(&body, &json!({"logprobs": true, "temperature": 0}));
    let joined = |content: &Value| -> String {
        let tokens = content.as_array().expect("tokens").iter();
        tokens.map(|token| token["token"].as_str().expect("a token")).collect()
    };
    let ended = with(&body, &json!({"guided_choice": ["Hello there"]}));
    let stop = post(&router, CHAT, &body).await.json()["choices"][0]["message"]["content"].clone();
    let stop = stop.as_str().expect("a text").chars().skip(8).take(4).collect::<String>();
    let stopped = with(&body, &json!({"stop": [stop]}));
    for body in [ended, stopped] {
        let choice = post(&router, CHAT, &body).await.json()["choices"][0].clone();
        assert_eq!(choice["finish_reason"], "stop");
        let text = choice["message"]["content"].as_str().expect("a text");
        let tokens = joined(&choice["logprobs"]["content"]);
        // The last token of the text may begin the stop string.
        assert!(tokens.trim_start().starts_with(text.trim_start()), "{tokens} {text}");
        assert!(tokens.len() < text.len() + 12, "{tokens} {text}");
        let chunks = post(&router, CHAT, &with(&body, &json!({"stream": true}))).await.chunks();
        let streamed = chunks
            .iter()
            .filter_map(|chunk| chunk["choices"][0]["logprobs"].get("content").map(&joined));
        assert_eq!(streamed.collect::<String>(), tokens);
    }
    let function = json!({"type": "function", "function": {"name": "f"}});
    let called =
        json!({"tools": [function], "tool_choice": "required", "parallel_tool_calls": false});
    let choice = post(&router, CHAT, &with(&body, &called)).await.json()["choices"][0].clone();
    assert_eq!(choice["logprobs"]["content"], json!([]));
}

#[tokio::test]
async fn compressed_bodies_are_read_within_the_limit() {
    let router = shared_router();
    let ask = |encoding: &'static str, body: Vec<u8>| {
        let request = Request::post(COMPLETIONS).header("content-encoding", encoding);
        let (router, request) =
            (router.clone(), request.body(Body::from(body)).expect("a request"));
        async move { send(&router, request).await }
    };
    let text = json!({"prompt": "Go", "max_tokens": 2, "seed": 1}).to_string().into_bytes();
    let zstd = |bytes: &[u8]| {
        ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest)
    };
    let expected = ask("identity", text.clone()).await.json()["choices"].clone();
    for (encoding, body) in [("gzip", gzip(&text)), ("zstd", zstd(&text))] {
        assert_eq!(ask(encoding, body.clone()).await.json()["choices"], expected, "{encoding}");
        let cut = ask(encoding, body[..body.len() - 6].to_vec()).await.error();
        assert_eq!(cut["code"], "broken_encoding", "{encoding}");
    }
    let zeros = vec![b' '; 9 << 20];
    for (encoding, body) in [("gzip", gzip(&zeros)), ("zstd", zstd(&zeros))] {
        assert!(body.len() < 100_000);
        assert_eq!(ask(encoding, body).await.status.as_u16(), 413, "{encoding}");
    }
    assert_eq!(ask("br", text.clone()).await.error()["code"], "broken_encoding");
    let other = ask("deflate", text).await;
    assert_eq!(other.headers["accept-encoding"], "gzip, br, zstd");
    assert_eq!(other.status.as_u16(), 415);
    assert!(other.error()["message"].as_str().is_some_and(|text| text.contains("deflate")));
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    use std::io::Write;

    let mut encoder = flate2::write::GzEncoder::new(vec![], flate2::Compression::best());
    encoder.write_all(bytes).expect("written");
    encoder.finish().expect("an end")
}
