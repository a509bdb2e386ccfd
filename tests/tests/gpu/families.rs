//! The families of `families.rs` on the system's Vulkan device: norms of heads, heads of 100
//! columns. Close to the reference, and to the bit the same for any cut of a prompt; the self-test
//! of a device has their operations too.

use setun::{
    Model,
    forward::{BLOCK_POSITIONS, TransformerOptions, sample},
    ops::{CacheElement, CacheSpec, Op},
};
use setun_tests::{
    fixture,
    golden::{Tensors, max_difference},
    run::{CLOSE, Runner, bits, transformer},
};

use super::gpu;

const MODELS: [&str; 3] = ["bitnet-1bitllm", "qwen3-packed", "qwen3-mlx"];

#[test]
fn logits() {
    for name in MODELS {
        let folder = fixture("families").join(name);
        let golden = Tensors::read(&folder.join("golden.safetensors"));
        let (ids, expected) = (golden.ids("ids"), golden.floats("logits").expect("logits"));
        let options = TransformerOptions {
            cache_element: CacheElement::F32,
            ..TransformerOptions::default()
        };
        let mut runner = Runner::over(Box::new(transformer(&folder, gpu(), options)));
        let rows = runner.logits(&ids, ids.len());
        let difference = max_difference(&rows.concat(), &expected);
        assert!(difference <= CLOSE, "{name}: {difference}");
        for piece in [1, 5] {
            assert_eq!(bits(&runner.logits(&ids, piece)), bits(&rows), "{name}, by {piece}");
        }
    }
}

#[test]
fn a_self_test_has_their_operations() {
    let mut backend = gpu();
    for name in MODELS {
        let model = Model::open(fixture("families").join(name)).expect("a model");
        let (config, weights) = (model.config(), model.weights());
        let cache = CacheSpec {
            layers: config.layers.len(),
            kv_heads: config.kv_heads,
            head_dim: config.head_dim,
            block_positions: BLOCK_POSITIONS,
            element: CacheElement::F16,
            recurrent: None,
        };
        let kinds = weights.kinds();
        let cases = sample::cases(&weights.layout, &kinds, config.activation, cache);
        let cases = cases.expect("cases");
        for case in &cases {
            let norms = case.plan.ops().iter().filter(|op| matches!(op, Op::HeadNorm { .. }));
            assert_eq!(norms.count(), if config.head_norms { 2 } else { 0 }, "{name}");
            pollster::block_on(backend.self_test(case))
                .unwrap_or_else(|error| panic!("{name}: {error}"));
        }
        pollster::block_on(backend.self_test_rows(&cases))
            .unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}
