//! `setun chat`

use serde_json::Value;

use crate::support::{STORIES, model, setun_reading, with_chat_template, with_template};

#[test]
fn a_line_is_a_message_and_the_history_is_kept() {
    let (_keep, folder) = with_chat_template();
    let args = ["chat", "--model", &folder, "--temperature", "0", "--max-tokens", "16"];
    let answer = |lines: &str| setun_reading(&args, lines.as_bytes()).text();
    let (cat, dog) = (answer("A cat sat.\n"), answer("The dog was sad because\n"));
    let both = answer("A cat sat.\n\nThe dog was sad because");
    let second = both.strip_prefix(&cat).expect("the first answer is the same");
    assert!(!cat.trim().is_empty() && !second.trim().is_empty());
    assert_ne!(second, dog, "it knows of the cat");
    let system = [&args[..], &["--system", "You are a dog."]].concat();
    assert_ne!(setun_reading(&system, b"A cat sat.\n").text(), cat);
}

#[test]
fn a_conversation_that_outgrows_the_context_forgets_its_oldest_messages() {
    let (_keep, folder) = with_chat_template();
    let args = ["chat", "--model", &folder, "--temperature", "0", "--max-tokens", "12"];
    let args = [&args[..], &["--system", "You are a dog."]].concat();
    let dog = "The dog was sad. ".repeat(20);
    let long = "The cat sat on the mat. ".repeat(38);
    let frog = "A frog jumped into";
    let outcome = setun_reading(&args, format!("{dog}\n{long}\n{frog}\n").as_bytes());
    assert_eq!(outcome.status, Some(0), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("oldest 2 messages are forgotten"), "{}", outcome.stderr);
    assert_eq!(outcome.stderr.lines().count(), 1, "{}", outcome.stderr);

    // From then on it is the conversation that began with the second message.
    let first = setun_reading(&args, dog.as_bytes()).text();
    let rest = setun_reading(&args, format!("{long}\n{frog}\n").as_bytes()).text();
    assert_eq!(outcome.stdout, format!("{first}{rest}"));
}

#[test]
fn a_message_longer_than_the_context_is_skipped() {
    let (_keep, folder) = with_chat_template();
    let args = ["chat", "--model", &folder, "--temperature", "0", "--max-tokens", "12"];
    let long = "The cat sat on the mat. ".repeat(200);
    let (dog, frog) = ("The dog was sad because", "A frog jumped into");
    let expected = setun_reading(&args, format!("{dog}\n{frog}\n").as_bytes()).text();
    let outcome = setun_reading(&args, format!("{dog}\n{long}\n{frog}\n").as_bytes());
    assert_eq!(outcome.status, Some(0), "{}", outcome.stderr);
    assert_eq!(outcome.stderr.lines().count(), 1, "{}", outcome.stderr);
    assert!(outcome.stderr.contains("the message is skipped: it has "), "{}", outcome.stderr);
    assert_eq!(outcome.stdout, expected, "nothing else is forgotten for it");
}

/// Whether its bytes are more than a line may have, or only more than the context holds.
#[test]
fn a_line_of_megabytes_is_skipped_and_the_next_is_answered() {
    let (_keep, folder) = with_chat_template();
    let args = ["chat", "--model", &folder, "--temperature", "0", "--max-tokens", "4"];
    let expected = setun_reading(&args, b"A cat\nA dog\n").text();
    let skipped = "setun: the message is skipped: it has ";
    for (bytes, reason) in [(10_000_000, "at least "), ((16 << 20) + 1, "more than 16777216 bytes")]
    {
        let lines = [b"A cat\n", &vec![b'a'; bytes][..], b"\nA dog\n"].concat();
        let outcome = setun_reading(&args, &lines);
        assert_eq!(outcome.status, Some(0), "{}", outcome.stderr);
        assert!(outcome.stderr.starts_with(&format!("{skipped}{reason}")), "{}", outcome.stderr);
        assert!(outcome.stderr.len() < 300, "{}", outcome.stderr.len());
        assert_eq!(outcome.stdout, expected, "as if it was not there");
    }
}

#[test]
fn a_line_that_is_no_text_is_skipped() {
    let (_keep, folder) = with_chat_template();
    let args = ["chat", "--model", &folder, "--temperature", "0", "--max-tokens", "4"];
    let expected = setun_reading(&args, b"A cat\nA dog\n").text();
    let outcome = setun_reading(&args, b"A cat\nab\xff\nA dog\n");
    let words = "the message is skipped: it is not UTF-8: byte 2 starts no character";
    assert_eq!(outcome.text_with(words), expected, "as if it was not there");
}

#[test]
fn special_tokens_that_are_typed_stay_text() {
    let (_keep, folder) = with_chat_template();
    let chat = |more: &[&str]| {
        let args = ["chat", "--model", &folder, "--max-tokens", "2"];
        let line = "</s>".repeat(200); // 200 tokens, or more than the context of 512 has
        setun_reading(&[&args[..], more].concat(), line.as_bytes())
    };
    let typed = chat(&[]);
    assert!(typed.stderr.contains("the message is skipped: it has "), "{}", typed.stderr);
    assert!(!chat(&["--parse-special"]).text().is_empty());
}

