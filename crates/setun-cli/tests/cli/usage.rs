//! Arguments that are refused: out of range, or without an effect.

use crate::support::{STORIES, TINY, model, setun, story};

/// What would be ignored is refused, by the flag that was given.
#[test]
fn flags_without_an_effect_are_refused() {
    let tiny = model(TINY);
    let beams = ["run", "--num-beams", "2"];
    let convert = ["convert", &tiny, "/no/such/folder/out"];
    let synth = ["synth", "--shape", "small", "--to", "hf", "/no/such/folder/out"];
    let cases: &[(&[&str], &[&str], &str)] = &[
        (&["run"], &["--logprobs"], "--json"),
        (&["run"], &["--top-logprobs", "2"], "--json"),
        (&["run"], &["--parse-special"], "'--parse-special'"),
        (&["run"], &["--chat-template-time", "0"], "'--chat-template-time'"),
        (&["run"], &["--continue-final-message"], "'--continue-final-message'"),
        (&["chat"], &["--continue-final-message"], "--messages <FILE>"),
        (&["chat"], &["--messages", "-", "--system", "a"], "'--system <TEXT>'"),
        (&["chat"], &["--logprobs"], "'--logprobs'"),
        (&["chat"], &["--top-logprobs", "2"], "'--top-logprobs'"),
        (&["chat"], &["--prompt-logprobs"], "'--prompt-logprobs'"),
        (&["chat"], &["--num-beams", "2"], "'--num-beams'"),
        (&["run"], &["--filter-action", "stop"], "--filter-word"),
        (&["run", "--filter-regex", "a"], &["--filter-anywhere"], "--filter-word"),
        (&["run"], &["--filter-anywhere"], "--filter-word"),
        (&beams, &["--temperature", "0.7"], "--temperature"),
        (&beams, &["--seed", "1"], "--seed"),
        (&beams, &["--top-k", "3"], "--top-k"),
        (&beams, &["--lookahead", "3"], "--lookahead"),
        (&beams, &["--draft", "x"], "--draft"),
        (&beams, &["--prompt-logprobs"], "--prompt-logprobs"),
        (&beams, &["--json", "--top-logprobs", "2"], "--top-logprobs"),
        (&beams, &["--json-object"], "--json-object"),
        (&beams, &["--choice", "a"], "--choice"),
        (&beams, &["--filter-word", "a"], "--filter-word"),
        (&beams, &["--context-overflow", "stop"], "--context-overflow"),
        (&convert, &["--to", "hf", "--zstd"], "--zstd is for --to setun alone"),
        (&convert, &["--to", "hf", "--head", "int8"], "--head is for --to setun alone"),
        (&convert, &["--to", "hf", "--embedding", "f16"], "--embedding is for --to setun alone"),
        (&convert, &["--to", "gguf-i2_s", "--shard", "5"], "--shard is for --to setun alone"),
        (&convert, &["--to", "hf", "--weight-image"], "--weight-image is for --to setun alone"),
        (&convert, &["--to", "gguf-i2_s", "--licence", "MIT"], "--licence is for --to setun alone"),
        (&synth, &["--zstd"], "--zstd is for --to setun alone"),
        (&["convert", &tiny], &["x.gguf", "--to", "hf"], "choose one of --to gguf-i2_s"),
        (&["convert", &tiny], &["x.setun", "--to", "hf"], "for a .setun file: --to setun"),
        (
            &["convert", &tiny],
            &["x.safetensors", "--to", "hf"],
            "found the file name `x.safetensors`",
        ),
        (&["synth", "--shape", "small"], &["--to", "hf", "x.gguf"], "found the file name `x.gguf`"),
        (&["inspect", &tiny], &["--plan", "--backend", "cuda"], "--backend needs --text"),
        (&["inspect", &tiny], &["--backend", "cpu"], "--backend needs --text or --estimate"),
        (&["inspect", &tiny], &["--threads", "2"], "--threads needs --text or --estimate"),
        (&["inspect", &tiny], &["--i2s-interleave", "64"], "`packed` is no GGUF file"),
        (&["run", "--backend", "scalar"], &["--threads", "2"], "no effect on `scalar`"),
        (&["bench", "--backend", "each:scalar"], &["--threads", "2"], "on `each:scalar`"),
        (
            &["inspect", "--estimate", "--shape", "small"],
            &["--i2s-interleave", "64"],
            "`small` is no GGUF file",
        ),
        (&["bench", "--shape", "small"], &["--i2s-interleave", "64"], "`small` is no GGUF file"),
        (&["bench", "--streams", "1"], &["--peer-model", "x"], "--peer-model"),
        (&["devices"], &["--i2s-interleave", "64"], "--i2s-interleave needs --model"),
        (&["bench"], &["--speculate", "--prompt", "5"], "--prompt"),
        (&["bench"], &["--constrained", "--prompt", "5"], "--prompt"),
    ];
    for (args, more, words) in cases {
        setun(&[*args, *more].concat()).wrong_usage(words);
    }
}

