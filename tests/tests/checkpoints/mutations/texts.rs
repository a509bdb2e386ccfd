//! Damaged chat templates, `tokenizer_config.json` and `generation_config.json`: each is refused in
//! words or used within bounds.

use std::{
    fs,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

use serde_json::json;
use setun_checkpoint::GenerationDefaults;
use setun_tests::fixture;
use setun_text::{
    ChatTemplate, ChatTemplateFiles, CivilTime, Interrupt, Message, RenderOptions, TextError,
};

use super::{change, random::Random, run};

/// Cases of a check, and of a long one.
const FEW: usize = 1_000;
const MANY: usize = 10_000;

#[test]
fn templates_do_no_harm() {
    damage_templates(FEW);
}

#[test]
#[ignore = "10,000 cases, in the stage `crates release`"]
fn many_templates_do_no_harm() {
    damage_templates(MANY);
}

#[test]
fn tokenizer_configurations_do_no_harm() {
    damage_tokenizer_configs(FEW);
}

#[test]
#[ignore = "10,000 cases, in the stage `crates release`"]
fn many_tokenizer_configurations_do_no_harm() {
    damage_tokenizer_configs(MANY);
}

#[test]
fn generation_configurations_do_no_harm() {
    damage_generation_configs(FEW);
}

#[test]
#[ignore = "10,000 cases, in the stage `crates release`"]
fn many_generation_configurations_do_no_harm() {
    damage_generation_configs(MANY);
}

fn damage_templates(cases: usize) {
    let seeds = seeds("chat-templates", |name| {
        name.rsplit_once('.').is_some_and(|(_, end)| end == "jinja")
    });
    damage("template", cases, &seeds, &TEMPLATE, |bytes| {
        render(ChatTemplateFiles { chat_template_jinja: Some(bytes), ..Default::default() })
    });
}

fn damage_tokenizer_configs(cases: usize) {
    let mut seeds = seeds("golden", |name| name == "tokenizer_config.json");
    let list = json!({
        "bos_token": {"__type": "AddedToken", "content": "<s>"}, "eos_token": "</s>", "pad_token": null,
        "chat_template": [
            {"name": "tool_use", "template": "{{ tools }}{{ messages }}"},
            {"name": "default", "template": "{{ bos_token }}{% for m in messages %}{{ m.role }}{% endfor %}"},
        ],
    });
    seeds.push(list.to_string().into_bytes());
    damage("tokenizer_config", cases, &seeds, &JSON, |bytes| {
        render(ChatTemplateFiles { tokenizer_config: Some(bytes), ..Default::default() })
    });
}

fn damage_generation_configs(cases: usize) {
    let mut seeds = seeds("golden", |name| name == "generation_config.json");
    let all = json!({
        "do_sample": true, "temperature": 0.6, "top_k": 50, "top_p": 0.9, "min_p": 0.05,
        "repetition_penalty": 1.1, "eos_token_id": [1, 2], "bos_token_id": 0,
    });
    seeds.push(all.to_string().into_bytes());
    damage("generation_config", cases, &seeds, &JSON, |bytes| {
        let read = GenerationDefaults::parse(bytes).map_err(|error| error.to_string())?;
        let share = |x: Option<f32>| x.is_none_or(|x| (0.0..=1.0).contains(&x));
        assert!(share(read.top_p) && share(read.min_p), "{read:?}");
        assert!(read.temperature.is_none_or(|x| x.is_finite() && x >= 0.0), "{read:?}");
        assert!(read.repetition_penalty.is_none_or(|x| x.is_finite() && x > 0.0), "{read:?}");
        Ok(())
    });
}

/// Files below a folder of the fixtures.
fn seeds(folder: &str, is_seed: impl Fn(&str) -> bool) -> Vec<Vec<u8>> {
    let (mut found, mut folders) = (vec![], vec![fixture(folder)]);
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(folder).expect("fixtures").flatten().map(|entry| entry.path()) {
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            if path.is_dir() {
                folders.push(path);
            } else if is_seed(&name) {
                found.push(path);
            }
        }
    }
    found.sort();
    found.iter().map(|path: &PathBuf| fs::read(path).expect("a file")).collect()
}

