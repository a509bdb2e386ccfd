//! Element types of tensors, and how many bytes a tensor of each has.

use std::fmt;

/// How the elements of a tensor are stored.
///
/// The first are those of safetensors files, one element after the other. The others pack a row's
/// elements in blocks; what lies in a block is said where it is read ([`blocks`](crate::blocks)).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "each is what its name says")]
pub enum Dtype {
    Bool,
    U8,
    I8,
    U16,
    I16,
    U32,
    I32,
    U64,
    I64,
    F16,
    Bf16,
    F32,
    F64,
    C64,
    F8E5M2,
    F8E4M3,
    F8E8M0,
    F6E2M3,
    F6E3M2,
    F4,
    /// Flat blocks of 128 codes and one scale (GGUF 36).
    I2S,
    /// The same in blocks of 64, as some ARM builds wrote it.
    I2SNarrow,
    /// 256 weights in base 3 and a scale (GGUF 34).
    Tq1_0,
    /// 256 weights of two bits and a scale (GGUF 35).
    Tq2_0,
    /// 64 weights of two bits and a scale (GGUF 42).
    Q2_0,
    /// The same with 128 weights, as older files have it under the same number.
    Q2_0Wide,
    /// 128 codes of two bits and a scale, in the layout of [`Q2_0Wide`](Self::Q2_0Wide) (GGUF 142).
    Pq2_0,
    /// 128 weights in base 3 and a scale (GGUF 143).
    Ptq1_0,
    /// 128 signs and a scale (GGUF 41): binary weights, which are ternary without a zero.
    Q1_0,
    /// Rows of two-bit codes with a scale (GGUF 135).
    Iq2Bn,
    /// Rows of codes in base 3 with a scale (GGUF 134).
    Iq1Bn,
    /// 32 integers of eight bits and a scale (GGUF 8).
    Q8_0,
    /// 32 integers of four bits and a scale (GGUF 2).
    Q4_0,
    /// 256 integers of four bits with a scale and a minimum for each run of 32 (GGUF 12).
    Q4K,
    /// 256 integers of six bits with scales of sixteen (GGUF 14).
    Q6K,
    /// Five weights a byte in base 3; rows end with a whole byte (`.setun`).
    Base3,
    /// Codes as [`setun_ops::ternary`] has them, then scales: put together by a reader whose format
    /// keeps them apart.
    ScaledCodes,
    /// The same of a table, with a scale for each run of this many columns, a multiple of 32: of a
    /// table that is known before its data.
    ScaledTable(u32),
}

/// How the bytes of a tensor are counted.
#[derive(Clone, Copy)]
enum Count {
    /// This many bits for each element, flat.
    Bits(u64),
    /// Rows of whole blocks: elements and bytes of a block, and bytes before the blocks of a row.
    Rows { elements: u64, bytes: u64, before: u64 },
    /// [`Dtype::I2S`], with this many elements a block.
    I2S { elements: u64 },
    /// [`Dtype::Base3`].
    Base3,
    /// Not before it is put together.
    Unknown,
}

const PLAIN: [(Dtype, &str, u64); 20] = [
    (Dtype::Bool, "BOOL", 8),
    (Dtype::U8, "U8", 8),
    (Dtype::I8, "I8", 8),
    (Dtype::U16, "U16", 16),
    (Dtype::I16, "I16", 16),
    (Dtype::U32, "U32", 32),
    (Dtype::I32, "I32", 32),
    (Dtype::U64, "U64", 64),
    (Dtype::I64, "I64", 64),
    (Dtype::F16, "F16", 16),
    (Dtype::Bf16, "BF16", 16),
    (Dtype::F32, "F32", 32),
    (Dtype::F64, "F64", 64),
    (Dtype::C64, "C64", 64),
    (Dtype::F8E5M2, "F8_E5M2", 8),
    (Dtype::F8E4M3, "F8_E4M3", 8),
    (Dtype::F8E8M0, "F8_E8M0", 8),
    (Dtype::F6E2M3, "F6_E2M3", 6),
    (Dtype::F6E3M2, "F6_E3M2", 6),
    (Dtype::F4, "F4", 4),
];

