//! A decoded token costs one allocation, whatever the number of sequences. A program of its own:
//! the usual harness has a thread that allocates whenever it likes.

#![expect(clippy::print_stdout, reason = "a test says that it passed")]

#[path = "../support/memory.rs"]
mod memory;

use futures::FutureExt;
use memory::allocations;
use setun::{
    DeviceOptions, HeadType, Model,
    forward::{Batch, Outputs, PagedCache, RequestedOutput, Row},
    ops::top_logits::TopLogitsRequest,
};
use setun_tests::fixture;

/// Tokens of each sequence, and the first of them that are to warm up.
const TOKENS: usize = 40;
const WARM_UP: usize = 3;

fn main() {
    // Loading shares matrices among a pool, whose threads would allocate when they begin: amid the
    // steps on a busy machine.
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).use_current_thread();
    pool.build_global().expect("no pool before");
    for model in ["../../crates/setun/embedded/stories.safetensors", "golden/real-tinystories-1m"] {
        for (head, sequences, threads) in [
            (HeadType::Screened, 1, 1),
            (HeadType::Screened, 1, 2),
            (HeadType::Screened, 4, 2),
            (HeadType::Stored, 4, 2),
        ] {
            decode(model, head, sequences, threads);
        }
    }
    println!("test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out");
}

/// Decodes greedily, some sequences at once.
fn decode(name: &str, head: HeadType, sequences: u32, threads: usize) {
    let model = Model::open(fixture(name)).expect("a model");
    let options = DeviceOptions { head, threads: Some(threads), ..DeviceOptions::default() };
    let mut model = model.load_onto(options).expect("a device").model;
    let mut cache = PagedCache::new(model.block_positions(), 64);
    let mut texts: Vec<_> = (0..sequences).map(|first| (cache.create(), 20 + first)).collect();
    let (mut outputs, mut all) = (Outputs::default(), Outputs::default());
    let rows: Vec<usize> = (0..sequences as usize).collect();
    for position in 0..TOKENS {
        let mut batch = Batch::default();
        for &(sequence, token) in &texts {
            cache.extend(sequence, 1).expect("room");
            let request = TopLogitsRequest { k: 1, ..<_>::default() };
            batch.push_run(sequence, position, &[token], RequestedOutput::TopLogits(request));
        }
        let before = allocations();
        let step = model.forward(&batch, &mut cache, &mut outputs).now_or_never();
        let allocated = allocations() - before;
        step.expect("a processor does not wait").expect("a step");
        // The box of the future, which the trait requires. Block tables grow now and then.
        let grows = position % model.block_positions() == 0;
        let case = format!("{name}, {head:?}, {sequences} sequences, token {position}");
        assert!(allocated == 1 || grows || position < WARM_UP, "{allocated} allocations: {case}");
        if let Some(Row::Ranked(_)) = outputs.rows().next() {
            let before = allocations();
            let head = model.head_logits(&rows, &mut all).now_or_never();
            let allocated = allocations() - before;
            head.expect("a processor does not wait").expect("the head alone");
            assert!(allocated == 1 || position < WARM_UP, "{allocated} of the head alone: {case}");
        }
        for ((_, token), row) in texts.iter_mut().zip(outputs.rows()) {
            *token = match row {
                Row::Ranked([best, ..]) => best.token,
                Row::Ranked([]) => panic!("a row that cannot be ranked: {case}"),
                Row::Logits(logits) => setun_tests::run::argmax(logits),
                Row::HiddenState(_) => panic!("a state that nobody wants: {case}"),
            };
        }
    }
}
