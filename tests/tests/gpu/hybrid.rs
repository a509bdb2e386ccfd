//! Hybrid models on the system's Vulkan device: close to the CPU, and to the bit the same however a text is cut, forked
//! or gone back in.
#![expect(clippy::print_stdout, reason = "says how close it came")]

use std::path::{Path, PathBuf};

use setun::{
    Device, Model,
    forward::{BLOCK_POSITIONS, TransformerOptions, sample},
    ops::{CacheElement, Op, comparison::Case},
};
use setun_gpu::{GpuBackend, Recorder, SelfTestError};
use setun_model::{MAX_TENTATIVE, cache_spec};
use setun_tests::{
    fixture,
    run::{CLOSE, Runner, assert_near, bits, transformer},
};

use super::{device, gpu};

/// Value heads as many as key heads and more, tiled and grouped; rotations.
const MODELS: [&str; 4] = [
    "qwen35-r1/hf",
    "qwen35-wrapper-r3/mlx",
    "qwen35-hadamard-r2/mlx",
    "qwen35-r1/type143-alpha-beta-f16.gguf",
];

/// Positions of a text, more than two blocks.
const LEN: u32 = 150;

fn model(name: &str) -> PathBuf {
    fixture("families").join(name)
}

fn runner(path: &Path, cache_element: CacheElement) -> Runner {
    let options = TransformerOptions { cache_element, ..TransformerOptions::default() };
    Runner::over(Box::new(transformer(path, gpu(), options)))
}

fn text(seed: u32, len: u32) -> Vec<u32> {
    (0..len).map(|index| (index * index * 7 + index * 31 + seed) % 200).collect()
}

#[test]
fn tokens_are_those_of_the_cpu() {
    for name in MODELS {
        let ids = text(3, LEN);
        let expected = Runner::open(model(name), &Device::Cpu).logits(&ids, ids.len());
        let found = runner(&model(name), CacheElement::F32).logits(&ids, ids.len());
        let close = assert_near(&expected, &found, name);
        println!("{name}: {close} of {} positions within {CLOSE}", expected.len());
    }
}

#[test]
fn chunks_and_batch_mates_change_nothing() {
    let elements = [CacheElement::F32, CacheElement::F16, CacheElement::Int8];
    for (name, element) in MODELS.into_iter().zip(elements.into_iter().cycle()) {
        let texts = [text(3, 70), text(8, 40)];
        let mut runner = runner(&model(name), element);
        let alone = texts.iter().map(|text| bits(&runner.logits(text, text.len())));
        let alone: Vec<_> = alone.collect();
        for chunk in [1, 7, 64] {
            let found = bits(&runner.logits(&texts[0], chunk));
            assert!(found == alone[0], "{name}, {element:?}, chunks of {chunk}");
        }
        let sequences = [runner.sequence(), runner.sequence()];
        let runs = [(sequences[0], texts[0].as_slice()), (sequences[1], texts[1].as_slice())];
        let together = bits(&runner.step(&runs));
        assert!(together == alone.concat(), "{name}, {element:?}, two texts at once");
    }
}

/// Cases like a model, and one that chooses.
fn cases(name: &str) -> (Vec<Case>, Case) {
    let model = Model::open(model(name)).expect("a model");
    let (config, weights) = (model.config(), model.weights());
    let layers = 0..config.layers.len();
    let cache = cache_spec(config, layers, (BLOCK_POSITIONS, CacheElement::F16), MAX_TENTATIVE);
    let (layout, kinds) = (&weights.layout, weights.kinds());
    let ranking = sample::cases(layout, &kinds, config.activation, cache).expect("cases");
    (ranking, sample::choosing(layout, &kinds, config.activation, cache).expect("a case"))
}

#[test]
fn a_self_test_has_their_operations() {
    let mut backend = gpu();
    for name in MODELS {
        let (cases, choosing) = cases(name);
        for case in cases.iter().chain([&choosing]) {
            let has = |is: fn(&Op) -> bool| case.plan.ops().iter().any(is);
            assert!(has(|op| matches!(op, Op::DeltaNet { .. })), "{name}");
            assert!(has(|op| matches!(op, Op::SigmoidGate { .. })), "{name}");
            let is_rotated = has(|op| matches!(op, Op::Hadamard { .. }));
            assert_eq!(is_rotated, name.contains("hadamard"), "{name}");
            pollster::block_on(backend.self_test(case))
                .unwrap_or_else(|error| panic!("{name}: {error}"));
        }
        pollster::block_on(backend.self_test_rows(&cases))
            .unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}

#[test]
fn a_wrong_kernel_is_found() {
    for shader in ["delta_net", "sigmoid_gate", "hadamard"] {
        let name = if shader == "hadamard" { MODELS[2] } else { MODELS[0] };
        let mut recorder = Recorder::new(device());
        recorder.spoiled = Some((shader, None));
        let mut backend = GpuBackend::new(recorder).expect("memory");
        let (cases, _) = cases(name);
        let has = |case: &&Case| case.plan.ops().iter().any(|op| op.name() == shader);
        let case = cases.iter().find(has).expect("a case with the operation");
        let result = pollster::block_on(backend.self_test(case));
        let Err(SelfTestError::Disagreement(error)) = result else {
            panic!("{shader} is wrong, and the self-test gives {result:?}")
        };
        println!("{shader}: {error}");
    }
}

/// A fork goes on from its state, rows that are taken back were never there, and a state can move.
#[test]
fn forks_rejected_rows_and_moves_change_nothing() {
    for name in MODELS {
        let (ids, other) = (text(3, LEN), text(11, 20));
        let mut runner = runner(&model(name), CacheElement::F16);
        let expected = bits(&runner.logits(&ids, ids.len()));
        let fork_text: Vec<u32> = ids[..70].iter().chain(&other).copied().collect();
        let of_fork = bits(&runner.logits(&fork_text, fork_text.len()));
        let sequence = runner.sequence();
        let mut found = bits(&runner.step(&[(sequence, &ids[..70])]));
        let fork = runner.fork(sequence);
        let both = bits(&runner.step(&[(sequence, &ids[70..75]), (fork, &other)]));
        found.extend_from_slice(&both[..5]);
        assert!(both[5..] == of_fork[70..], "{name}: a fork");
        for (at, end) in [(75, 76), (76, 80), (80, 140), (140, 141), (141, 150)] {
            found.extend(bits(&runner.step_with_drafts(sequence, &ids[at..end], &other[..3])));
        }
        assert!(found == expected, "{name}: after rows that were taken back");
        let (first, second) = (runner.sequence(), runner.sequence());
        runner.step(&[(first, &other), (second, &ids[..70])]);
        runner.remove_and_compact(first);
        let moved = bits(&runner.step(&[(second, &ids[70..])]));
        assert!(moved == expected[70..], "{name}: after its state was moved");
    }
}
