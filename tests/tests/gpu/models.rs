//! Whole models on the system's Vulkan device: close to the CPU, and to the bit the same for any cut
//! of a prompt and any batch mates.
#![expect(clippy::print_stdout, reason = "says how close it came")]

use std::path::Path;

use setun::{Device, forward::TransformerOptions, ops::CacheElement};
use setun_tests::{
    fixture,
    golden::{Golden, MODELS},
    run::{CLOSE, MARGIN, Runner, argmax, assert_near, bits, margin, transformer},
};

use super::gpu;

/// "The little dog was sad because", for the model that knows stories.
const PROMPT: [u32; 13] = [1, 291, 376, 400, 428, 286, 296, 418, 329, 429, 412, 425, 372];
/// Tokens of a text.
const TEXT: usize = 60;

fn runner(folder: &Path, cache_element: CacheElement) -> Runner {
    let options = TransformerOptions { cache_element, ..TransformerOptions::default() };
    Runner::over(Box::new(transformer(folder, gpu(), options)))
}

#[test]
fn tokens_are_those_of_the_cpu() {
    for model in MODELS {
        let golden = Golden::read(model);
        let ids = golden.ids("p130.ids");
        let expected = Runner::open(&golden.folder, &Device::Cpu).logits(&ids, ids.len());
        let found = runner(&golden.folder, CacheElement::F32).logits(&ids, ids.len());
        let close = assert_near(&expected, &found, model);
        println!("{model}: {close} of {} positions within {CLOSE}", expected.len());
    }
}

#[test]
fn chunks_and_batch_mates_change_nothing() {
    for model in MODELS {
        let golden = Golden::read(model);
        let texts: Vec<Vec<u32>> = ["p33", "p7"].map(|p| golden.ids(&format!("{p}.ids"))).to_vec();
        for element in [CacheElement::F32, CacheElement::F16, CacheElement::Int8] {
            let mut runner = runner(&golden.folder, element);
            let alone = texts.iter().map(|text| bits(&runner.logits(text, text.len())));
            let alone: Vec<_> = alone.collect();
            for chunk in [1, 2, 5] {
                let found = bits(&runner.logits(&texts[0], chunk));
                assert!(found == alone[0], "{model}, {element:?}, chunks of {chunk}");
            }
            let sequences = [runner.sequence(), runner.sequence()];
            let runs = [(sequences[0], texts[0].as_slice()), (sequences[1], texts[1].as_slice())];
            let together = bits(&runner.step(&runs));
            assert!(together == alone.concat(), "{model}, {element:?}, two texts at once");
        }
    }
}

/// Greedy text is the CPU's up to where the CPU itself hardly knows.
#[test]
fn text_is_that_of_the_cpu_up_to_a_small_margin() {
    for name in ["real-tinystories-1m", "bitnet-hd128/packed", "llama-bitlinear/packed"] {
        let folder = fixture(&format!("golden/{name}"));
        let expected = greedy(&mut Runner::open(&folder, &Device::Cpu));
        let found = greedy(&mut runner(&folder, CacheElement::F32));
        let same = expected.iter().zip(&found).take_while(|(a, b)| a.0 == b.0).count();
        println!("{name}: the first {same} of {TEXT} tokens are the CPU's");
        if let Some((token, margin)) = expected.get(same) {
            assert!(*margin <= MARGIN, "{name}: token {same} is not {token}, by {margin}");
        }
        assert!(same > 0, "{name}");
    }
}

/// Tokens and their margins.
fn greedy(runner: &mut Runner) -> Vec<(u32, f32)> {
    let sequence = runner.sequence();
    let mut next = PROMPT.to_vec();
    let step = |_| {
        let row = runner.step(&[(sequence, &next)]).pop().expect("a row");
        next = vec![argmax(&row)];
        (next[0], margin(&row))
    };
    (0..TEXT).map(step).collect()
}
