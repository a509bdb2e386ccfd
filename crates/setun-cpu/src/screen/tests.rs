//! Every logit lies between its bounds, and they are close.

use proptest::prelude::*;
use setun_ops::{
    DenseMatrix, dense::DenseValues, head::head_logit, random::Random, screen_dot::screen_dot,
};

use super::{
    hidden::{split, zero},
    *,
};
use crate::{
    isa::{Isa, with_token},
    level::Level,
    team::Team,
};

/// Hidden rows that meet a screen together.
const ROWS: usize = 5;

fn screen(table: &DenseMatrix, isa: Isa) -> Option<Screen> {
    let mut screen = None;
    let mut team = Team::new(1).expect("one thread");
    team.step(|crew| screen = Screen::new(table, isa, crew));
    screen
}

/// The bounds of all tokens on the best level of this machine. None without a screen, or where
/// it is not proven.
fn bounds(table: &DenseMatrix, x: &[f32]) -> Option<Vec<(f32, f32)>> {
    let isa = Level::ALL.into_iter().find_map(Isa::detect)?;
    passes(table, x, isa).map(|[whole, ..]| whole)
}

/// The bounds of all tokens: from whole codes, from coarse ones, and those that are made closer by
/// fine ones. The last two are the first where there are no planes.
fn passes(table: &DenseMatrix, x: &[f32], isa: Isa) -> Option<[Vec<(f32, f32)>; 3]> {
    let screen = screen(table, isa)?;
    let mut planes = vec![1; 2 * screen.columns()];
    let hidden = Hidden::new(&screen, x, &mut planes)?;
    let planes = planes.split_at(screen.columns()).into();
    let of = |pass, rows| bounds_of(&screen, isa, pass, (&hidden, planes), rows);
    // Some hidden rows alike, however many of them meet together.
    let whole = of(Pass::Whole, ROWS);
    assert_eq!(whole, of(Pass::Whole, 1));
    if !screen.has_planes() {
        return Some([whole.clone(), whole.clone(), whole]);
    }
    let coarse = of(Pass::Coarse, 1);
    assert_eq!(coarse, of(Pass::Coarse, ROWS));
    let (mut lower, mut upper): (Vec<f32>, Vec<f32>) = coarse.iter().copied().unzip();
    let tokens = 0..table.rows();
    let left = |token: usize, _| !token.is_multiple_of(5);
    with_token!(isa, token => {
        screen.closer_bounds(token, tokens, (&hidden, planes), [&mut lower, &mut upper], left)
    });
    Some([whole, coarse, lower.into_iter().zip(upper).collect()])
}

/// The bounds of a pass, where this many hidden rows alike meet the screen.
fn bounds_of(
    screen: &Screen,
    isa: Isa,
    pass: Pass,
    (hidden, planes): (&Hidden, [&[i8]; 2]),
    rows: usize,
) -> Vec<(f32, f32)> {
    let hidden = [*hidden; ROWS];
    let planes = [planes; ROWS];
    let tokens = 0..screen.codes.rows();
    let mut bounds = vec![[(0.0, 0.0); ROWS]; tokens.len()];
    let mut store = |row: usize, block: Range<usize>, [lower, upper]: &Bounds| {
        for (index, bounds) in bounds[block].iter_mut().enumerate() {
            bounds[row] = (lower[index], upper[index]);
        }
    };
    let (hidden, planes) = (&hidden[..rows], &planes[..rows]);
    let mut unpacked = vec![0; TILE_TOKENS * screen.columns()];
    with_token!(isa, token => {
        screen.bounds((token, pass), tokens, hidden, planes, &mut unpacked, &mut store);
    });
    assert!(bounds.iter().all(|bounds| bounds[..rows].iter().all(|of| of == &bounds[0])));
    bounds.into_iter().map(|bounds| bounds[0]).collect()
}

/// Rows of all magnitudes, some with one element that stands out.
fn finite(random: &mut Random, rows: usize, columns: usize) -> Vec<f32> {
    let mut values = vec![];
    for _ in 0..rows {
        let mut row = random.floats(columns);
        if random.chance(0.2) {
            row[random.below(columns)] *= 1000.0;
        }
        values.extend(row);
    }
    values
}

