//! Two-bit matrices of `com.microsoft.MatMulNBits`.
//!
//! A row of `columns` weights is cut into blocks of `block` each. A byte holds four codes of
//! neighbouring columns, lowest bits first; each block has a scale and a zero point, 2 where none
//! are stored, and a weight is `(code − zero point) · scale`.

use setun_ops::{
    aligned::Aligned,
    ternary::{PLANE_COLUMNS, Scales, pack_row, row_bytes},
};

use crate::{
    error::CheckpointError,
    scales::fewest,
    side_by_side::{RUN_ROWS, side_by_side},
    tensor::TensorInfo,
};

/// Codes of two bits in a byte.
const FIELDS: usize = 4;
/// In place of a code that is not ternary.
const NONE: u8 = 3;

/// A matrix `[rows, columns]` as it is stored.
pub(super) struct Stored<'a> {
    pub(super) columns: usize,
    pub(super) form: IntegerForm,
    /// `[rows, form.row]`
    pub(super) codes: &'a [u8],
    /// `[rows, columns.div_ceil(block)]`
    pub(super) scales: Vec<f32>,
    pub(super) zeros: Zeros<'a>,
}

/// How integers are stored.
#[derive(Clone, Copy, Debug)]
pub(super) struct IntegerForm {
    /// Of an integer: 2, 4 or 8; a byte holds the lowest first.
    pub(super) bits: usize,
    /// Whether they have a sign: of four bits only.
    pub(super) is_signed: bool,
    /// Columns of a block.
    pub(super) block: usize,
    /// Bytes of a row: those of its columns, perhaps with what pads the last block.
    pub(super) row: usize,
    /// The zero point of a block where none is stored.
    pub(super) zero: u8,
}