/// The types that pack a row's elements in blocks, with their names and sizes, and whether a
/// weight is a ternary code.
const BLOCKS: [(Dtype, &str, Count, bool); 16] = [
    (Dtype::I2S, "I2_S", Count::I2S { elements: 128 }, true),
    (Dtype::I2SNarrow, "I2_S (64)", Count::I2S { elements: 64 }, true),
    (Dtype::Tq1_0, "TQ1_0", rows(256, 54), true),
    (Dtype::Tq2_0, "TQ2_0", rows(256, 66), true),
    (Dtype::Q2_0, "Q2_0 (64)", rows(64, 18), true),
    (Dtype::Q2_0Wide, "Q2_0 (128)", rows(128, 34), true),
    (Dtype::Pq2_0, "PQ2_0", rows(128, 34), true),
    (Dtype::Ptq1_0, "PTQ1_0", rows(128, 28), true),
    (Dtype::Q1_0, "Q1_0", rows(128, 18), true),
    (Dtype::Iq2Bn, "IQ2_BN", Count::Rows { elements: 64, bytes: 16, before: 4 }, true),
    (Dtype::Iq1Bn, "IQ1_BN", Count::Rows { elements: 64, bytes: 13, before: 2 }, true),
    (Dtype::Q8_0, "Q8_0", rows(32, 34), false),
    (Dtype::Q4_0, "Q4_0", rows(32, 18), false),
    (Dtype::Q4K, "Q4_K", rows(256, 144), false),
    (Dtype::Q6K, "Q6_K", rows(256, 210), false),
    (Dtype::Base3, "TRITS", Count::Base3, true),
];

const fn rows(elements: u64, bytes: u64) -> Count {
    Count::Rows { elements, bytes, before: 0 }
}

/// Bytes of the scale at the end of [`Dtype::I2S`], and what pads it.
pub(crate) const I2S_TAIL: usize = 32;

impl Dtype {
    /// Whether it is a type of GGUF for models with a scale for each 128 columns of a row or fewer, which
    /// were trained with float activations.
    pub(crate) fn is_by_groups(self) -> bool {
        matches!(self, Self::Q2_0 | Self::Q2_0Wide | Self::Pq2_0 | Self::Ptq1_0 | Self::Q1_0)
    }

    /// The type of a name in a safetensors file.
    #[must_use]
    pub fn from_safetensors(name: &str) -> Option<Self> {
        PLAIN.iter().find(|(_, found, _)| *found == name).map(|(dtype, ..)| *dtype)
    }

    /// Whether a safetensors file can hold it.
    #[must_use]
    pub fn is_plain(self) -> bool {
        PLAIN.iter().any(|(dtype, ..)| *dtype == self)
    }

    /// Whether a weight of this type is stored as a ternary code.
    #[must_use]
    pub fn is_ternary(self) -> bool {
        let is_scaled = matches!(self, Self::ScaledCodes | Self::ScaledTable(_));
        is_scaled || BLOCKS.iter().any(|&(dtype, .., is_ternary)| dtype == self && is_ternary)
    }