proptest! {
    #[test]
    fn logits_lie_between_their_bounds(seed: u64) {
        let random = &mut Random::new(seed);
        let columns = random.pick(&[1, 16, 96, 100, 320, 2560]);
        let rows = random.pick(&[1, 9, 43, 100]);
        let table = DenseValues::F32(finite(random, rows, columns).into());
        let table = DenseMatrix::new(rows, columns, table).expect("sizes agree");
        let x = finite(random, 1, columns);
        if let Some(bounds) = bounds(&table, &x) {
            let mut scratch = vec![0.0; columns];
            for (token, (lower, upper)) in bounds.into_iter().enumerate() {
                let logit = head_logit(&table, token, &x, &mut scratch);
                prop_assert!(lower <= logit && logit <= upper, "{lower} {logit} {upper}");
            }
        }
    }
}

#[test]
fn logits_lie_between_the_bounds_of_every_pass() {
    if cfg!(miri) {
        return;
    }
    let random = &mut Random::new(11);
    for (rows, columns) in [(1643, 2560), (8203, 512), (4099, 1024)] {
        let table = DenseValues::F32(finite(random, rows, columns).into());
        let table = DenseMatrix::new(rows, columns, table).expect("sizes agree");
        let x = finite(random, 1, columns);
        let (mut scratch, mut expected) = (vec![0.0; columns], None);
        for isa in Level::ALL.into_iter().filter_map(Isa::detect) {
            let found = passes(&table, &x, isa).expect("a screen");
            let [whole, coarse, closer] = &found;
            for token in (0..rows).step_by(7).chain(rows - 9..rows) {
                let logit = head_logit(&table, token, &x, &mut scratch);
                for (lower, upper) in [whole[token], coarse[token], closer[token]] {
                    assert!(lower <= logit && logit <= upper, "{lower} {logit} {upper}");
                }
                let width = |(lower, upper): (f32, f32)| upper - lower;
                let near = if token % 5 == 0 { coarse[token] } else { whole[token] };
                let (found, expected) = (width(closer[token]), width(near));
                assert!((found - expected).abs() <= expected / 1000.0, "{found} {expected}");
            }
            assert_eq!(*expected.get_or_insert(found.clone()), found, "of all levels");
        }
    }
}

#[test]
fn bounds_are_close_for_plain_rows() {
    if Level::available().is_empty() {
        return;
    }
    let row: Vec<f32> = (0..256_u16).map(|x| (f32::from(x) - 100.0) / 128.0).collect();
    let square: f32 = row.iter().map(|x| x * x).sum();
    let table =
        DenseMatrix::new(1, 256, DenseValues::F32(row.clone().into())).expect("sizes agree");
    let (lower, upper) = bounds(&table, &row).expect("a screen")[0];
    assert!(lower < square && square < upper && upper - lower < square / 50.0);
}

#[test]
fn screens_of_all_levels_are_equal() {
    let random = &mut Random::new(3);
    for (rows, columns) in [(1, 1), (9, 100), (70, 2560), (4097, 1024)] {
        let table = DenseValues::F32(finite(random, rows, columns).into());
        let table = DenseMatrix::new(rows, columns, table).expect("sizes agree");
        let levels = Level::ALL.into_iter().filter_map(Isa::detect);
        let screens: Vec<_> = levels.map(|isa| screen(&table, isa).expect("a screen")).collect();
        for pair in screens.windows(2) {
            let equal = format!("{:?}", pair[0]) == format!("{:?}", pair[1]);
            assert!(equal, "{rows} rows of {columns}");
        }
    }
}

#[test]
fn what_is_not_finite_or_too_large_has_no_screen() {
    let ones = vec![1.0; 32];
    let with = |value: f32| {
        let mut values = ones.clone();
        values[7] = value;
        DenseMatrix::new(1, 32, DenseValues::F32(values.into())).expect("sizes agree")
    };
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        assert!(bounds(&with(bad), &ones).is_none());
        let mut x = ones.clone();
        x[3] = bad;
        assert!(bounds(&with(1.0), &x).is_none());
    }
    assert!(bounds(&with(1e19), &ones).is_none(), "a logit beyond 2^63 is not proven");
}

#[test]
fn integers_are_put_together_from_their_planes() {
    for integer in [-32_512, -129, -128, -1, 0, 127, 128, 255, 32_512] {
        let (high, low) = split(integer);
        let hidden = Hidden { zero: zero(i64::from(integer)), ..Hidden::default() };
        let dots = [high, low].map(|plane| screen_dot(&[127], &[plane]));
        assert_eq!(hidden.dot(dots), 63.0 * f64::from(integer));
    }
}
