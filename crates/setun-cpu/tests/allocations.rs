//! A step allocates nothing. A program of its own: the usual harness has a thread that allocates
//! whenever it likes.

#![expect(clippy::print_stdout, reason = "a test says that it passed")]

#[path = "../../../tests/support/memory.rs"]
mod memory;

use memory::allocations;
use setun_cpu::{CpuBackend, CpuOptions};
use setun_ops::Backend;
use setun_parity::NOISY_SUBJECT;

fn main() {
    a_step_allocates_nothing();
    println!("test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out");
}

fn a_step_allocates_nothing() {
    for threads in [1, 2] {
        let options = CpuOptions { level: None, threads: Some(threads) };
        let Ok(mut backend) = CpuBackend::new(options) else { continue };
        let subjects =
            [("model", 20), ("top_logits", 20), (NOISY_SUBJECT, 20), ("long_attention", 2)];
        for (subject, seed) in
            subjects.into_iter().flat_map(|(name, seeds)| (0..seeds).map(move |seed| (name, seed)))
        {
            let case = setun_parity::case(subject, seed).expect("a subject");
            let weights = case.upload(&mut backend).unwrap();
            let mut step = backend.prepare(&case.plan, &weights).unwrap();
            let is_timed = seed % 2 == 1;
            assert_eq!(backend.time(&mut step, is_timed), is_timed);
            let mut cache = backend.create_cache(case.plan.cache(), case.blocks).unwrap();
            for inputs in &case.steps {
                let before = allocations();
                backend.run(&mut step, &mut cache, inputs).unwrap();
                let allocated = allocations() - before;
                assert_eq!(allocated, 0, "{subject}, seed {seed}, {threads} threads");
                let timed = backend.times(&step).map(|times| times.ops.len());
                assert_eq!(timed, is_timed.then_some(case.plan.ops().len()));
            }
        }
    }
}
