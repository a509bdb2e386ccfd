//! Exit statuses, and what is said on standard error.

use crate::support::{STORIES, TINY, copy_without, model, setun};

#[test]
fn a_model_that_is_not_there() {
    let error = setun(&["run", "--model", "no-such-model", "Hello"]).failure();
    assert!(error.contains("[not-found]") && error.contains("`no-such-model`"), "{error}");
    assert!(error.contains("there is no such file or folder (`.` has "), "{error}");
    assert!(error.contains("nor such a model in the store at `"), "{error}");
    assert!(error.contains("`setun models search` lists the catalog"), "{error}");
    let error = setun(&["run", "--model", "./no-such-model", "Hello"]).failure();
    assert!(error.contains("looked for a folder with config.json"), "{error}");
    assert!(error.contains("found nothing; `.` has"), "{error}");
    let error = setun(&["inspect", "/no/such/folder/model"]).failure();
    assert!(error.contains("there is no folder `/no/such/folder` either"), "{error}");
}

#[test]
fn folders_and_files_that_are_no_models() {
    let (_keep, folder) = copy_without(STORIES, &["config.json"]);
    let error = setun(&["run", "--model", &folder.to_string_lossy(), "Hello"]).failure();
    assert!(error.contains("found a folder with generation_config.json, model.safe"), "{error}");

    let (_keep, folder) = copy_without(STORIES, &["model.safetensors"]);
    let error = setun(&["run", "--model", &folder.to_string_lossy(), "Hello"]).failure();
    assert!(error.contains("[not-found]") && error.contains("config.json, "), "{error}");

    let file = format!("{}/tokenizer.json", model(STORIES));
    let error = setun(&["run", "--model", &file, "Hello"]).failure();
    assert!(error.contains("found the file `tokenizer.json`"), "{error}");
}

#[test]
fn a_damaged_model() {
    let (_keep, folder) = copy_without(TINY, &[]);
    let file = folder.join("model.safetensors");
    let bytes = std::fs::read(&file).expect("the weights");
    std::fs::write(&file, &bytes[..bytes.len() / 2]).expect("half of them");
    let folder = folder.to_string_lossy();
    let error = setun(&["run", "--model", &folder, "Hello"]).failure();
    assert!(error.contains("[truncated] model.safetensors is truncated"), "{error}");
}

#[test]
fn local_files_that_cannot_be_read_are_no_network_errors() {
    let folder = model(STORIES);
    let error = setun(&["run", "--config", &folder, "Hello"]).failure();
    assert!(error.contains(&format!("[io] cannot read `{folder}`")), "{error}");
    let error = setun(&["run", "--config", "no-such-file.toml", "Hello"]).failure();
    assert!(error.contains("[not-found] cannot read `no-such-file.toml`"), "{error}");
}

#[test]
fn a_backend_that_is_not_here() {
    for backend in ["cuda", "neon-i8mm", "abacus"] {
        let args = ["run", "--model", &model(STORIES), "--backend", backend, "Hello"];
        let error = setun(&args).failure();
        assert!(error.contains("[backend-unavailable]") && error.contains(backend), "{error}");
        assert!(error.contains("here are: auto, cpu, ") && error.contains("scalar"), "{error}");
    }
}

#[cfg(not(feature = "vulkan"))]
#[test]
fn a_gpu_that_the_build_is_without() {
    let args = ["run", "--model", &model(STORIES), "--backend", "vulkan", "Hello"];
    let error = setun(&args).failure();
    assert!(error.contains("without the cargo feature `vulkan`"), "{error}");
}

#[test]
fn wrong_usage() {
    let folder = model(TINY);
    let synth = ["synth", "--shape", "small", "--to"];
    for args in [
        &[][..],
        &["sing"],
        &["run", "--max-tokens", "0", "Hello"],
        &["run", "--temperature", "NaN", "Hello"],
        &["run", "--logit-bias", "3", "Hello"],
        &["run", "--banned-tokens", "a", "Hello"],
        &["run", "--bad-words", "", "Hello"],
        &["run", "--sampling-order", "top_k,top_q", "Hello"],
        &["run", "--kv", "f64", "Hello"],
        &["run", "--head", "screened-at-night", "Hello"],
        &["run", "--threads", "0", "Hello"],
        &["run", "--stop", "", "Hello"],
        &["run", "--no-such-flag"],
        &["logits", "--model", &folder, "--out", "x"],
        &["logits", "--model", &folder, "--out", "x", "--ids", "1", "--text", "a"],
        &["bench", "--model", &folder, "--shape", "small"],
        &["bench", "--batch", "0"],
        &["synth", "--shape", "3b", "--to", "hf", "out"],
        &[&synth[..], &["gguf-i2_s", "out"]].concat(),
        &[&synth[..], &["hf", "--closed", "1.5", "out"]].concat(),
    ] {
        let outcome = setun(args);
        assert_eq!(outcome.status, Some(2), "{args:?}: {}", outcome.stderr);
        assert_eq!(outcome.stdout, "", "{args:?}");
        assert!(!outcome.stderr.is_empty(), "{args:?}");
        assert!(!outcome.stderr.contains('\x1b'), "no colour in a file");
    }
}

