//! The first int8 code that flips on a GPU: until then logits differ from the CPU's by rounding alone.
#![expect(clippy::print_stdout, reason = "says how many codes flipped")]

use std::path::Path;

use setun::{
    Device,
    forward::TransformerOptions,
    ops::{CacheElement, ScalarBackend},
};
use setun_tests::{
    fixture,
    golden::{Golden, max_difference},
    run::{CLOSE, FLIPPED, Runner, transformer},
    taps::tapped,
};

use super::gpu;

/// "Once upon a time, a little fox found a red balloon", which the demo page compares.
const PARITY: [u32; 13] = [0, 440, 449, 260, 402, 13, 260, 390, 1999, 524, 260, 737, 1482];

#[test]
fn logits_are_close_until_a_code_flips() {
    let stories = fixture("../../crates/setun/embedded/stories.safetensors");
    compare(&stories, &PARITY);
    let golden = Golden::read("bitnet-hd128/packed");
    compare(&golden.folder, &golden.ids("p33.ids"));
}

/// Positions see those before them, so a code that flips in one concerns the later ones, too.
fn compare(model: &Path, ids: &[u32]) {
    let options =
        TransformerOptions { cache_element: CacheElement::F32, ..TransformerOptions::default() };
    let expected = Runner::open(model, &Device::Cpu).logits(ids, ids.len());
    let mut runner = Runner::over(Box::new(transformer(model, gpu(), options)));
    let found = runner.logits(ids, ids.len());
    let (cpu, gpu) = (tapped(model, ScalarBackend, ids), tapped(model, gpu(), ids));
    let mut flipped = vec![0; ids.len()];
    let mut first = None;
    for ((layer, expected), (_, found)) in cpu.codes.iter().zip(&gpu.codes) {
        let width = expected.len() / ids.len();
        assert_eq!((expected.len(), expected.len() % ids.len()), (found.len(), 0), "{layer}");
        for (at, (a, b)) in expected.iter().zip(found).enumerate().filter(|(_, (a, b))| a != b) {
            flipped[at / width] += 1;
            first.get_or_insert_with(|| format!("{layer}, position {}: {a} is {b}", at / width));
        }
    }
    let mut so_far = 0;
    let mut most = [0.0f32; 2]; // without and with a flipped code
    for (position, (a, b)) in expected.iter().zip(&found).enumerate() {
        so_far += flipped[position];
        let difference = max_difference(a, b);
        let (kind, bound) = if so_far == 0 { (0, CLOSE) } else { (1, FLIPPED) };
        assert!(difference <= bound, "{}, position {position}: {difference}", model.display());
        most[kind] = most[kind].max(difference);
    }
    let name = model.file_name().unwrap_or_default().display();
    println!(
        "{name}: logits within {:e}; {so_far} codes flipped, then {:e}; {first:?}",
        most[0], most[1]
    );
}
