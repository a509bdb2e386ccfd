//! The screen before a head: bounds of all logits from few bits, proven in `docs/numerics.md`.
//!
//! A row `w` of the table is kept as `ŵ = scale × integer`, with integers of 7 bits; a hidden row
//! `x` is taken as `x̂ = t × integer`, with integers of 16 bits in two int8 planes. Their product
//! `ŵ·x̂` is exact in integers, and the logit of the definition is no farther from it than
//!
//! ```text
//! ‖w−ŵ‖ ‖x‖  +  ‖ŵ‖ ‖x−x̂‖  +  γ ‖w‖ ‖x‖  +  columns × 2^−149
//! ```
//!
//! where `γ` covers the roundings of the definition's own sum, and the last term its underflows.
//! Norms are rounded up, and `‖w‖ ≤ ‖ŵ‖ + ‖w−ŵ‖`, so two numbers a row are enough.

use setun_ops::{
    DenseMatrix,
    aligned::Aligned,
    best::MOST_LOGIT,
    dense::DenseValues,
    exp::ROUND,
    fold::LANES,
    screen_dot::{MOST_TABLE, SCREEN_COLUMNS, ZERO_CODE},
    ternary::MAX_COLUMNS,
};

use crate::{
    screen_dot::{ScreenDot, TILE_TOKENS},
    split::{Claims, Grid},
    step::zeroed,
    team::Crew,
};

/// Norms in `f64` are enlarged by this, far more than their sums can have lost.
const ROUND_UP: f64 = 1.0 + power(-30);

/// What a bound is enlarged by, relative to the logit and itself: more than what its evaluation
/// in `f64` and its conversion to `f32` can lose.
const BOUND_ERROR: f64 = power(-22);

/// More than a conversion to a subnormal `f32` can lose: 2^−148.
const LEAST_ERROR: f64 = power(-148);

/// The largest magnitude of a hidden row's integers: both planes stay within an int8.
const MOST_HIDDEN: f32 = 32_512.0;

/// The rounding of `f32`, 2^−24.
const UNIT: f64 = power(-24);

/// 2 to the power of an exponent.
const fn power(exponent: i64) -> f64 {
    f64::from_bits((1023 + exponent).cast_unsigned() << 52)
}

/// Rows of a table that a member makes ready at once.
const RUN: usize = 64;

/// A table as 7-bit integers with bounds.
#[derive(Debug)]
pub(crate) struct Screen {
    columns: usize,           // padded
    codes: Aligned<u8>,       // [rows, columns]
    rows: Aligned<RowBounds>, // [rows]
    largest_norm: f64,        // ≥ ‖w‖ of every row
}

/// What is known of a row.
#[derive(Clone, Copy, Debug, Default)]
struct RowBounds {
    scale: f32,
    error: f32, // ≥ ‖w−ŵ‖
    norm: f32,  // ≥ ‖ŵ‖
}

