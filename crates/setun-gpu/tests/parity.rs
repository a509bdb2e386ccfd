//! Every operation on the system's Vulkan device against its definition.

use setun_gpu::{GpuBackend, Wgpu};
use setun_ops::parity::{Case, SUBJECTS, block_on};

/// Cases of a subject.
const SEEDS: u64 = 40;

#[test]
fn operations_agree_with_their_definitions() {
    let device = block_on(Wgpu::vulkan()).expect("a Vulkan device");
    println!("{}", device.adapter());
    let mut backend = GpuBackend::new(device).expect("memory");
    let mut failures = vec![];
    for subject in SUBJECTS {
        let seeds = if subject == "long_attention" { 2 } else { SEEDS };
        for seed in 0..seeds {
            let case = Case::new(subject, seed).expect("a subject");
            if let Err(error) = block_on(case.compare_by_op(&mut backend)) {
                failures.push(format!("{subject}, seed {seed}: {error}"));
            }
        }
        println!("{subject}: {} failures so far", failures.len());
    }
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}