/// Damages a seed in each case, by its bytes or by a piece where a word begins.
fn damage(
    format: &str,
    cases: usize,
    seeds: &[Vec<u8>],
    pieces: &[&str],
    use_all: impl Fn(&[u8]) -> Result<(), String> + Sync,
) {
    assert!(seeds.len() >= 3, "fixtures of {format}");
    let (count, used) = (AtomicUsize::new(0), AtomicUsize::new(0));
    run(format, cases, |case| {
        let mut random = Random::new(format, case);
        let mut bytes = seeds[random.below(seeds.len())].clone();
        if random.below(3) == 0 {
            change::damage(&mut bytes, &mut random);
        } else {
            (0..=random.below(3)).for_each(|_| splice(&mut bytes, pieces, &mut random));
        }
        count.fetch_add(1, Relaxed);
        used.fetch_add(usize::from(use_all(&bytes).is_ok()), Relaxed);
    });
    let (count, used) = (count.into_inner(), used.into_inner());
    assert!(count <= 1 || (used > count / 20 && used < count), "{used} of {count} were used");
}

/// Puts a piece where a word begins, in its place or before it.
fn splice(bytes: &mut Vec<u8>, pieces: &[&str], random: &mut Random) {
    let is_bound = |byte: &u8| !byte.is_ascii_alphanumeric() && *byte < 0x80;
    let bounds: Vec<usize> = (0..bytes.len()).filter(|&at| is_bound(&bytes[at])).collect();
    let which = random.below(bounds.len());
    let from = bounds.get(which).map_or(0, |at| at + 1);
    let end = bounds.get(which + 1).copied().unwrap_or(bytes.len()).max(from);
    let end = if random.below(2) == 0 { from } else { end };
    bytes.splice(from..end, pieces[random.below(pieces.len())].bytes());
}

/// Reads a template and renders a conversation with it, as long as half a million steps.
fn render(files: ChatTemplateFiles<'_>) -> Result<(), String> {
    let words = |error: TextError| {
        let words = error.to_string();
        assert!(words.len() < 20_000, "{words}");
        words
    };
    let Some(template) = ChatTemplate::from_files(files).map_err(words)? else { return Ok(()) };
    let asked = Arc::new(AtomicUsize::new(0));
    let interrupt = Interrupt::new(move || asked.fetch_add(1, Relaxed) >= 8);
    let options = RenderOptions {
        add_generation_prompt: true,
        tools: Some(vec![json!({"type": "function", "function": {"name": "f"}})]),
        now: Some(CivilTime::from_unix_seconds(0)),
        interrupt: Some(interrupt),
        ..RenderOptions::default()
    };
    let messages = [Message::system("S"), Message::user("Hello {}%"), Message::assistant("Hi")];
    let text = template.render(&messages, &options).map_err(words)?;
    assert!(text.len() <= 128 << 20, "{} bytes", text.len());
    Ok(())
}

const TEMPLATE: [&str; 46] = [
    "{% for a in messages %}",
    "{% for a, b in messages recursive %}",
    "{% endfor %}",
    "{% break %}",
    "{% continue %}",
    "{% if a %}",
    "{% elif b %}",
    "{% else %}",
    "{% endif %}",
    "{% set x %}",
    "{% endset %}",
    "{% macro m(a) %}",
    "{% endmacro %}",
    "{{ m(m) }}",
    "{% call m(1) %}",
    "{% endcall %}",
    "{% filter upper %}",
    "{% endfilter %}",
    "{% with a = loop %}",
    "{% generation %}",
    "{{ loop(messages) }}",
    "|join(messages)",
    "|tojson(indent=4)",
    "|map(attribute='content')",
    "|map('batch', 2)",
    "|groupby('role')",
    "|sort(attribute='role, content')",
    "|batch(3, 0)",
    "|indent(99999)",
    ".format(1, a=2)",
    ".split('')",
    "[::-1]",
    "[-1:0:-9]",
    "(*messages)",
    "(**messages[0])",
    " * 99999",
    " ** 99",
    " // 0",
    " ~ messages",
    " in messages",
    " is divisibleby(0)",
    "namespace(a=messages)",
    "range(99999)",
    "-9223372036854775808",
    "1e308",
    "{#",
];

const JSON: [&str; 18] = [
    "null",
    "true",
    "0",
    "-1",
    "1.5",
    "1e999",
    "18446744073709551616",
    "\"\"",
    "\"\\ud800\"",
    "\"chat_template\": ",
    "[]",
    "[1, -2]",
    "[[[[",
    "{}",
    "{\"content\": null}",
    "{\"name\": \"default\", \"template\": \"{{ 'a' * 9 }}\"}",
    ",",
    "\\u0000",
];
