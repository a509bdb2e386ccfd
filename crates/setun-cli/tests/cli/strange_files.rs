//! Files as strangers write them: byte order marks, tensors without use, ends without content.

use std::{fs, path::Path};

use serde_json::{Value, json};

use crate::support::{Outcome, PROMPT, STORIES, copy_without, model, setun};

/// Changes the header and the data of a folder's weights.
fn change_weights(folder: &Path, change: impl FnOnce(&mut Value, &mut Vec<u8>)) {
    let path = folder.join("model.safetensors");
    let bytes = fs::read(&path).expect("the weights");
    let length = u64::from_le_bytes(bytes[..8].try_into().expect("eight bytes"));
    let (header, data) = bytes[8..].split_at(usize::try_from(length).expect("small"));
    let mut header: Value = serde_json::from_slice(header).expect("the header");
    let mut data = data.to_vec();
    change(&mut header, &mut data);
    let header = header.to_string().into_bytes();
    let length = (header.len() as u64).to_le_bytes();
    fs::write(&path, [&length[..], &header, &data].concat()).expect("the weights");
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn run(folder: &Path, more: &[&str]) -> Outcome {
    let folder = text(folder);
    setun(&[&["run", "--model", &folder, "--max-tokens", "4", "--seed", "1"], more].concat())
}

#[test]
fn tensors_without_use_are_named_by_run_and_verify() {
    let (_keep, folder) = copy_without(STORIES, &[]);
    run(&folder, &[PROMPT]).text();
    change_weights(&folder, |header, data| {
        let start = data.len();
        data.extend([0, 0, 128, 63]);
        let extra = json!({ "dtype": "F32", "shape": [1], "data_offsets": [start, start + 4] });
        header["model.layers.0.self_attn.q_proj.gate"] = extra;
    });
    let expected = "tensors are not used: `model.layers.0.self_attn.q_proj.gate`";
    run(&folder, &[PROMPT]).text_with(expected);
    let report = setun(&["verify", &text(&folder)]).text();
    assert!(report.contains("unused: model.layers.0.self_attn.q_proj.gate"), "{report}");
    let report = setun(&["inspect", &text(&folder)]).text();
    assert!(report.contains("`model.layers.0.self_attn.q_proj.gate` has no use"), "{report}");
}

#[test]
fn verify_names_tensors_of_zeros() {
    let (_keep, folder) = copy_without(STORIES, &[]);
    let verify = || setun(&["verify", &text(&folder)]).text();
    assert!(!verify().contains("zeros"));
    change_weights(&folder, |header, data| {
        for name in ["model.norm.weight", "model.layers.1.mlp.down_proj.weight"] {
            let offsets = &header[name]["data_offsets"];
            let [start, end] = [0, 1].map(|end| offsets[end].as_u64().expect("an offset"));
            data[usize::try_from(start).expect("small")..usize::try_from(end).expect("small")]
                .fill(0);
        }
    });
    let report = verify();
    assert!(report.contains("zeros"), "{report}");
    assert!(report.contains("`model.norm.weight`"), "{report}");
}

#[test]
fn a_byte_order_mark_changes_nothing() {
    let (_keep, folder) = copy_without(STORIES, &[]);
    let expected = run(&folder, &[PROMPT]).text();
    let messages = folder.join("schema.json");
    fs::write(&messages, r#"{"enum": [1]}"#).expect("a file");
    let schema = ["--json-schema", &text(&messages)[..], PROMPT];
    let constrained = run(&folder, &schema).text();
    let kind = setun(&["inspect", &text(&folder), "--json"]).json()["tokenizer"].clone();
    for entry in fs::read_dir(&folder).expect("the folder") {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|end| end == "json") {
            let json = fs::read(&path).expect("a file");
            fs::write(&path, [&b"\xef\xbb\xbf"[..], &json].concat()).expect("a file");
        }
    }
    assert_eq!(run(&folder, &[PROMPT]).text(), expected);
    assert_eq!(run(&folder, &schema).text(), constrained);
    setun(&["verify", &text(&folder)]).text();
    assert_eq!(setun(&["inspect", &text(&folder), "--json"]).json()["tokenizer"], kind);
    let file = text(&folder.join("a.gguf"));
    setun(&["convert", &text(&folder), &file, "--to", "gguf-i2_s"]);
    let of_file = ["run", "--model", &file, "--max-tokens", "4", "--seed", "1", PROMPT];
    assert_eq!(setun(&of_file).text(), expected);
    let like = text(&folder.join("like"));
    let synth = ["synth", "--like", &text(&folder), "--set", "num_hidden_layers=1", "--to", "hf"];
    assert_eq!(setun(&[&synth[..], &[&like]].concat()).status, Some(0));
}

/// Texts from editors and shells that begin with a byte order mark.
#[test]
fn a_byte_order_mark_before_a_text_changes_nothing() {
    let (_keep, folder) = copy_without(STORIES, &[]);
    let path = |name: &str| text(&folder.join(name));
    let write = |name: &str, text: &str| {
        fs::write(path(name), text).expect("a file");
        fs::write(path(&format!("marked-{name}")), format!("\u{feff}{text}")).expect("a file");
    };
    write("a.gbnf", "root ::= \"a\" | \"b\"\n");
    write("a.jinja", "Once {{ what }}");
    write("a.toml", "[generation]\nseed = 7\nmax_tokens = 3\n");
    write("trace.jsonl", r#"{"at_ms": 0, "key": "a", "prompt": [["a", 65]], "output": 1}"#);
    write(
        "costs.json",
        r#"{"name": "n", "decode": [[1, 1.0], [2, 2.0]], "prefill": [[1, 1.0], [2, 2.0]]}"#,
    );
    for (name, args) in [
        ("a.gbnf", &["run", "Once", "--seed", "1", "--max-tokens", "2", "--grammar"][..]),
        (
            "a.jinja",
            &["run", "--seed", "1", "--max-tokens", "2", "--var", "what=upon", "--template"],
        ),
        ("a.toml", &["run", "Once", "--config"]),
        ("trace.jsonl", &["simulate", "--replicas", "1", "--json", "--trace"]),
        ("costs.json", &["simulate", "--replicas", "1", "--requests", "9", "--json", "--costs"]),
    ] {
        let expected = setun(&[args, &[&path(name)]].concat()).text();
        let found = setun(&[args, &[&path(&format!("marked-{name}"))]].concat()).text();
        assert_eq!(found, expected, "{name}");
    }
}

#[test]
fn carriage_returns_of_a_template_change_nothing() {
    let (_keep, folder) = copy_without(STORIES, &[]);
    let file = folder.join("prompt.jinja");
    let written = |template: &str| {
        fs::write(&file, template).expect("a file");
        let options = ["--template", &text(&file)[..], "--var", "who=frog"];
        run(&folder, &options)
    };
    let template = "{% if who %}\nOnce a\n{{ who }}\n{% endif %}\n";
    let expected = written(template).text();
    assert_eq!(written(&template.replace('\n', "\r\n")).text(), expected);
    assert_eq!(written(&template.replace('\n', "\r")).text(), expected);
}

#[test]
fn a_pretokenizer_is_named_for_a_gguf_file() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/gguf");
    let file = text(&folder.join("i2_s.gguf"));
    let of_file = |more: &[&str]| {
        setun(
            &[&["run", "ab", "--max-tokens", "2", "--seed", "1", "--model", &file], more].concat(),
        )
    };
    of_file(&[]).text_with("has no tokenizer.ggml.pre; text is split as `default` does");
    let named = of_file(&["--pre", "llama-bpe"]);
    assert_eq!(named.status, Some(0), "{}", named.stderr);
    assert!(!named.stderr.contains("tokenizer.ggml.pre"), "{}", named.stderr);
    of_file(&["--pre", "llama"]).wrong_usage("llama-bpe");
    let (_keep, folder) = copy_without(STORIES, &[]);
    run(&folder, &[PROMPT, "--pre", "gpt-2"]).wrong_usage("--pre: ");
}

#[test]
fn verify_names_a_template_that_fails_with_tools() {
    let (_keep, folder) = copy_without(STORIES, &["tokenizer_config.json"]);
    let verify = |template: &str| {
        let config = json!({ "chat_template": template }).to_string();
        fs::write(folder.join("tokenizer_config.json"), config).expect("a file");
        setun(&["verify", &text(&folder)])
    };
    let hermes = "{% for m in messages %}{{ m.content }}{% if m.tool_calls %}<tool_call>{{ m.tool_calls[0].function.arguments|tojson }}</tool_call>{% endif %}{% endfor %}{% if tools %}{{ tools|tojson }}{% endif %}";
    assert!(!verify(hermes).text().contains("warning"));
    let report = verify(&hermes.replace("tools|tojson", "tools[0].x.y")).text();
    let expected = "warning: a conversation with tools: chat template `default` failed at line 1";
    assert!(report.contains(expected), "{report}");
    // A second message is part of any conversation.
    let line = verify("{% if messages|length > 1 %}{{ none.x.y }}{% endif %}a").failure();
    assert!(line.contains("[bad-checkpoint] chat template `default` failed at line 1"), "{line}");
}

/// A folder whose chat template is this, and a GGUF file of it.
fn with_chat_template(template: &str) -> (tempfile::TempDir, String, String) {
    let (keep, folder) = copy_without(STORIES, &["tokenizer_config.json"]);
    let config = json!({ "chat_template": template }).to_string();
    fs::write(folder.join("tokenizer_config.json"), config).expect("a file");
    let file = text(&folder.join("a.gguf"));
    let outcome = setun(&["convert", &text(&folder), &file, "--to", "gguf-i2_s"]);
    assert_eq!(outcome.status, Some(0), "{}", outcome.stderr);
    (keep, text(&folder), file)
}

#[test]
fn carriage_returns_of_a_chat_template_change_nothing_in_folders_and_gguf_files() {
    let template = "{% for m in messages %}\n<{{ m.role }}>\n{{ m.content }}\n{% endfor %}\nsay\n";
    let answers = |template: &str| {
        let (keep, folder, file) = with_chat_template(template);
        let messages = text(&keep.path().join("messages.json"));
        fs::write(&messages, r#"[{"role": "user", "content": "a\r\nb"}]"#).expect("a file");
        [folder, file].map(|model| {
            let args = ["chat", "--model", &model, "--messages", &messages];
            let outcome = setun(&[&args[..], &["--max-tokens", "8", "--seed", "1"]].concat());
            assert_eq!(outcome.status, Some(0), "{}", outcome.stderr);
            outcome.stdout
        })
    };
    let expected = answers(template);
    assert_eq!(expected[0], expected[1]);
    for ends in ["\r\n", "\r"] {
        assert_eq!(answers(&template.replace('\n', ends)), expected, "{ends:?}");
    }
}

#[test]
fn a_blank_chat_template_is_none() {
    let (_keep, folder, file) = with_chat_template("");
    for model in [&folder, &file] {
        let outcome = setun(&["chat", "--model", model]);
        assert_ne!(outcome.status, Some(0));
        assert!(outcome.stderr.contains("no chat template"), "{}", outcome.stderr);
    }
}

/// Calls without arguments in a file of messages.
#[test]
fn calls_without_arguments_are_taken_from_a_file() {
    let template = "{% for m in messages %}{{ m.content }}{% for c in m.tool_calls or [] %}<tool_call>\
        {{ c.function.arguments|tojson }}</tool_call>{% endfor %}{% endfor %}";
    let (keep, folder, _) = with_chat_template(template);
    let answer = |arguments: &str| {
        let call = r#"{"type": "function", "function": {"name": "now"ARGUMENTS}}"#;
        let call = call.replace("ARGUMENTS", arguments);
        let messages = text(&keep.path().join("messages.json"));
        let history = format!(
            r#"[{{"role": "user", "content": "a"}}, {{"role": "assistant", "tool_calls": [{call}]}},
            {{"role": "tool", "content": "b"}}]"#
        );
        fs::write(&messages, history).expect("a file");
        let args = ["chat", "--model", &folder, "--messages", &messages];
        let outcome = setun(&[&args[..], &["--max-tokens", "8", "--seed", "1"]].concat());
        assert_eq!(outcome.status, Some(0), "{}", outcome.stderr);
        outcome.stdout
    };
    let expected = answer(r#", "arguments": {}"#);
    for arguments in
        ["", r#", "arguments": """#, r#", "arguments": null"#, r#", "arguments": "{}""#]
    {
        assert_eq!(answer(arguments), expected, "{arguments}");
    }
}

/// Lines of JSON, one an event, in which a text has line breaks that JSON allows.
#[test]
fn lines_of_events_have_no_breaks_but_their_own() {
    let choice = "a\u{2028}b\u{2029}c\u{85}d";
    let args = ["run", "--model", &model(STORIES), PROMPT, "--json", "--max-tokens", "60"];
    let outcome = setun(&[&args[..], &["--choice", choice]].concat());
    let is_break = |letter: char| matches!(letter, '\u{85}' | '\u{2028}' | '\u{2029}');
    assert!(!outcome.stdout.contains(is_break), "{}", outcome.stdout);
    let texts =
        outcome.lines().into_iter().filter_map(|event| event["text"].as_str().map(str::to_owned));
    assert_eq!(texts.collect::<String>(), choice);
}
