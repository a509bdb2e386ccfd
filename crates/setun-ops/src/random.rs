//! Random numbers and weights that follow from a seed alone.

use half::{bf16, f16};

use crate::{
    DenseMatrix, TernaryMatrix,
    cache::round_f16,
    dense::DenseValues,
    noise::{GOLDEN, scramble},
    ternary::{Scales, pack_row, row_bytes},
};

/// A generator of random numbers (`SplitMix64`).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The same seed gives the same numbers.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN);
        scramble(self.0)
    }

    /// 16 random bits.
    pub fn u16(&mut self) -> u16 {
        let [a, b, ..] = self.bits().to_ne_bytes();
        u16::from_ne_bytes([a, b])
    }

    /// 8 random bits.
    pub fn i8(&mut self) -> i8 {
        self.bits().to_ne_bytes()[0].cast_signed()
    }

    /// A number below `limit`, or 0 if that is 0.
    #[expect(clippy::cast_possible_truncation, reason = "below a usize")]
    pub fn below(&mut self, limit: usize) -> usize {
        (self.bits() % (limit.max(1) as u64)) as usize
    }

    /// A number from `least` to `most`, both included.
    pub fn between(&mut self, least: usize, most: usize) -> usize {
        least + self.below(most.saturating_sub(least) + 1)
    }

    /// True with a probability.
    pub fn chance(&mut self, probability: f32) -> bool {
        self.unit() < probability
    }

    /// One of several.
    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    /// Uniform in 0..1.
    #[expect(clippy::cast_precision_loss, reason = "24 bits are exact")]
    pub fn unit(&mut self) -> f32 {
        (self.bits() >> 40) as f32 / 16_777_216.0
    }

    /// Values of one magnitude around 0, some of them zero, tiny or equal in magnitude.
    pub fn floats(&mut self, len: usize) -> Vec<f32> {
        let magnitude = self.pick(&[1e-32, 1e-7, 0.02, 1.0, 1.0, 3.0, 40.0, 1e6]);
        (0..len)
            .map(|_| match self.below(40) {
                0 => 0.0,
                1 => -0.0,
                2 => f32::from_bits(1 + (u32::from(self.u16()) << 3)),
                3 => magnitude,
                4 => -magnitude * 0.5,
                _ => magnitude * (self.unit() + self.unit() - 1.0),
            })
            .collect()
    }

    /// A table of rows, each of its own magnitude. A few hold a value that is not finite.
    pub fn table(&mut self, rows: usize, columns: usize) -> Vec<f32> {
        let mut values = Vec::with_capacity(rows * columns);
        for _ in 0..rows {
            let mut row = self.floats(columns);
            if self.chance(0.03) && columns > 0 {
                let bad = self.pick(&[f32::NAN, f32::INFINITY, f32::NEG_INFINITY]);
                let place = self.below(columns);
                row[place] = bad;
            }
            values.extend(row);
        }
        values
    }

    /// A table of any element type. Random bits give subnormal and huge elements too.
    ///
    /// # Panics
    ///
    /// If there are rows without columns.
    pub fn dense(&mut self, rows: usize, columns: usize) -> DenseMatrix {
        let len = rows * columns;
        let values = match self.below(5) {
            0 => DenseValues::F32(self.table(rows, columns).into()),
            1 if self.chance(0.3) => {
                DenseValues::F16((0..len).map(|_| f16::from_bits(self.u16())).collect())
            }
            1 => DenseValues::F16(self.table(rows, columns).into_iter().map(round_f16).collect()),
            2 => {
                let values = self.table(rows, columns).into_iter();
                DenseValues::Bf16(values.map(bf16::from_f32).collect())
            }
            3 => DenseValues::Int8Rows {
                codes: (0..len).map(|_| self.i8().max(-127)).collect(),
                scales: (0..rows).map(|_| self.scale()).collect(),
            },
            _ => DenseValues::Ternary(self.ternary(rows, columns)),
        };
        DenseMatrix::new(rows, columns, values).expect("sizes agree and scales are finite")
    }

    /// A ternary matrix with scales of any kind.
    ///
    /// # Panics
    ///
    /// If there are no columns.
    pub fn ternary(&mut self, rows: usize, columns: usize) -> TernaryMatrix {
        let groups = 32 * self.between(1, 5);
        let scales = match self.below(3) {
            0 => Scales::Tensor(self.scale()),
            1 => Scales::Rows((0..rows).map(|_| self.scale()).collect()),
            _ => Scales::ColumnGroups {
                columns: groups,
                values: (0..rows * columns.div_ceil(groups)).map(|_| self.scale()).collect(),
            },
        };
        self.ternary_with(rows, columns, scales)
    }

    /// A ternary matrix with these scales. Some rows hold one code only: the extremes of sums.
    ///
    /// # Panics
    ///
    /// If the scales do not fit, or there are no columns.
    pub fn ternary_with(&mut self, rows: usize, columns: usize, scales: Scales) -> TernaryMatrix {
        let mut packed = vec![0; rows * row_bytes(columns)];
        for packed in packed.chunks_exact_mut(row_bytes(columns)) {
            let only = if self.chance(0.1) { Some(self.pick(&[0, 2])) } else { None };
            let codes: Vec<u8> =
                (0..columns).map(|_| only.unwrap_or_else(|| self.pick(&[0, 1, 2]))).collect();
            pack_row(&codes, packed);
        }
        TernaryMatrix::new(rows, columns, packed, scales).expect("codes are ternary")
    }

    /// A finite scale.
    pub fn scale(&mut self) -> f32 {
        self.pick(&[1.0, 0.02, 1e-32, -1.5]) * (0.5 + self.unit())
    }
}
