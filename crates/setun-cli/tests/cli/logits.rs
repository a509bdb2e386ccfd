//! `setun logits`

use std::path::Path;

use safetensors::SafeTensors;

use crate::support::{STORIES, TINY, model, setun};

/// Tokens, the positions whose logits the reference has, and these logits.
struct Golden {
    ids: String,
    positions: Vec<usize>,
    logits: Vec<f32>,
}

fn golden(name: &str, prompt: &str) -> Golden {
    let bytes = std::fs::read(format!("{}/golden.safetensors", model(name))).expect("goldens");
    let tensors = SafeTensors::deserialize(&bytes).expect("goldens");
    let data =
        |part: &str| tensors.tensor(&format!("{prompt}.{part}")).expect(part).data().to_vec();
    let integers = |part| -> Vec<i32> { bytemuck::pod_collect_to_vec(&data(part)) };
    let ids: Vec<_> = integers("ids").iter().map(ToString::to_string).collect();
    let positions = integers("logit_positions");
    Golden {
        ids: ids.join(","),
        positions: positions.into_iter().map(|p| usize::try_from(p).expect("a position")).collect(),
        logits: bytemuck::pod_collect_to_vec(&data("logits_f32")),
    }
}

/// Shape and values of the file that a command wrote.
fn written(args: &[&str]) -> (Vec<usize>, Vec<f32>) {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("logits.safetensors");
    let file = out.to_string_lossy();
    let args = [&["logits"], args, &["--out", &file]].concat();
    assert_eq!(setun(&args).text(), "");
    read(&out)
}

fn read(file: &Path) -> (Vec<usize>, Vec<f32>) {
    let bytes = std::fs::read(file).expect("the file");
    let tensors = SafeTensors::deserialize(&bytes).expect("a safetensors file");
    assert_eq!(tensors.names(), ["logits"]);
    let logits = tensors.tensor("logits").expect("the tensor");
    assert_eq!(logits.dtype(), safetensors::Dtype::F32);
    (logits.shape().to_vec(), bytemuck::pod_collect_to_vec(logits.data()))
}

#[test]
fn logits_are_those_of_the_reference() {
    for name in
        [TINY, "bitnet-h64/master", "llama-headdim-rope3/packed", "llama-rmsnorm-bias/packed"]
    {
        for prompt in ["p1", "p7"] {
            let golden = golden(name, prompt);
            let (shape, found) = written(&["--model", &model(name), "--ids", &golden.ids]);
            assert_eq!(shape[0], golden.ids.split(',').count());
            let expected = golden.logits.chunks_exact(shape[1]);
            assert_eq!(expected.len(), golden.positions.len());
            for (expected, &position) in expected.zip(&golden.positions) {
                let found = &found[position * shape[1]..][..shape[1]];
                let differences = found.iter().zip(expected).map(|(a, b)| (a - b).abs());
                let difference = differences.fold(0.0, f32::max);
                assert!(difference <= 1e-4, "{name} {prompt} at {position}: {difference}");
            }
        }
    }
}

#[test]
fn no_option_that_should_not_changes_a_bit() {
    let ids = golden(TINY, "p130").ids;
    let folder = model(TINY);
    for kv in ["f32", "f16", "int8"] {
        let bits = |more: &[&str]| -> Vec<u32> {
            let args = ["--model", &folder, "--ids", &ids, "--kv", kv];
            written(&[&args[..], more].concat()).1.into_iter().map(f32::to_bits).collect()
        };
        let expected = bits(&[]);
        for more in [
            &["--backend", "scalar"][..],
            &["--backend", "cpu", "--threads", "1"],
            &["--threads", "5"],
            &["--chunk", "1"],
            &["--chunk", "7"],
            &["--chunk", "64"],
            &["--chunk", "all"],
            &["--batch-with", "1"],
            &["--batch-with", "9", "--chunk", "3", "--threads", "2"],
        ] {
            assert!(bits(more) == expected, "{kv} {more:?}");
        }
    }
}

#[test]
fn the_cache_type_is_obeyed() {
    let ids = golden(TINY, "p33").ids;
    let folder = model(TINY);
    let logits = |kv| written(&["--model", &folder, "--ids", &ids, "--kv", kv]).1;
    let default = written(&["--model", &folder, "--ids", &ids]).1;
    assert_eq!(logits("f32"), default, "f32 is the default");
    assert_ne!(logits("f16"), default);
    assert_ne!(logits("int8"), logits("f16"));
}

#[test]
fn text_is_tokenized() {
    let stories = model(STORIES);
    let text = written(&["--model", &stories, "--text", "Once upon a time"]);
    let ids = written(&["--model", &stories, "--ids", "1,403,407,261,378"]);
    assert_eq!(text, ids);
}

#[test]
fn bad_tokens_leave_no_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("out.safetensors").to_string_lossy().into_owned();
    let args = ["logits", "--model", &model(TINY), "--out", &out, "--ids"];
    let error = setun(&[&args[..], &["5,263"]].concat()).failure();
    assert!(error.contains("token 263") && error.contains("below 263"), "{error}");
    assert!(!Path::new(&out).exists());
    let many = vec!["1"; 5000].join(",");
    let error = setun(&[&args[..], &[&many]].concat()).failure();
    assert!(error.contains("[context-full]") && error.contains("5000 tokens"), "{error}");
}

#[test]
fn chunks_and_companions_have_ranges() {
    let args = ["logits", "--model", &model(TINY), "--out", "x", "--ids", "1,2"];
    let refused = |more: &[&str]| setun(&[&args[..], more].concat()).wrong_usage("");
    for more in
        [["--chunk", "0"], ["--chunk", "some"], ["--batch-with", "257"], ["--batch-with", "-1"]]
    {
        refused(&more);
    }
}