/// Zero points.
pub(super) enum Zeros<'a> {
    /// Those of [`IntegerForm::zero`].
    Default,
    /// As many bits each as an integer has, lowest first; rows end with a whole byte.
    Packed(&'a [u8]),
    /// The same without an end of rows.
    Flat(&'a [u8]),
    /// As floats.
    Floats(Vec<f32>),
}

/// The scale of each group of columns of a row; 0 where all its weights are zero.
pub(super) struct Magnitudes {
    values: Vec<f32>,
    groups: usize, // in a row
    width: usize,  // columns of a group, a multiple of 32
    columns: usize,
}

impl Magnitudes {
    /// As few scales as say the same.
    pub(super) fn fewest(self) -> Scales {
        fewest(&self.values, self.groups, self.width, self.columns)
    }

    /// A scale for each group, whatever they say.
    pub(super) fn by_group(mut self) -> Scales {
        self.values.iter_mut().filter(|scale| **scale == 0.0).for_each(|scale| *scale = 1.0);
        Scales::ColumnGroups { columns: self.width, values: self.values }
    }
}

/// Columns of a group of [`Magnitudes`], for blocks of this many.
pub(super) fn group_of(block: usize) -> usize {
    block.max(PLANE_COLUMNS)
}

/// Codes as [`setun_ops::ternary`] has them, and their scales. These are made positive; a block
/// whose scale is zero has weights of zero.
///
/// # Errors
///
/// If a weight is not −1, 0 or +1 times its scale, a scale is not finite, or blocks of 16 columns
/// differ where two share 32.
pub(super) fn unpack(
    info: &TensorInfo,
    stored: &Stored<'_>,
) -> Result<(Aligned<u8>, Magnitudes), CheckpointError> {
    let (rows, columns) = info.expect_matrix()?;
    let groups = columns.div_ceil(stored.form.block);
    if let Some(&found) = stored.scales.iter().find(|scale| !scale.is_finite()) {
        return Err(info.bad_scale(found));
    }
    let mut codes = info.zeroed(rows, row_bytes(columns))?;
    let mut magnitudes = vec![0.0; rows * groups];
    let mut bad = vec![None; rows.div_ceil(RUN_ROWS)];
    let runs = codes.chunks_mut((RUN_ROWS * row_bytes(columns)).max(1));
    let runs = runs.zip(magnitudes.chunks_mut((RUN_ROWS * groups).max(1)));
    let runs = runs.zip(&mut bad).enumerate().collect();
    side_by_side(runs, |(run, ((codes, magnitudes), bad))| {
        *bad = unpack_run(stored, run * RUN_ROWS, groups, codes, magnitudes);
    });
    if let Some((row, column)) = bad.into_iter().flatten().next() {
        return Err(info.not_ternary(row, column));
    }
    Ok((codes, in_planes(info, magnitudes, groups, stored)?))
}

/// Some rows from `first` on; the first place that is not ternary, if there is one.
fn unpack_run(
    stored: &Stored<'_>,
    first: usize,
    groups: usize,
    codes: &mut [u8],
    magnitudes: &mut [f32],
) -> Option<(usize, usize)> {
    let block_columns = stored.form.block;
    let mut row_codes = vec![0; groups * block_columns];
    let rows = codes.chunks_exact_mut(row_bytes(stored.columns).max(1));
    for (place, (packed, magnitudes)) in rows.zip(magnitudes.chunks_exact_mut(groups)).enumerate() {
        let row = first + place;
        let bytes = &stored.codes[row * stored.form.row..][..stored.form.row];
        let blocks = bytes.chunks(block_columns / FIELDS);
        let blocks = blocks.zip(row_codes.chunks_exact_mut(block_columns));
        for (group, ((bytes, block), magnitude)) in blocks.zip(magnitudes).enumerate() {
            let width = block_columns.min(stored.columns - group * block_columns);
            let table = stored.table(row, group, groups);
            for (byte, four) in bytes.iter().zip(block.chunks_exact_mut(FIELDS)) {
                four.copy_from_slice(&table[usize::from(*byte)]);
            }
            let block = &mut block[..width];
            if let Some(column) = block.iter().position(|&code| code == NONE) {
                return Some((row, group * block_columns + column));
            }
            *magnitude = normalize(block, stored.scales[row * groups + group]);
        }
        pack_row(&row_codes[..stored.columns], packed);
    }
    None
}

/// Makes the scale of a block positive; 0 where all its weights are zero.
fn normalize(block: &mut [u8], scale: f32) -> f32 {
    if scale == 0.0 {
        block.fill(1);
    }
    if scale < 0.0 {
        for code in block.iter_mut() {
            *code = 2 - *code;
        }
    }
    if block.iter().all(|&code| code == 1) { 0.0 } else { scale.abs() }
}

/// The magnitudes of groups of 32 columns or a multiple.
fn in_planes(
    info: &TensorInfo,
    magnitudes: Vec<f32>,
    groups: usize,
    stored: &Stored<'_>,
) -> Result<Magnitudes, CheckpointError> {
    let (block, columns) = (stored.form.block, stored.columns);
    if block.is_multiple_of(PLANE_COLUMNS) {
        return Ok(Magnitudes { values: magnitudes, groups, width: block, columns });
    }
    let mut wide = vec![];
    for row in magnitudes.chunks_exact(groups) {
        for pair in row.chunks(PLANE_COLUMNS / block) {
            let largest = pair.iter().copied().fold(0.0, f32::max);
            if pair.iter().any(|&value| value != 0.0 && value != largest) {
                return Err(info.rank("one scale for 32 columns in a row"));
            }
            wide.push(largest);
        }
    }
    let (groups, width) = (columns.div_ceil(PLANE_COLUMNS), PLANE_COLUMNS);
    Ok(Magnitudes { values: wide, groups, width, columns })
}

impl Stored<'_> {
    /// The codes of setun of each byte, in a block.
    fn table(&self, row: usize, group: usize, groups: usize) -> &'static Table {
        let zero = self.zero(row, group, groups);
        let whole = (0_u8..4).find(|&whole| f32::from(whole) == zero);
        whole.map_or(&NO_TABLE, |zero| &TABLES[usize::from(zero)])
    }

    /// The zero point of a block.
    pub(super) fn zero(&self, row: usize, group: usize, groups: usize) -> f32 {
        let bits = self.form.bits;
        match &self.zeros {
            Zeros::Default => f32::from(self.form.zero),
            Zeros::Packed(bytes) => {
                let in_row = groups.div_ceil(8 / bits);
                self.form.integer(&bytes[row * in_row..], group)
            }
            Zeros::Flat(bytes) => self.form.integer(bytes, row * groups + group),
            Zeros::Floats(values) => values[row * groups + group],
        }
    }
}

