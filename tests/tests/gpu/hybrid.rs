//! Hybrid models on the system's Vulkan device: close to the CPU, and to the bit the same however a text is cut, forked
//! or gone back in.
#![expect(clippy::print_stdout, reason = "says how close it came")]

use std::path::{Path, PathBuf};

use setun::{Device, forward::TransformerOptions, ops::CacheElement};
use setun_tests::{
    fixture,
    run::{CLOSE, Runner, assert_near, bits, transformer},
};

use super::gpu;

/// Value heads as many as key heads and more, tiled and grouped; small matrices by floats and ternary; rotations.
const MODELS: [&str; 4] = [
    "qwen35-r1/hf",
    "qwen35-wrapper-r3/mlx",
    "qwen35-hadamard-r2/mlx",
    "qwen35-hadamard-r2/type42g64.gguf",
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
    for name in MODELS {
        let texts = [text(3, LEN), text(8, 40)];
        for element in [CacheElement::F32, CacheElement::Int8] {
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
