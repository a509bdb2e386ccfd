//! The numbers of element types.
//!
//! Forks gave some numbers twice: 39 is `TL2` or `MXFP4`, and 42 is `Q2_0` in groups of 64 or of
//! 128, or `STQ1_0`. Files store no sizes: the distance to the next tensor decides which type a number is.

use crate::{dtype::Dtype, source::I2sBlocks};

/// The types that are read, with their numbers.
const TYPES: [(u32, Dtype); 17] = [
    (0, Dtype::F32),
    (1, Dtype::F16),
    (2, Dtype::Q4_0),
    (8, Dtype::Q8_0),
    (12, Dtype::Q4K),
    (14, Dtype::Q6K),
    (26, Dtype::I32),
    (30, Dtype::Bf16),
    (34, Dtype::Tq1_0),
    (35, Dtype::Tq2_0),
    (36, Dtype::I2S),
    (41, Dtype::Q1_0),
    (42, Dtype::Q2_0),
    (134, Dtype::Iq1Bn),
    (135, Dtype::Iq2Bn),
    (142, Dtype::Pq2_0),
    (143, Dtype::Ptq1_0),
];

/// Names of types that are not read.
const OTHERS: [(u32, &str); 31] = [
    (3, "Q4_1"),
    (6, "Q5_0"),
    (7, "Q5_1"),
    (9, "Q8_1"),
    (10, "Q2_K"),
    (11, "Q3_K"),
    (13, "Q5_K"),
    (15, "Q8_K"),
    (16, "IQ2_XXS"),
    (17, "IQ2_XS"),
    (18, "IQ3_XXS"),
    (19, "IQ1_S"),
    (20, "IQ4_NL"),
    (21, "IQ3_S"),
    (22, "IQ2_S"),
    (23, "IQ4_XS"),
    (24, "I8"),
    (25, "I16"),
    (27, "I64"),
    (28, "F64"),
    (29, "IQ1_M"),
    (31, "Q4_0_4_4"),
    (32, "Q4_0_4_8"),
    (33, "Q4_0_8_8"),
    (37, "IQ4_NL_4_8"),
    (38, "TL1"),
    (39, "TL2 or MXFP4"),
    (40, "NVFP4"),
    (133, "Q6_0"),
    (136, "Q8_K64"),
    (137, "IQ2_K"),
];

/// The type of a number; `Q2_0` stands for both of its groups.
pub(super) fn dtype(id: u32, i2s: I2sBlocks) -> Option<Dtype> {
    let (_, dtype) = TYPES.iter().find(|(found, _)| *found == id)?;
    Some(match (dtype, i2s) {
        (Dtype::I2S, I2sBlocks::Narrow) => Dtype::I2SNarrow,
        (dtype, _) => *dtype,
    })
}

/// The number of a type that is written.
pub(super) fn id(dtype: Dtype) -> Option<u32> {
    let dtype = if dtype == Dtype::Q2_0Wide { Dtype::Q2_0 } else { dtype };
    TYPES.iter().find(|(_, found)| *found == dtype).map(|(id, _)| *id)
}

/// Name and number of a type that is not read, and what can be done.
pub(super) fn refusal(id: u32) -> (String, &'static str) {
    let name = OTHERS.iter().find(|(found, _)| *found == id).map_or("unknown", |(_, name)| *name);
    let way_out = match id {
        38 | 39 => {
            "its weights lie as tables for one shape that are kept outside the file: take the \
             I2_S file, which exists for every such model, or convert the model with \
             `setun convert --to gguf-i2_s`"
        }
        _ => {
            "read are F32, F16, BF16, I2_S, TQ1_0, TQ2_0, Q1_0, Q2_0, PQ2_0, PTQ1_0, IQ1_BN, \
             IQ2_BN, Q8_0, Q4_0, Q4_K and Q6_K: convert the original model to one of these"
        }
    };
    (format!("{name} ({id})"), way_out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_number_is_listed_twice() {
        let mut ids: Vec<_> = TYPES.iter().map(|(id, _)| *id).collect();
        ids.extend(OTHERS.iter().map(|(id, _)| *id));
        let all = ids.len();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), all);
    }

    #[test]
    fn refusals_say_what_to_do() {
        assert!(refusal(39).0.contains("TL2 or MXFP4 (39)"));
        assert!(refusal(38).1.contains("I2_S"));
        assert_eq!(refusal(40).0, "NVFP4 (40)");
        assert_eq!(refusal(77).0, "unknown (77)");
    }
}