impl IntegerForm {
    /// One of the integers that begin with a byte.
    pub(super) fn integer(&self, bytes: &[u8], index: usize) -> f32 {
        let in_byte = 8 / self.bits;
        let shifted = bytes[index / in_byte] >> (self.bits * (index % in_byte));
        let integer = shifted & (u8::MAX >> (8 - self.bits));
        if self.is_signed && integer >> (self.bits - 1) != 0 {
            return f32::from(integer) - f32::from(1_u16 << self.bits);
        }
        f32::from(integer)
    }
}

/// Codes of setun by byte.
type Table = [[u8; FIELDS]; 256];

/// By zero point.
static TABLES: [Table; 4] = [table(0), table(1), table(2), table(3)];
/// Of a zero point between the codes.
static NO_TABLE: Table = [[NONE; FIELDS]; 256];

#[expect(clippy::cast_possible_truncation, reason = "a byte is below 256, and a code below 3")]
const fn table(zero: u8) -> Table {
    let mut table = [[NONE; FIELDS]; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut field = 0;
        while field < FIELDS {
            let stored = (byte as u8) >> (2 * field) & 3;
            // weight + 1
            if stored + 1 >= zero && stored + 1 - zero <= 2 {
                table[byte][field] = stored + 1 - zero;
            }
            field += 1;
        }
        byte += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use serde_json::Value;
    use setun_ops::ternary::TernaryMatrix;

    use super::*;
    use crate::{
        dtype::Dtype,
        tensor::{Tensor, TensorData},
    };

    /// Random matrices and their weights, as `make.py` decodes them.
    const CASES: &str = include_str!("../../../../tests/fixtures/onnx/nbits.json");

    fn info(rows: usize, columns: usize) -> TensorInfo {
        let data = TensorData::Bytes(vec![].into());
        Tensor::new("w", Dtype::ScaledCodes, &[rows, columns], data).info
    }

    fn bytes(case: &Value, key: &str) -> Vec<u8> {
        let text = case[key].as_str().unwrap_or_default();
        (0..text.len())
            .step_by(2)
            .map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap())
            .collect()
    }

    fn floats(case: &Value, key: &str) -> Vec<f32> {
        bytes(case, key).as_chunks().0.iter().copied().map(f32::from_le_bytes).collect()
    }

    fn two_bits(columns: usize, block: usize) -> IntegerForm {
        let row = columns.next_multiple_of(block) / FIELDS;
        IntegerForm { bits: 2, is_signed: false, block, row, zero: 2 }
    }

    #[test]
    fn weights_are_those_of_the_definition() {
        let text: Value = serde_json::from_str(CASES).unwrap();
        let cases = text["cases"].as_array().unwrap();
        assert_eq!(cases.len(), 12);
        for case in cases {
            let size = |key: &str| usize::try_from(case[key].as_u64().unwrap()).unwrap();
            let (rows, columns, block) = (size("rows"), size("columns"), size("block"));
            let (codes, zero_points) = (bytes(case, "codes"), bytes(case, "zero_points"));
            let zeros = match case["zeros"].as_str() {
                None => Zeros::Default,
                Some("packed") => Zeros::Packed(&zero_points),
                Some(_) => Zeros::Floats(floats(case, "zero_points")),
            };
            let scales = floats(case, "scales");
            let form = two_bits(columns, block);
            let stored = Stored { columns, form, codes: &codes, scales, zeros };
            let (codes, scales) = unpack(&info(rows, columns), &stored).unwrap();
            let scales = scales.fewest();
            let matrix = TernaryMatrix::new(rows, columns, codes, scales).unwrap();
            for (place, &expected) in floats(case, "weights").iter().enumerate() {
                let (row, column) = (place / columns, place % columns);
                let weight = f32::from(matrix.weight(row, column)) * matrix.scale(row, column);
                assert_eq!(weight, expected, "{block} {} at {row}, {column}", case["zeros"]);
            }
            let apart = case["onnxruntime"].as_f64().unwrap();
            assert!(apart < 1e-6, "onnxruntime computes the same: {apart}");
        }
    }

    fn unpack_one(
        bytes: &[u8],
        scales: Vec<f32>,
        zeros: Zeros<'_>,
    ) -> Result<(Aligned<u8>, Scales), CheckpointError> {
        let (columns, form) = (40, two_bits(40, 16));
        let stored = Stored { columns, form, codes: bytes, scales, zeros };
        unpack(&info(2, columns), &stored).map(|(codes, scales)| (codes, scales.fewest()))
    }

    #[test]
    fn what_is_not_ternary_is_found() {
        let mut bytes = vec![0xaa; 2 * 3 * 4];
        let one = |bytes: &[u8]| unpack_one(bytes, vec![2.0; 6], Zeros::Default);
        assert_eq!(one(&bytes).map(|(_, scales)| scales), Ok(Scales::Tensor(1.0)));
        bytes[12 + 9] = 0b10_10_00_10; // row 1, column 37: code 0
        let tensor = "w".to_owned();
        let error = CheckpointError::NotTernary { tensor, row: 1, column: 37 };
        assert_eq!(one(&bytes), Err(error));
        bytes[12 + 9] = 0xaa;
        bytes[12 + 11] = 0; // what pads a row may be anything
        assert!(one(&bytes).is_ok());
        for zero in [1.5, -1.0, 4.0, f32::NAN] {
            let zeros = Zeros::Floats(vec![2.0, 2.0, 2.0, 2.0, zero, 2.0]);
            let error = unpack_one(&bytes, vec![2.0; 6], zeros).unwrap_err();
            let found = matches!(error, CheckpointError::NotTernary { row: 1, column: 16, .. });
            assert!(found, "{zero}: {error}");
        }
        let scales = vec![1.0, 1.0, f32::NAN, 1.0, 1.0, 1.0];
        let error = unpack_one(&bytes, scales, Zeros::Default).unwrap_err();
        assert!(matches!(error, CheckpointError::Scale { .. }), "{error}");
    }

    #[test]
    fn as_few_scales_as_say_the_same() {
        // Codes of 3: weights of 1 everywhere.
        let bytes = vec![0xff; 2 * 3 * 4];
        let scales = |values: [f32; 6]| {
            unpack_one(&bytes, values.to_vec(), Zeros::Default).map(|(_, scales)| scales)
        };
        assert_eq!(scales([2.0; 6]), Ok(Scales::Tensor(2.0)));
        assert_eq!(scales([2.0, -2.0, 2.0, -2.0, 2.0, 2.0]), Ok(Scales::Tensor(2.0)));
        let rows = scales([2.0, 2.0, 2.0, 3.0, 3.0, 0.0]);
        assert_eq!(rows, Ok(Scales::Rows(vec![2.0, 3.0])));
        let groups = Scales::ColumnGroups { columns: 32, values: vec![2.0, 4.0, 3.0, 3.0] };
        assert_eq!(scales([2.0, 2.0, 4.0, 3.0, 3.0, 3.0]), Ok(groups));
        assert!(scales([2.0, 4.0, 2.0, 2.0, 2.0, 2.0]).is_err(), "16 columns by themselves");
    }
}
