//! Parity of a backend with the definitions: the contract's own tests.
//!
//! A [`Case`] is a random plan around one operation, or a whole small model, with random
//! weights and several steps. [`Case::compare`] runs it on [`ScalarBackend`](crate::ScalarBackend)
//! and on the backend under test, reads every buffer and the cache after every step, and wants
//! the same bits (any NaN for a NaN). A case follows from its operation and a seed alone, so a
//! failure is repeated by its seed, on any machine and in WebAssembly.

mod argmax;
mod attention;
mod by_op;
mod compare;
mod digest;
mod input;
mod linear;
mod model;
mod multi_step;
mod random;
mod rows;
mod top_logits;

pub use by_op::OpByOp;
pub use compare::{Disagreement, block_on};
pub use digest::{DIGESTS, check_digests};
pub use input::check_inputs;
pub use random::Random;

use crate::{Backend, BatchInputs, BlockId, OpsError, Plan, Usage, WeightData};

/// What cases are made for: the operations, and a whole model.
pub const SUBJECTS: [&str; 13] = [
    "embed",
    "rms_norm",
    "quantize",
    "ternary_matmul",
    "head_norm",
    "rope_append",
    "attention",
    "long_attention",
    "gate",
    "head",
    "top_logits",
    "argmax",
    "model",
];

/// A plan with weights and steps. See the [module](self).
#[derive(Clone, Debug)]
pub struct Case {
    /// The plan; each of its buffers is written once.
    pub plan: Plan,
    /// Its weights.
    pub weights: Vec<WeightData>,
    /// What each of them is for.
    pub usages: Vec<Usage>,
    /// Inputs of the steps, in order.
    pub steps: Vec<BatchInputs>,
    /// Blocks of the cache.
    pub blocks: usize,
}

impl Case {
    /// Moves copies of the weights into a backend.
    ///
    /// # Errors
    ///
    /// If the backend refuses one.
    pub fn upload<B: Backend>(&self, backend: &mut B) -> Result<Vec<B::Weight>, OpsError> {
        let weights = self.weights.iter().cloned().zip(&self.usages);
        weights.map(|(weight, &usage)| backend.upload(weight, usage)).collect()
    }

    /// The case of a subject and a seed; none if there is no such subject.
    #[must_use]
    pub fn new(subject: &str, seed: u64) -> Option<Self> {
        let mut random = Random::new(seed);
        let random = &mut random;
        Some(match subject {
            "embed" => rows::embed(random),
            "rms_norm" => rows::rms_norm(random),
            "quantize" => rows::quantize(random),
            "head_norm" => rows::head_norm(random),
            "head" => rows::head(random),
            "top_logits" => top_logits::top_logits(random),
            "argmax" => argmax::argmax(random),
            "ternary_matmul" => linear::ternary_matmul(random),
            "gate" => linear::gate(random),
            // Appending shows in the cache, which is compared too.
            "rope_append" | "attention" => attention::attention(random),
            "long_attention" => attention::long_attention(random),
            "model" => model::model(random),
            _ => return None,
        })
    }
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
                top_logits: vec![],
                argmax: vec![],
            }
        })
        .collect()
}

fn to_u32(x: usize) -> u32 {
    u32::try_from(x).unwrap_or(u32::MAX)
}