#[test]
fn messages_of_a_file_have_one_answer_and_the_last_one_is_continued() {
    let (_keep, folder) = with_template(
        "{% for m in messages %}{{ m.content }}{% if m.role == 'user' %}{{ '\n' }}{% endif %}{% endfor %}",
    );
    let args = ["chat", "--model", &folder, "--temperature", "0", "--max-tokens", "12"];
    let read = |messages: &Value, more: &[&str]| {
        let input = messages.to_string();
        setun_reading(&[&args[..], &["--messages", "-"], more].concat(), input.as_bytes())
    };
    let message = |role, content| serde_json::json!({ "role": role, "content": content });
    let user = message("user", "A cat sat.");
    let asked = Value::Array(vec![user.clone()]);
    let answer = setun_reading(&args, b"A cat sat.\n").text();
    assert_eq!(read(&asked, &[]).text(), answer, "as the line is answered");
    let path = format!("{folder}/messages.json");
    std::fs::write(&path, asked.to_string()).expect("a file");
    let of_file = [&args[..], &["--messages", &path]].concat();
    assert_eq!(setun_reading(&of_file, b"not read").text(), answer);

    // The beginning of the answer leads to its rest.
    let cut = answer.match_indices(' ').nth(3).expect("a few words").0;
    let begun = Value::Array(vec![user, message("assistant", &answer[..cut])]);
    let rest = read(&begun, &["--continue-final-message"]).text();
    assert!(rest.starts_with(answer[cut..].trim_end()), "{answer:?} is continued by {rest:?}");

    let error = read(&asked, &["--continue-final-message"]).failure();
    assert!(error.contains("message 0: the last message cannot be continued"), "{error}");
    let odd = serde_json::json!([{ "role": "user", "content": 3 }]);
    for (given, words) in [
        (serde_json::json!({}), "--messages -: it is no JSON list of objects: "),
        (odd, "--messages -: message 0: "),
    ] {
        read(&given, &[]).wrong_usage(words);
    }
}

#[test]
fn no_input_is_no_failure() {
    let (_keep, folder) = with_chat_template();
    assert_eq!(setun_reading(&["chat", "--model", &folder], b"").text(), "");
}

#[test]
fn a_model_without_template_says_so() {
    let config = std::fs::read(format!("{}/tokenizer_config.json", model(STORIES))).expect("it");
    let config: Value = serde_json::from_slice(&config).expect("JSON");
    assert!(config.get("chat_template").is_none());
    let error = setun_reading(&["chat", "--model", &model(STORIES)], b"hello\n").failure();
    assert!(error.contains("has no chat template, so it cannot chat; type: setun "), "{error}");
}

/// A template of few words with tools.
const TOOLS: &str = "{% for t in tools or [] %}{{ t.function.name }} {% endfor %}{% for m in messages %}{{ m.role }}: {{ m.content }}{% for c in m.tool_calls or [] %}<tool_call>{{ c.function.arguments | tojson }}</tool_call>{% endfor %}{{ '\n' }}{% endfor %}";

/// A file with two tools.
fn tools(folder: &str) -> String {
    let sum = serde_json::json!({
        "type": "object",
        "properties": {"of": {"type": "array", "items": {"type": "integer"}, "maxItems": 2}},
        "required": ["of"],
        "additionalProperties": false,
    });
    let tool = |name: &str, parameters: Value| serde_json::json!({"type": "function", "function": {"name": name, "parameters": parameters}});
    let empty = serde_json::json!({"type": "object", "additionalProperties": false});
    let path = format!("{folder}/tools.json");
    let list = Value::Array(vec![tool("sum", sum), tool("time", empty)]);
    std::fs::write(&path, list.to_string()).expect("a file");
    path
}

#[test]
fn calls_are_lines_and_their_results_come_from_the_input() {
    let (_keep, folder) = with_template(TOOLS);
    let tools = tools(&folder);
    let args = ["chat", "--model", &folder, "--seed", "1", "--temperature", "1"];
    let args = [&args[..], &["--tools", &tools, "--max-tokens", "80"]].concat();
    let named = [&args[..], &["--tool-choice", "time", "--parallel-tool-calls", "false"]].concat();
    let outcome = setun_reading(&named, b"What time is it?\nnine\n").text();
    let (call, answer) = outcome.split_once('\n').expect("a line and an answer");
    assert_eq!(call, "call time {}");
    assert!(!answer.trim().is_empty() && !answer.contains("call time"), "{answer}");
    // Another result leads to another answer, and without one there is none.
    let other = setun_reading(&named, b"What time is it?\nA dog and a cat were sad.\n").text();
    assert_ne!(other, outcome);
    assert_eq!(setun_reading(&named, b"What time is it?\n").text(), "call time {}\n");
    let args = [&args[..7], &["--tools", &tools, "--max-tokens", "200"]].concat();
    let required =
        [&args[..], &["--tool-choice", "required", "--parallel-tool-calls", "false"]].concat();
    let outcome = setun_reading(&required, b"Add 1 and 2.\n").text();
    for line in outcome.lines() {
        let (name, arguments) =
            line.strip_prefix("call ").and_then(|line| line.split_once(' ')).expect(line);
        assert!(["sum", "time"].contains(&name), "{line}");
        serde_json::from_str::<Value>(arguments).expect(line);
    }
}