#[test]
fn a_configuration_with_monitoring_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("setun.toml");
    let path = file.to_string_lossy();
    for key in ["profile", "timeline"] {
        std::fs::write(&file, format!("[monitoring]\n{key} = true\n")).expect("a file");
        story(&["--config", &path], &[]).wrong_usage("expected --profile or --trace FILE of");
    }
    std::fs::write(&file, "[monitoring]\nprofile = false\n").expect("a file");
    story(&["--config", &path, "--max-tokens", "2"], &[]).text();
}

#[test]
fn negative_values_are_out_of_range_and_no_arguments() {
    for (args, flag) in [
        (&["run", "--seed", "-1"][..], "--seed"),
        (&["run", "--threads", "-1"], "--threads"),
        (&["run", "--n", "-1"], "--n"),
        (&["run", "--logit-bias", "-1=2"], "--logit-bias"),
        (&["run", "--banned-tokens", "-1,2"], "--banned-tokens"),
        (&["run", "--num-beams", "-1"], "--num-beams"),
        (&["synth", "--seed", "-1"], "--seed"),
        (&["synth", "--closed", "-0.5"], "--closed"),
        (&["perplexity", "--context", "-1"], "--context"),
        (&["logits", "--ids", "-1,2"], "--ids"),
        (&["bench", "--batch", "-1,2"], "--batch"),
        (&["bench", "--streams", "-2"], "--streams"),
        (&["bench", "--repeat", "-2"], "--repeat"),
        (&["models", "pull", "--connections", "-1"], "--connections"),
    ] {
        let words = format!(
            "invalid value '{}' for '{flag}",
            args[args.len() - 1].split(',').next().unwrap_or_default()
        );
        setun(args).wrong_usage(&words);
    }
    let outcome = setun(&["run", "--model", &model(STORIES), "--max-tokens", "1", "-1"]);
    assert_eq!(outcome.status, Some(0), "a prompt may be a number: {}", outcome.stderr);
}

/// Values outside of an option's range are refused in `options.rs`; these only a model can refuse.
#[test]
fn errors_of_the_engine_name_flags() {
    let error = |more: &[&str]| story(&["--max-tokens", "2"], more).failure();
    let biased = error(&["--logit-bias", "99999=1"]);
    assert!(biased.contains("[bad-option] --logit-bias names token 99999, expected"), "{biased}");
    let few = error(&["--min-tokens", "3"]);
    let expected = "option `--min-tokens` is 3, expected no more than --max-tokens";
    assert!(few.contains(expected), "{few}");
    let groups = ["--num-beam-groups", "3", "--diversity-penalty", "2"];
    let groups = error(&[&["--num-beams", "4"], &groups[..]].concat());
    assert!(groups.contains("option `--num-beam-groups` is 3, expected a divisor"), "{groups}");
    let words = "option `--sampling-order` is [`top_k`, `top_k`], expected a list of distinct";
    story(&[], &["--sampling-order", "top-k,topK"]).wrong_usage(words);

    let tiny = model(TINY);
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("logits.safetensors");
    let logits = ["logits", "--model", &tiny, "--out", &out.to_string_lossy()];
    let error = setun(&[&logits[..], &["--ids", "99999"]].concat()).failure();
    assert!(error.contains("option `--ids` is token 99999, expected tokens below"), "{error}");
    let perplexity = ["perplexity", "--model", &model(STORIES), "--text", "Cargo.toml"];
    let error = setun(&[&perplexity[..], &["--context", "99999"]].concat()).failure();
    assert!(error.contains("option `--context` is 99999, expected"), "{error}");
}

#[test]
fn files_that_are_no_text_have_a_code() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("bytes.lark");
    std::fs::write(&file, b"ab\xff").expect("a file");
    let path = file.to_string_lossy();
    for flag in ["--grammar", "--json-schema", "--template"] {
        let args: &[&str] = if flag == "--template" { &["run"] } else { &["run", "x"] };
        let error = setun(&[args, &[flag, &path]].concat()).failure();
        let words = format!("[bad-option] `{path}` is not UTF-8: byte 2 starts no character");
        assert!(error.contains(&words), "{flag}: {error}");
    }
}