impl Screen {
    /// The screen of a table; none for one that is small already (int8, ternary), is not finite
    /// or so large that its norms are not, or where there is no memory for it. The head then
    /// runs in full.
    pub(crate) fn new(table: &DenseMatrix, crew: &Crew<'_>) -> Option<Self> {
        let small =
            matches!(table.values(), DenseValues::Int8Rows { .. } | DenseValues::Ternary(_));
        if small || table.columns() == 0 || table.columns() > MAX_COLUMNS {
            return None;
        }
        let columns = table.columns().next_multiple_of(SCREEN_COLUMNS);
        let mut codes: Aligned<u8> = zeroed(table.rows().checked_mul(columns)?, "a screen").ok()?;
        let mut rows: Aligned<RowBounds> = zeroed(table.rows(), "a screen").ok()?;
        let claims = Claims::new((
            Grid::new(&mut codes, columns).tiles(RUN, columns),
            Grid::new(&mut rows, 1).tiles(RUN, 1),
        ));
        crew.run(&|_| {
            let mut widened = vec![0.0; table.columns()];
            while let Some((_, (mut codes, mut bounds))) = claims.next() {
                let first = codes.rows().start;
                for row in 0..codes.rows().len() {
                    table.widen_row(first + row, &mut widened);
                    bounds.row(row)[0] = screen_row(&widened, codes.row(row));
                }
            }
        });
        let norm = |row: &RowBounds| f64::from(row.norm) + f64::from(row.error);
        let finite = rows.iter().all(|row| row.error.is_finite() && row.norm.is_finite());
        let largest_norm = rows.iter().map(norm).fold(0.0, f64::max);
        finite.then_some(Self { columns, codes, rows, largest_norm })
    }

    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.codes) + size_of_val(&*self.rows)
    }

    /// Padded columns: the length of a plane.
    pub(crate) fn columns(&self) -> usize {
        self.columns
    }

    /// Bounds of the logits of four tokens: lower ones, upper ones. Beyond the table's last
    /// token it is repeated.
    #[inline(always)]
    pub(crate) fn bounds<D: ScreenDot>(
        &self,
        isa: D,
        first: usize,
        hidden: &Hidden,
        planes: [&[i8]; 2],
    ) -> [[f32; TILE_TOKENS]; 2] {
        let token = |index: usize| (first + index).min(self.rows.len() - 1);
        let codes =
            std::array::from_fn(|index| &self.codes[token(index) * self.columns..][..self.columns]);
        let dots = isa.screen_dots(codes, planes);
        let mut bounds = [[0.0; TILE_TOKENS]; 2];
        for (index, dots) in dots.into_iter().enumerate() {
            let row = self.rows[token(index)];
            let logit = f64::from(row.scale) * hidden.scale * hidden.dot(dots);
            let bound = f64::from(row.error) * hidden.by_error
                + f64::from(row.norm) * hidden.by_norm
                + hidden.underflow;
            let margin = bound + ((logit.abs() + bound) * BOUND_ERROR + LEAST_ERROR);
            bounds[0][index] = to_f32(logit - margin);
            bounds[1][index] = to_f32(logit + margin);
        }
        bounds
    }
}

/// A row as codes, and its bounds: not finite if the row is not.
fn screen_row(row: &[f32], codes: &mut [u8]) -> RowBounds {
    let most = largest_magnitude(row);
    let scale = most / f32::from(MOST_TABLE);
    let (codes, padding) = codes.split_at_mut(row.len());
    padding.fill(ZERO_CODE);
    let divisor = if scale > 0.0 { scale } else { f32::INFINITY };
    let most = f32::from(MOST_TABLE);
    let mut squares = 0;
    for (&w, code) in row.iter().zip(&mut *codes) {
        // A tiny scale is not exact, so a quotient may exceed the range. A NaN becomes 0.
        let integer = to_i32(round((w / divisor).clamp(-most, most)));
        squares += integer * integer;
        *code = to_code(integer);
    }
    let error = |(&w, &code): (&f32, &u8)| {
        let integer = f64::from(code) - f64::from(ZERO_CODE);
        let error = f64::from(w) - f64::from(scale) * integer;
        error * error
    };
    let error = sum(row.iter().zip(&*codes).map(error)).sqrt();
    let norm = f64::from(scale) * f64::from(squares).sqrt();
    RowBounds { scale, error: up(error * ROUND_UP), norm: up(norm * ROUND_UP) }
}

/// A hidden row made ready for a screen.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Hidden {
    scale: f64,     // t
    sum: i64,       // of its integers
    by_error: f64,  // what a row's error adds to the bound
    by_norm: f64,   // what a row's norm adds
    underflow: f64, // what is added in any case
}