#[test]
fn tools_that_cannot_be_offered_are_wrong_usage() {
    let (_keep, folder) = with_chat_template();
    let path = tools(&folder);
    let chat = |more: &[&str]| {
        let args = ["chat", "--model", &folder, "--max-tokens", "2"];
        setun_reading(&[&args[..], more].concat(), b"Hi\n")
    };
    chat(&["--tool-choice", "required"]).wrong_usage("--tools");
    let missing = "--tool-choice: the tool choice `x` is no tool of the request";
    chat(&["--tools", &path, "--tool-choice", "x"]).wrong_usage(missing);
    for (text, words) in [
        ("{}", "it is no JSON list: "),
        ("[{\"type\": \"function\"}]", "tools[0].function: expected an object, found nothing"),
    ] {
        std::fs::write(&path, text).expect("a file");
        chat(&["--tools", &path]).wrong_usage(words);
    }
}

/// A keyword that no grammar follows, and a call that is longer than it may be.
#[test]
fn what_calls_are_not_held_to_is_told_once_and_a_cut_call_too() {
    let (_keep, folder) = with_template(TOOLS);
    let path = format!("{folder}/tools.json");
    let write = |strict: bool, schema: Value| {
        let function = serde_json::json!({"name": "f", "parameters": schema, "strict": strict});
        let list = serde_json::json!([{"type": "function", "function": function}]);
        std::fs::write(&path, list.to_string()).expect("a file");
    };
    let args = ["chat", "--model", &folder, "--tools", &path, "--seed", "1"];
    let args =
        [&args[..], &["--tool-choice", "required", "--parallel-tool-calls", "false"]].concat();
    let chat = |more: &[&str], input: &[u8]| setun_reading(&[&args[..], more].concat(), input);
    let free = serde_json::json!({"type": "object", "properties": {"a": {"enum": ["b"], "not": {}}},
        "required": ["a"], "additionalProperties": false});
    write(false, free.clone());
    let words = "setun: parameters of the tool `f`: keyword `not` at #/properties/a";
    let outcome = chat(&["--max-tokens", "60"], b"Hi\nDone.\nHi\nDone.\n");
    assert_eq!(outcome.stderr.matches(words).count(), 1, "{}", outcome.stderr);
    let calls =
        outcome.text_with(words).lines().filter(|line| line.starts_with("call f {")).count();
    assert_eq!(calls, 2);
    write(true, free);
    assert!(chat(&[], b"Hi\n").failure().contains("keyword `not` at #/properties/a"));
    write(
        false,
        serde_json::json!({"type": "object", "properties": {"a": {"type": "string",
        "minLength": 300}}, "required": ["a"], "additionalProperties": false}),
    );
    chat(&["--max-tokens", "30"], b"Hi\n").text_with("setun: the last call is cut");
}

/// Reasoning is no part of the output, and the history has it.
#[test]
fn reasoning_goes_to_standard_error_and_ends_with_its_budget() {
    let template = "{% for m in messages %}{{ m.role }}: {% if m.reasoning_content %}\
        <think>{{ m.reasoning_content }}</think>{% endif %}{{ m.content }}\n{% endfor %}\
        {{ '<think></think>' if enable_thinking is false else '<think>' }}";
    let (_keep, folder) = with_template(template);
    let args = ["chat", "--model", &folder, "--temperature", "0", "--max-tokens", "24"];
    let run = |more: &[&str], lines: &str| {
        let outcome = setun_reading(&[&args[..], more].concat(), lines.as_bytes());
        assert_eq!(outcome.status, Some(0), "{}", outcome.stderr);
        (outcome.stdout, outcome.stderr)
    };
    let line = "A cat sat.\n";
    let (answer, thought) = run(&["--max-thinking-tokens", "8"], line);
    assert!(!answer.trim().is_empty() && !thought.trim().is_empty(), "{answer}{thought}");
    assert!(!answer.contains("think>") && !thought.contains("think>"), "{answer}{thought}");
    let (other, longer) = run(&[], line);
    assert!(longer.starts_with(thought.trim_end()) && longer.len() > thought.len(), "{longer}");
    assert_eq!(other, "\n", "it thinks to the end");
    let (off, nothing) = run(&["--thinking", "false"], line);
    assert!(!off.trim().is_empty() && nothing.is_empty(), "{nothing}");
    assert_eq!(run(&["--max-thinking-tokens", "0"], line), (off.clone(), String::new()));
    assert_eq!(run(&["--reasoning-effort", "none"], line), (off, String::new()));
    let (both, _) = run(&["--max-thinking-tokens", "8"], &format!("{line}Why?\n"));
    assert!(both.starts_with(&answer) && both.len() > answer.len(), "{both}");
}
