//! One number for all that a case computes: what different machines can be compared by.

use bytemuck::pod_collect_to_vec;
use setun_ops::{
    Backend, BufferId, OpsError, ScalarBackend, comparison::block_on, numeric::to_u32,
    plan::BufferKind, top_logits::Ranked,
};

use crate::{CPU_SUBJECTS, SUBJECTS, case};

/// Seeds of a subject's [`digest`].
fn seeds(subject: &str) -> u64 {
    if subject == "long_attention" { 2 } else { 12 }
}

/// The digest of each of [`SUBJECTS`] and of [`CPU_SUBJECTS`], as computed on x86-64. They judge no definition: they
/// say whether one gives other bits on another architecture or with another compiler. Whoever
/// changes a definition or the random cases on purpose takes the new ones from the failure.
pub const DIGESTS: [u64; SUBJECTS.len() + CPU_SUBJECTS.len()] = [
    0x4862_e8a8_43f3_075a, // embed
    0xda1b_9e06_9c6a_f2f6, // rms_norm
    0x1200_7d82_bc30_661e, // quantize
    0x7b70_4e3e_b293_0524, // ternary_matmul
    0xd3ce_a838_7eb8_5621, // head_norm
    0x8876_fce0_4c4c_d43e, // attention
    0xc9bb_2151_47d1_7df0, // long_attention
    0xd92f_b400_2c94_fafd, // gate
    0x97e9_fc06_5519_2b9a, // head
    0xda9d_814a_5fc7_aef6, // top_logits
    0xc179_1352_cd52_f532, // argmax
    0x3ff8_6aec_c0c8_b99b, // model
    0x2264_e7b8_935f_4b87, // noisy_top_logits
    0xd2ca_aed9_d450_2086, // sigmoid_gate
    0x3b5c_8cff_d020_58ca, // dense_matmul
    0xf17b_8d3b_6759_d067, // hadamard
    0x3459_2790_7b45_df51, // delta_net
    0x7015_da71_ebc6_ccc0, // partial_rope
];

/// Checks that the definitions compute here what they compute elsewhere.
///
/// # Errors
///
/// Each digest that is another, in the form of a list to replace [`DIGESTS`].
pub fn check_digests() -> Result<(), String> {
    let found: Result<Vec<u64>, OpsError> = subjects().map(digest).collect();
    let found = found.map_err(|error| error.to_string())?;
    if found == DIGESTS {
        return Ok(());
    }
    let of = |(index, subject)| {
        let mark = if found[index] == DIGESTS[index] { "" } else { ", differs" };
        format!("    {:#018x}, // {subject}{mark}", found[index])
    };
    let lines: Vec<String> = subjects().enumerate().map(of).collect();
    Err(format!("the definitions compute other values than on x86-64:\n{}", lines.join("\n")))
}

fn subjects() -> impl Iterator<Item = &'static str> {
    SUBJECTS.into_iter().chain(CPU_SUBJECTS)
}

/// A digest of every buffer after every step of some cases, by the definitions. Any NaN counts as
/// the same.
fn digest(subject: &str) -> Result<u64, OpsError> {
    let mut digest = Digest::default();
    let mut scalar = ScalarBackend;
    for case in (0..seeds(subject)).filter_map(|seed| case(subject, seed)) {
        let weights = case.upload(&mut scalar)?;
        let mut step = scalar.prepare(&case.plan, &weights)?;
        let mut cache = scalar.create_cache(case.plan.cache(), case.blocks)?;
        scalar.grow_states(&mut cache, case.states())?;
        for inputs in &case.steps {
            scalar.run(&mut step, &mut cache, inputs)?;
            for (index, spec) in case.plan.buffers().iter().enumerate() {
                let id = BufferId(to_u32(index));
                let rows = case.plan.buffer_rows(id);
                let mut bytes = vec![0; rows * spec.width * spec.kind.element_bytes()];
                block_on(scalar.read(&step, id, 0..rows, &mut bytes))?;
                digest.buffer(spec.kind, &bytes);
            }
        }
    }
    Ok(digest.0)
}

/// FNV-1a with 64 bits.
struct Digest(u64);

impl Default for Digest {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Digest {
    fn buffer(&mut self, kind: BufferKind, bytes: &[u8]) {
        match kind {
            BufferKind::F32 => {
                for x in pod_collect_to_vec(bytes) {
                    self.float(x);
                }
            }
            BufferKind::Quantized { .. } => self.bytes(bytes),
            BufferKind::Tokens => {
                for token in pod_collect_to_vec::<u8, u32>(bytes) {
                    self.bytes(&token.to_le_bytes());
                }
            }
            BufferKind::Ranked => {
                for Ranked { token, logit } in pod_collect_to_vec(bytes) {
                    self.bytes(&token.to_le_bytes());
                    self.float(logit);
                }
            }
        }
    }

    fn bytes(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn float(&mut self, x: f32) {
        let bits = if x.is_nan() { f32::NAN.to_bits() } else { x.to_bits() };
        self.bytes(&bits.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The published values of the function.
    #[test]
    fn the_function_is_fnv_1a() {
        let of = |text: &str| {
            let mut digest = Digest::default();
            digest.bytes(text.as_bytes());
            digest.0
        };
        assert_eq!(of(""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(of("a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(of("foobar"), 0x8594_4171_f739_67e8);
    }
}
