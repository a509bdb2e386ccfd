//! The self-test of a device: a good one passes, and each kernel made wrong is found.
#![expect(clippy::print_stdout, reason = "says how it was found")]

use setun::{
    Model,
    forward::{BLOCK_POSITIONS, sample},
    ops::{CacheElement, CacheSpec, comparison::Case},
};
use setun_gpu::{GpuBackend, Recorder, SelfTestError, Wgpu, launch::When};
use setun_tests::golden::{Golden, MODELS};

use super::{device, gpu};

/// Cases that rank, and one that chooses.
fn cases(model: &str, element: CacheElement) -> (Vec<Case>, Case) {
    let model = Model::open(Golden::read(model).folder).expect("a golden model");
    let config = model.config();
    let cache = CacheSpec {
        layers: config.layers.len(),
        kv_heads: config.kv_heads,
        head_dim: config.head_dim,
        block_positions: BLOCK_POSITIONS,
        element,
        recurrent: None,
    };
    let weights = model.weights();
    let (layout, kinds) = (&weights.layout, weights.kinds());
    let ranking = sample::cases(layout, &kinds, config.activation, cache).expect("cases");
    (ranking, sample::choosing(layout, &kinds, config.activation, cache).expect("a case"))
}

/// A device that leaves out the last group of workgroups of a kernel.
fn spoiled(shader: &'static str, when: Option<When>) -> GpuBackend<Recorder<Wgpu>> {
    let mut recorder = Recorder::new(device());
    recorder.spoiled = Some((shader, when));
    GpuBackend::new(recorder).expect("memory")
}

#[test]
fn a_good_device_passes() {
    let mut backend = gpu();
    for model in MODELS {
        for element in [CacheElement::F32, CacheElement::F16, CacheElement::Int8] {
            let (cases, choosing) = cases(model, element);
            for case in cases.iter().chain([&choosing]) {
                pollster::block_on(backend.self_test(case))
                    .unwrap_or_else(|error| panic!("{model}, {element:?}: {error}"));
            }
            pollster::block_on(backend.self_test_rows(&cases))
                .unwrap_or_else(|error| panic!("{model}, {element:?}: {error}"));
        }
    }
}

#[test]
fn a_wrong_kernel_is_found() {
    let shaders = [
        "embed",
        "rms_norm",
        "quantize",
        "ternary_matmul",
        "rope_append",
        "attention",
        "gate",
        "head",
        "top_logits",
        "argmax",
    ];
    for shader in shaders {
        let mut backend = spoiled(shader, None);
        let (ranking, choosing) = cases(MODELS[0], CacheElement::F16);
        let case = if shader == "argmax" { &choosing } else { &ranking[0] };
        let result = pollster::block_on(backend.self_test(case));
        let Err(SelfTestError::Disagreement(error)) = result else {
            panic!("{shader} is wrong, and the self-test gives {result:?}")
        };
        println!("{shader}: {error}");
    }
}

/// Attention is tested beyond the positions of one workgroup too.
#[test]
fn a_wrong_share_of_positions_is_found() {
    for when in [When::EachChunk, When::Chunks] {
        let mut backend = spoiled("attention", Some(when));
        for case in cases(MODELS[0], CacheElement::F16).0.iter().take(4) {
            let result = pollster::block_on(backend.self_test(case));
            assert!(matches!(result, Err(SelfTestError::Disagreement(_))), "{when:?}: {result:?}");
        }
    }
}

#[test]
fn a_row_that_depends_on_others_is_found() {
    let mut backend = gpu();
    let (mut cases, _) = cases(MODELS[0], CacheElement::F16);
    cases[2].steps[0].tokens[0] += 1; // as if rows among four had other bits
    let result = pollster::block_on(backend.self_test_rows(&cases));
    assert!(matches!(result, Err(SelfTestError::Rows { rows: [2, 4], .. })), "{result:?}");
}