impl Hidden {
    /// Writes the planes of `x`, twice `[screen.columns()]`. None where `x` is not finite, or
    /// logits could be too large to be ranked.
    pub(crate) fn new(screen: &Screen, x: &[f32], planes: &mut [i8]) -> Option<Self> {
        let most = largest_magnitude(x);
        if !most.is_finite() {
            return None;
        }
        let (high, low) = planes.split_at_mut(screen.columns);
        high.fill(0);
        low.fill(0);
        let scale = most / MOST_HIDDEN;
        let divisor = if scale > 0.0 { scale } else { f32::INFINITY };
        let mut sum_of_integers = 0;
        for (&x, (high, low)) in x.iter().zip(high.iter_mut().zip(&mut *low)) {
            let integer = to_i32(round((x / divisor).clamp(-MOST_HIDDEN, MOST_HIDDEN)));
            sum_of_integers += i64::from(integer);
            (*high, *low) = split(integer);
        }
        let norm = sum(x.iter().map(|&x| f64::from(x) * f64::from(x))).sqrt() * ROUND_UP;
        let error = |(&x, (&high, &low)): (&f32, (&i8, &i8))| {
            let integer = f64::from(i32::from(high) * 256 + i32::from(low));
            let error = f64::from(x) - f64::from(scale) * integer;
            error * error
        };
        let error = sum(x.iter().zip(high.iter().zip(&*low)).map(error)).sqrt() * ROUND_UP;
        // Half of the most, because rounding can enlarge a logit a little.
        if screen.largest_norm * norm > f64::from(MOST_LOGIT) / 2.0 {
            return None;
        }
        let gamma = gamma(x.len());
        Some(Self {
            scale: f64::from(scale),
            sum: sum_of_integers,
            by_error: norm * (1.0 + gamma),
            by_norm: error + gamma * norm,
            underflow: columns_to_f64(x.len()) * (LEAST_ERROR / 2.0),
        })
    }

    /// `Σ integer × integer` from the sums of both planes over codes; exact.
    #[inline(always)]
    #[expect(clippy::cast_precision_loss, reason = "below 63 × 32,512 × 132,096 < 2^53")]
    fn dot(&self, [high, low]: [i32; 2]) -> f64 {
        let by_code = 256 * i64::from(high) + i64::from(low);
        (by_code - i64::from(ZERO_CODE) * self.sum) as f64
    }
}

/// `n u / (1 − n u)` for the `n` roundings that a product meets on its way into a fold: its own,
/// those of its lane, and four between lanes.
fn gamma(columns: usize) -> f64 {
    let roundings = columns_to_f64(columns.div_ceil(LANES) + 5) * UNIT;
    roundings / (1.0 - roundings) * ROUND_UP
}

/// The two planes of an integer within ±32,512.
#[expect(clippy::cast_possible_truncation, reason = "both lie in −128..=127")]
fn split(integer: i32) -> (i8, i8) {
    let high = (integer + 128) >> 8;
    (high as i8, (integer - 256 * high) as i8)
}

/// By bits, so that a NaN counts as larger than everything.
fn largest_magnitude(row: &[f32]) -> f32 {
    f32::from_bits(row.iter().map(|x| x.to_bits() & 0x7fff_ffff).max().unwrap_or(0))
}

/// To the nearest integer, for magnitudes below 2^22.
fn round(x: f32) -> f32 {
    (x + ROUND) - ROUND
}

/// A sum in eight lanes, which compilers turn into vectors. The order does not matter: it is
/// rounded up.
fn sum(terms: impl Iterator<Item = f64>) -> f64 {
    let mut lanes = [0.0; 8];
    for (index, term) in terms.enumerate() {
        lanes[index % 8] += term;
    }
    lanes.iter().sum()
}

/// To `f32`, never down.
fn up(x: f64) -> f32 {
    let nearest = to_f32(x);
    if f64::from(nearest) < x { nearest.next_up() } else { nearest }
}

#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "to the nearest, as the bounds allow for")]
fn to_f32(x: f64) -> f32 {
    x as f32
}

#[expect(clippy::cast_possible_truncation, reason = "an integer of at most 16 bits")]
fn to_i32(x: f32) -> i32 {
    x as i32
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "1..=127")]
fn to_code(integer: i32) -> u8 {
    (integer + i32::from(ZERO_CODE)) as u8
}

#[expect(clippy::cast_precision_loss, reason = "at most 132,096")]
fn columns_to_f64(columns: usize) -> f64 {
    columns as f64
}

#[cfg(test)]
mod tests;