    /// Bytes of a tensor; none where the shape is not one that the type can have, or the number
    /// overflows.
    #[must_use]
    pub fn bytes(self, shape: &[usize]) -> Option<u64> {
        let elements = shape.iter().try_fold(1, |all: u64, &size| all.checked_mul(size as u64))?;
        let columns = shape.last().map_or(1, |&size| size as u64);
        match self.count() {
            Count::Bits(bits) => {
                let bits = bits.checked_mul(elements)?;
                bits.is_multiple_of(8).then_some(bits / 8)
            }
            Count::I2S { elements: block } => {
                let fits = columns.is_multiple_of(block);
                fits.then(|| (elements / 4).checked_add(I2S_TAIL as u64)).flatten()
            }
            Count::Rows { elements: block, bytes, before } => {
                let row = (columns / block).checked_mul(bytes)?.checked_add(before)?;
                let rows = elements.checked_div(columns).unwrap_or(0);
                columns.is_multiple_of(block).then(|| rows.checked_mul(row)).flatten()
            }
            Count::Base3 => {
                let rows = elements.checked_div(columns).unwrap_or(0);
                rows.checked_mul(columns.div_ceil(5))
            }
            Count::Unknown => None,
        }
    }

    fn count(self) -> Count {
        if let Some((_, _, count, _)) = BLOCKS.iter().find(|(dtype, ..)| *dtype == self) {
            return *count;
        }
        let plain = PLAIN.iter().find(|(dtype, ..)| *dtype == self);
        plain.map_or(Count::Unknown, |(.., bits)| Count::Bits(*bits))
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plain = PLAIN.iter().map(|(dtype, name, _)| (dtype, *name));
        let blocks = BLOCKS.iter().map(|(dtype, name, ..)| (dtype, *name));
        let name = plain.chain(blocks).find(|(dtype, _)| *dtype == self);
        f.write_str(name.map_or("CODES", |(_, name)| name))
    }
}

/// The element types of floating-point tensors.
pub const FLOATS: [Dtype; 3] = [Dtype::F32, Dtype::F16, Dtype::Bf16];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_those_of_the_formats() {
        let bytes = |dtype: Dtype, shape: &[usize]| dtype.bytes(shape);
        assert_eq!(bytes(Dtype::Bf16, &[2, 3]), Some(12));
        assert_eq!(bytes(Dtype::F4, &[3]), None);
        assert_eq!(bytes(Dtype::F32, &[]), Some(4));
        assert_eq!(bytes(Dtype::I2S, &[2, 128]), Some(64 + 32));
        assert_eq!(bytes(Dtype::I2S, &[4, 64]), None);
        assert_eq!(bytes(Dtype::Tq1_0, &[3, 512]), Some(3 * 2 * 54));
        assert_eq!(bytes(Dtype::Tq2_0, &[3, 256]), Some(3 * 66));
        assert_eq!(bytes(Dtype::Tq2_0, &[3, 128]), None);
        assert_eq!(bytes(Dtype::Pq2_0, &[3, 256]), Some(3 * 2 * 34));
        assert_eq!(bytes(Dtype::Pq2_0, &[3, 64]), None);
        assert_eq!(bytes(Dtype::Q1_0, &[3, 256]), Some(3 * 2 * 18));
        assert_eq!(bytes(Dtype::Ptq1_0, &[3, 384]), Some(3 * 3 * 28));
        assert_eq!(bytes(Dtype::Iq2Bn, &[3, 128]), Some(3 * (4 + 32)));
        assert_eq!(bytes(Dtype::Iq1Bn, &[3, 64]), Some(3 * 15));
        assert_eq!(bytes(Dtype::Base3, &[3, 11]), Some(9));
        assert_eq!(bytes(Dtype::U8, &[usize::MAX, 2]), None);
        assert_eq!(bytes(Dtype::Base3, &[0, 0]), Some(0));
    }

    #[test]
    fn names_are_those_of_safetensors() {
        for (dtype, name, _) in PLAIN {
            assert_eq!(Dtype::from_safetensors(name), Some(dtype));
            assert_eq!(dtype.to_string(), name);
        }
        assert_eq!(Dtype::from_safetensors("I2_S"), None);
        for (reference, name) in [
            (safetensors::Dtype::F8_E4M3, "F8_E4M3"),
            (safetensors::Dtype::BF16, "BF16"),
            (safetensors::Dtype::C64, "C64"),
        ] {
            assert_eq!(reference.to_string(), name);
        }
    }
}