#[test]
fn a_prompt_that_does_not_fit() {
    let prompt = "the ".repeat(3000);
    let error = setun(&["run", "--model", &model(STORIES), &prompt]).failure();
    assert!(error.contains("[context-full] the prompt has"), "{error}");
}

#[test]
fn help_and_version_are_no_failures() {
    assert!(setun(&["--version"]).text().starts_with("setun "));
    let help = setun(&["--help"]).text();
    for command in ["run", "chat", "logits", "inspect", "devices", "synth", "bench"] {
        assert!(help.contains(command), "{command}");
        assert!(!setun(&[command, "--help"]).text().is_empty());
    }
    for command in ["run", "chat", "logits", "perplexity", "inspect", "verify", "convert", "bench"]
    {
        let help = setun(&[command, "--help"]).text();
        for format in [".safetensors", ".gguf", ".onnx", ".setun"] {
            assert!(help.contains(format), "{command} --help names {format}");
        }
    }
}

/// Flags that a help lists.
fn flags(help: &str) -> Vec<&str> {
    let options = help.lines().filter(|line| line.trim_start().starts_with('-'));
    options.filter_map(|line| line.split_whitespace().find(|word| word.starts_with("--"))).collect()
}

#[test]
fn the_short_help_of_a_run_has_what_people_use() {
    let help = setun(&["run", "-h"]).text();
    let common = [
        "--help",
        "--model",
        "--backend",
        "--threads",
        "--max-tokens",
        "--stop",
        "--temperature",
        "--top-k",
        "--top-p",
        "--repetition-penalty",
        "--seed",
        "--n",
        "--json-schema",
        "--regex",
        "--json",
        "--verbose",
    ];
    assert_eq!(flags(&help), common);
    assert_eq!(help.lines().filter(|line| line.starts_with("  setun run ")).count(), 2, "{help}");
    let help = setun(&["run", "--help"]).text();
    for flag in common.into_iter().chain(["--kv", "--draft", "--num-beams", "--mirostat-tau"]) {
        assert!(flags(&help).contains(&flag), "{flag}");
    }
    let headings = [
        "Model and device:",
        "Length:",
        "Sampling:",
        "Structured output:",
        "Output:",
        "Penalties, biases and bans:",
        "Beam search:",
        "Memory and measurement:",
    ];
    let places = headings.map(|heading| help.find(heading).expect(heading));
    assert!(places.is_sorted(), "{help}");
    let listed = setun(&["-h"]).text();
    let commands = ["  run ", "  chat ", "  serve ", "  score "];
    let places = commands.map(|name| listed.find(name).expect(name));
    assert!(places.is_sorted(), "{listed}");
}

#[test]
fn helps_are_plain_texts() {
    let listed = setun(&["--help"]).text();
    let commands = listed.lines().filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    let mut all = vec![vec!["--help"]];
    for command in commands.filter(|name| !["", "help", "sql", "batch"].contains(name)) {
        all.extend([vec![command, "--help"], vec![command, "-h"]]);
    }
    for command in ["list", "pull", "path", "rm", "verify", "alias", "search"] {
        all.push(vec!["models", command, "--help"]);
    }
    assert!(all.len() > 30, "{all:?}");
    for args in all {
        let help = setun(&args).text();
        assert!(!help.contains('`') && !help.contains("JavaScript"), "{args:?}: {help}");
    }
}

#[test]
fn words_of_other_programs_name_the_command_that_is_meant() {
    for (word, meant) in [
        ("generate", "setun run"),
        ("completion", "setun run"),
        ("server", "setun serve"),
        ("pull", "setun models pull"),
        ("ls", "setun models list"),
        ("quantize", "setun convert"),
        ("embeddings", "setun embed"),
    ] {
        setun(&[word, "x"]).wrong_usage(&format!("tip: the command is '{meant}'"));
    }
    setun(&["serv"]).wrong_usage("tip: a similar subcommand exists: 'serve'");
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_has_a_code() {
    let full = std::fs::File::options().write(true).open("/dev/full").expect("a device");
    let output = crate::support::command(&["devices"]).stdout(full).output().expect("its end");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.starts_with("setun: [storage-full] cannot write standard output: "), "{stderr}");
}

/// A terminal is shown what an argument has, and does not obey it. `script` makes a terminal.
#[cfg(target_os = "linux")]
#[test]
fn an_argument_that_is_quoted_on_a_terminal_is_escaped() {
    let command = format!(
        "{} run \"$(printf '%s\\033]0;title\\007\\302\\2332J' --x)\"",
        env!("CARGO_BIN_EXE_setun")
    );
    let output = std::process::Command::new("script")
        .args(["--quiet", "--return", "--command", &command, "/dev/null"])
        .stdin(std::process::Stdio::null())
        .output()
        .expect("script, of util-linux");
    let shown = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(2), "{shown}");
    assert!(shown.contains("unexpected argument '--x"), "{shown}");
    assert!(!shown.contains(['\x1b', '\x07', '\u{9b}']), "{shown:?}");
}
