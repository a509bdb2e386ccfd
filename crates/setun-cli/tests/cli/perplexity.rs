//! `setun perplexity`

use serde_json::Value;

use crate::support::{STORIES, model, setun, setun_reading};

const TEXT: &str = "Once upon a time there was a little girl. She had a red ball, and she liked \
                    to play with it in the park. One day the ball was gone.";

fn perplexity(more: &[&str]) -> Value {
    let model = model(STORIES);
    let args = [&["perplexity", "--model", &model, "--text", "-", "--json"], more].concat();
    setun_reading(&args, TEXT.as_bytes()).json()
}

/// The logits of the same tokens, added up here.
#[test]
fn it_is_the_mean_of_the_surprises() {
    let report = perplexity(&[]);
    let keep = tempfile::tempdir().expect("a folder");
    let out = keep.path().join("logits.safetensors").to_string_lossy().into_owned();
    setun(&["logits", "--model", &model(STORIES), "--text", TEXT, "--out", &out]).text();
    let bytes = std::fs::read(out).expect("logits");
    let file = safetensors::SafeTensors::deserialize(&bytes).expect("a safetensors file");
    let logits = file.tensor("logits").expect("logits");
    let (tokens, vocab) = (logits.shape()[0], logits.shape()[1]);
    assert_eq!(report["tokens"], tokens);
    assert_eq!(report["counted"], tokens - 1);
    let found = report["perplexity"].as_f64().expect("a number");
    assert_eq!(found, report["mean_nll"].as_f64().expect("a number").exp());

    let opened = setun::Model::open(model(STORIES)).expect("a model");
    let ids = opened
        .tokenizer()
        .expect("a good one")
        .expect("a tokenizer")
        .encode(TEXT, true)
        .expect("tokens");
    let values: &[f32] = bytemuck::try_cast_slice(logits.data()).expect("aligned");
    let surprise = |(row, next): (&[f32], &u32)| {
        let sum: f64 = row.iter().map(|&logit| f64::from(logit).exp()).sum();
        sum.ln() - f64::from(row[*next as usize])
    };
    let total: f64 = values.chunks_exact(vocab).zip(&ids[1..]).map(surprise).sum();
    let mean = total / f64::from(u32::try_from(tokens - 1).expect("few"));
    assert!((mean.exp() - found).abs() < 1e-6 * found, "{} and {found}", mean.exp());
    assert!((1.0..50.0).contains(&found), "a story, to a model of stories: {found}");
}

#[test]
fn windows_share_nothing() {
    let (whole, cut) = (perplexity(&[]), perplexity(&["--context", "16"]));
    assert_eq!(whole["windows"], 1);
    assert!(cut["windows"].as_u64() > Some(2));
    assert!(cut["perplexity"].as_f64() > whole["perplexity"].as_f64(), "less is known");
}
