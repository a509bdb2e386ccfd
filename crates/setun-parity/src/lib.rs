//! Random cases of every operation, and of whole small models, for parity tests.
//!
//! A [`Case`] is a random plan around one operation with random weights and several steps;
//! [`Case::compare`] compares a backend with the definitions over it. A case follows from its
//! subject and a seed alone, so a failure is repeated by its seed, on any machine and in
//! WebAssembly.

mod argmax;
mod attention;
mod digest;
mod host_inputs;
mod hybrid;
mod linear;
mod model;
mod rows;
mod top_logits;

use setun_ops::{BatchInputs, BlockId, comparison::Case, numeric::to_u32, random::Random};

pub use digest::{DIGESTS, check_digests};
pub use host_inputs::check_inputs;
pub use model::multi_step;

/// What cases are made for: the operations, and a whole model. Those of attention append, too, which
/// shows in the cache.
pub const SUBJECTS: [&str; 12] = [
    "embed",
    "rms_norm",
    "quantize",
    "ternary_matmul",
    "head_norm",
    "attention",
    "long_attention",
    "gate",
    "head",
    "top_logits",
    "argmax",
    "model",
];

/// Subjects of those who run hybrid models: processors, and GPUs but by CUDA.
pub const HYBRID_SUBJECTS: [&str; 5] =
    ["sigmoid_gate", "dense_matmul", "hadamard", "delta_net", "partial_rope"];

/// Subjects that not every GPU has: those of hybrid models, and one whose choice GPUs leave to the host.
pub const CPU_SUBJECTS: [&str; 6] =
    [NOISY_SUBJECT, "sigmoid_gate", "dense_matmul", "hadamard", "delta_net", "partial_rope"];

/// The subject whose scores have noise. GPUs give all logits where it decides.
pub const NOISY_SUBJECT: &str = "noisy_top_logits";

/// The case of a subject and a seed; none if there is no such subject.
#[must_use]
pub fn case(subject: &str, seed: u64) -> Option<Case> {
    let mut random = Random::new(seed);
    let random = &mut random;
    Some(match subject {
        "embed" => rows::embed(random),
        "rms_norm" => rows::rms_norm(random),
        "quantize" => rows::quantize(random),
        "head_norm" => rows::head_norm(random),
        "head" => rows::head(random),
        "top_logits" => top_logits::top_logits(random),
        NOISY_SUBJECT => top_logits::noisy_top_logits(random),
        "argmax" => argmax::argmax(random),
        "ternary_matmul" => linear::ternary_matmul(random),
        "gate" => linear::gate(random),
        "attention" => attention::attention(random),
        "long_attention" => attention::long_attention(random),
        "model" => model::model(random),
        "sigmoid_gate" => hybrid::sigmoid_gate(random),
        "dense_matmul" => hybrid::dense_matmul(random),
        "hadamard" => hybrid::hadamard(random),
        "delta_net" => hybrid::delta_net(random),
        "partial_rope" => attention::partial_rope(random),
        _ => return None,
    })
}

/// Steps of random tokens of one sequence that fits one block, for plans without a cache.
fn steps(random: &mut Random, rows: usize, wanted: usize, vocab: usize) -> Vec<BatchInputs> {
    (0..2)
        .map(|_| {
            let rows = random.between(1, rows);
            let mut picked: Vec<u32> =
                (0..rows).filter(|_| random.chance(0.6)).map(to_u32).collect();
            picked.truncate(wanted);
            BatchInputs {
                tokens: (0..rows).map(|_| to_u32(random.below(vocab))).collect(),
                positions: (0..rows).map(to_u32).collect(),
                slots: vec![0; rows],
                block_tables: vec![vec![BlockId(0)]],
                wanted: picked,
                ..BatchInputs::default()
            }
        })
        .collect()
}
