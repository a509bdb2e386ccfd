//! Keys by which a proxy tells conversations apart.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{
    BLOCK,
    cluster::{Balance, Cluster},
    replay::{Client, served_by},
};

/// The body of a conversation's turn.
type Body = fn(conversation: usize, turn: usize) -> Value;

/// A system message longer than what is looked at.
fn long() -> String {
    "Answer in short sentences. ".repeat(100)
}

/// What comes before and after a key.
fn around(mut fields: Value, turn: usize) -> Value {
    fields["model"] = "setun-stories".into();
    fields["temperature"] = 0.into();
    fields["user"] = format!("turn-{turn}").into();
    fields
}

/// Messages that a turn adds.
fn more(messages: Vec<Value>, turn: usize) -> Value {
    let added =
        json!([{"role": "assistant", "content": "Why?"}, {"role": "user", "content": "So."}]);
    let added = added.as_array().cloned().unwrap_or_default();
    messages.into_iter().chain(added.into_iter().cycle().take(2 * turn)).collect()
}

const BODIES: [(&str, Body); 9] = [
    (
        "the key",
        |of, turn| json!({"prompt": "A".repeat(turn + 1), "prompt_cache_key": of.to_string()}),
    ),
    (
        "the key after much else",
        |of, turn| json!({"prompt": "A".repeat(100_000 + turn), "prompt_cache_key": of.to_string()}),
    ),
    ("a prompt", |of, turn| json!({"prompt": format!("{of} ").repeat(1024) + &"A".repeat(turn)})),
    ("token ids", |of, turn| {
        let ids: Vec<usize> = [of; 600].into_iter().chain(vec![9; turn]).collect();
        json!({ "prompt": ids })
    }),
    ("a system message and a question", |of, turn| {
        let system = json!({"role": "system", "content": long()});
        let question = json!({"role": "user", "content": format!("What is {of}?")});
        json!({"messages": more(vec![system, question], turn)})
    }),
    ("parts of messages", |of, turn| {
        let part = |text: String| json!([{"type": "text", "text": text}]);
        let system = json!({"role": "developer", "content": part(long())});
        let question = json!({"role": "user", "content": part(format!("What is {of}?"))});
        json!({"messages": more(vec![system, question], turn)})
    }),
    ("a question", |of, turn| {
        let question = json!({"role": "user", "content": format!("What is {of}?")});
        json!({"system": long(), "messages": more(vec![question], turn)})
    }),
    ("an input", |of, _| json!({"instructions": long(), "input": format!("What is {of}?")})),
    ("items", |of, turn| {
        let part = json!([{"type": "input_text", "text": format!("What is {of}?")}]);
        json!({"input": more(vec![json!({"role": "user", "content": part})], turn)})
    }),
];

/// The proxy chooses by the body alone. The model answers no chats, which does not matter here.
#[test]
#[ignore = "needs HAProxy"]
fn turns_of_a_conversation_have_one_server_and_conversations_have_all() {
    let cluster = Cluster::start(Balance::Committed, BLOCK);
    let client = Client::new(&cluster.address);
    let server = |headers: &[(&str, &str)], body: &Value| {
        let response = client.post("/v1/chat/completions", headers, &body.to_string());
        let server = served_by(&response);
        response.into_body().read_to_string().expect("an answer");
        server
    };
    for (name, body) in BODIES {
        let servers: BTreeSet<String> = (0..24)
            .map(|of| {
                let [first, second] = [0, 1].map(|turn| server(&[], &around(body(of, turn), turn)));
                assert_eq!(first, second, "{name} {of}");
                first
            })
            .collect();
        assert_eq!(servers.len(), 3, "{name}: {servers:?}");
    }
    let session = |name: &str, body| server(&[("x-session-id", name)], &body);
    let servers: BTreeSet<String> = (0..24)
        .map(|number| {
            let name = number.to_string();
            let other = json!({"prompt": "A"});
            let of_session = session(&name, json!({"prompt": "B"}));
            assert_eq!(of_session, session(&name, other), "session {name}");
            let keyed = json!({"prompt_cache_key": name, "prompt": "C"});
            assert_eq!(session("other", keyed.clone()), server(&[], &keyed), "the key is first");
            of_session
        })
        .collect();
    assert_eq!(servers.len(), 3, "{servers:?}");
}
