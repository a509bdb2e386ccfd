//! Each kernel alone against its definition.

use half::{bf16, f16};
use setun_ops::{
    attention::maximum,
    cache::round_f16,
    column_sums::column_sums,
    exp::exp as exact_exp,
    fold::{fold16, fold16_dot},
    quantize::quantize_row as exact_quantize_row,
    random::Random,
    screen_dot::{SCREEN_COLUMNS, screen_dot},
    ternary::BLOCK_COLUMNS,
    ternary_dot::{ternary_dot, ternary_dot_range},
};

use super::{activations, packed_row, panels::check_ternary_panel};
use crate::{
    Level,
    column_sums::{ColumnSums, TILE_COLUMNS, TILE_SUMS},
    isa::{Isa, with_token},
    lanes::{LANES, dots, exp_minus, greatest, round_to_f16, sum, widen},
    quantize::quantize_row,
    screen_dot::{Dots, MAX_TILE_HIDDEN, ScreenDot, TILE_TOKENS},
    ternary_columns::column_bytes,
    ternary_dot::TernaryDot,
};

/// The kernels that [`check_kernel`] knows.
pub const KERNELS: [&str; 11] = [
    "ternary_dot",
    "run_dots",
    "ternary_panel",
    "column_sums",
    "screen_dot",
    "widen",
    "round_to_f16",
    "greatest",
    "exp",
    "folds",
    "quantize_row",
];

/// Checks one kernel of a level with random operands.
///
/// # Errors
///
/// What differs, or that the level or the kernel is not known here.
pub fn check_kernel(level: Level, kernel: &str, seed: u64) -> Result<(), String> {
    let random = &mut Random::new(seed);
    let isa = Isa::detect(level).ok_or("a level that is not here")?;
    let failed = |what| format!("{level}, {kernel}, seed {seed}: {what}");
    #[cfg(all(target_arch = "wasm32", target_feature = "relaxed-simd"))]
    if let Isa::Relaxed(relaxed) = isa {
        let mut ways = relaxed.each_way().into_iter();
        return ways.try_for_each(|relaxed| check(relaxed, kernel, random)).map_err(failed);
    }
    with_token!(isa, token => check(token, kernel, random)).map_err(failed)
}

fn check<D: ScreenDot>(isa: D, kernel: &str, random: &mut Random) -> Result<(), String> {
    match kernel {
        "ternary_dot" => check_ternary_dot(isa, random),
        "run_dots" => check_run_dots(isa, random),
        "ternary_panel" => check_ternary_panel(isa, random),
        "column_sums" => check_column_sums(isa.columns(), random),
        "screen_dot" => check_screen_dot(isa, random),
        "widen" => check_widen(isa, random),
        "round_to_f16" => check_round_to_f16(isa, random),
        "greatest" => check_greatest(isa, random),
        "exp" => check_exp(isa, random),
        "folds" => check_folds(isa, random),
        "quantize_row" => check_quantize_row(isa, random),
        _ => Err("an unknown kernel".into()),
    }
}

/// Widths of checks and, now and then, of real models; the last ones are long enough for sums
/// of 16 bits to overflow if they were kept too long.
const COLUMNS: [usize; 10] = [1, 96, 100, 127, 128, 320, 1024, 1152, 6912, 8640];

fn check_ternary_dot<D: TernaryDot>(isa: D, random: &mut Random) -> Result<(), String> {
    let columns = random.pick(&COLUMNS);
    let weights: [Vec<u8>; 4] = std::array::from_fn(|_| packed_row(random, columns));
    let x: [Vec<i8>; 4] = std::array::from_fn(|_| activations(random, columns));
    let sum = |x: &[i8]| x.iter().map(|&x| i32::from(x)).sum::<i32>();
    let rows = weights.each_ref().map(Vec::as_slice);
    let wide = isa.code_dots_wide(rows, rows, x.each_ref().map(Vec::as_slice));
    for (x, wide) in x.iter().zip(wide) {
        let narrow = isa.code_dots(rows, rows, x);
        for (index, row) in rows.into_iter().enumerate() {
            let expected = ternary_dot(row, x);
            let found = [narrow[index] - sum(x), wide[index] - sum(x)];
            if found != [expected; 2] {
                return Err(format!("{columns} columns: expected {expected}, found {found:?}"));
            }
        }
    }
    Ok(())
}

/// Checks runs of all lengths, and that nothing beyond the last is written.
fn check_run_dots<D: TernaryDot>(isa: D, random: &mut Random) -> Result<(), String> {
    let columns = random.pick(&COLUMNS);
    let weights: [Vec<u8>; 4] = std::array::from_fn(|_| packed_row(random, columns));
    let rows = weights.each_ref().map(Vec::as_slice);
    let x = activations(random, columns);
    for run in [32, 64, 128] {
        let mut dots = vec![[i32::MAX; 4]; x.len() / run + 1];
        let (found, beyond) = dots.split_at_mut(x.len() / run);
        isa.run_dots(rows, rows, &x, run, found);
        for (index, (dots, x_run)) in found.iter().zip(x.chunks(run)).enumerate() {
            let sum: i32 = x_run.iter().map(|&x| i32::from(x)).sum();
            let of_run = index * run..(index + 1) * run;
            let expected = rows.map(|row| ternary_dot_range(row, &x, of_run.clone()) + sum);
            if *dots != expected {
                let what = format!("run {index} of {run} in {columns} columns");
                return Err(format!("{what}: expected {expected:?}, found {dots:?}"));
            }
        }
        if beyond != [[i32::MAX; 4]] {
            return Err(format!("{beyond:?} beyond the last run"));
        }
    }
    Ok(())
}

/// Sums over two eights of columns, beside sums that were there before.
fn check_column_sums<C: ColumnSums>(isa: C, random: &mut Random) -> Result<(), String> {
    let outputs: usize = random.pick(&[1, 100, 128, 129, 256, 320, 640, 1100]);
    let mut sums = vec![0; outputs.next_multiple_of(TILE_SUMS)];
    let mut expected = vec![0; outputs];
    for _ in 0..2 {
        let columns: [Vec<u8>; TILE_COLUMNS] = std::array::from_fn(|_| {
            let mut column = packed_row(random, outputs);
            column.resize(column_bytes(outputs), 0);
            column
        });
        let columns = columns.each_ref().map(Vec::as_slice);
        let x: [i8; TILE_COLUMNS] = std::array::from_fn(|_| random.i8());
        isa.add_columns(columns, columns, x, &mut sums);
        column_sums(&columns, &x, &mut expected);
    }
    for (output, &expected) in expected.iter().enumerate() {
        let (index, shift) = isa.place(output);
        if sums[index] != expected << shift {
            let found = sums[index] >> shift;
            return Err(format!(
                "output {output} of {outputs}: expected {expected}, found {found}"
            ));
        }
    }
    Ok(())
}

fn check_screen_dot<D: ScreenDot>(isa: D, random: &mut Random) -> Result<(), String> {
    let columns = random.pick(&COLUMNS).next_multiple_of(SCREEN_COLUMNS);
    let codes: [Vec<u8>; TILE_TOKENS] = std::array::from_fn(|_| {
        let only = if random.chance(0.4) { Some(random.pick(&[1, 127])) } else { None };
        (0..columns).map(|_| only.unwrap_or_else(|| random.i8().cast_unsigned() >> 1)).collect()
    });
    let hidden: [[Vec<i8>; 2]; MAX_TILE_HIDDEN] = std::array::from_fn(|_| {
        std::array::from_fn(|_| {
            let only = if random.chance(0.4) { Some(random.pick(&[-128, 127])) } else { None };
            (0..columns).map(|_| only.unwrap_or_else(|| random.i8())).collect()
        })
    });
    let expected = hidden.each_ref().map(|planes| {
        planes.each_ref().map(|x| codes.each_ref().map(|codes| screen_dot(codes, x)))
    });
    let (codes, hidden) = (codes.each_ref().map(Vec::as_slice), hidden.each_ref());
    let planes = hidden.map(|planes| planes.each_ref().map(Vec::as_slice));
    for rows in 1..=D::TILE_HIDDEN {
        let mut found = [Dots::default(); MAX_TILE_HIDDEN];
        isa.screen_dots(codes, codes, &planes[..rows], &mut found);
        if found[..rows] != expected[..rows] {
            return Err(format!(
                "{rows} rows of {columns} columns: expected {expected:?}, found {found:?}"
            ));
        }
    }
    Ok(())
}

/// All halves and bytes: 4096 seeds would still give the same answer.
fn check_widen<D: TernaryDot>(isa: D, random: &mut Random) -> Result<(), String> {
    let first = u32::from(random.u16());
    let bits: Vec<u16> = (0..4096u32).map(|i| low_half(first.wrapping_add(i * 17))).collect();
    let halves: Vec<f16> = bits.iter().map(|&bits| f16::from_bits(bits)).collect();
    let brains: Vec<bf16> = bits.iter().map(|&bits| bf16::from_bits(bits)).collect();
    let bytes: Vec<i8> = bits.iter().map(|bits| bits.to_ne_bytes()[0].cast_signed()).collect();
    let exact: Vec<f32> = halves.iter().map(|x| x.to_f32()).collect();
    compare("f16", &exact, &widened(isa, &halves))?;
    let exact: Vec<f32> = brains.iter().map(|x| x.to_f32()).collect();
    compare("bf16", &exact, &widened(isa, &brains))?;
    let exact: Vec<f32> = bytes.iter().map(|&x| f32::from(x)).collect();
    compare("int8", &exact, &widened(isa, &bytes))
}

fn low_half(bits: u32) -> u16 {
    let [a, b, ..] = bits.to_le_bytes();
    u16::from_le_bytes([a, b])
}

fn widened<D: TernaryDot, E: crate::lanes::Element>(isa: D, elements: &[E]) -> Vec<f32> {
    let mut out = vec![0.0; elements.len()];
    widen(isa.lanes(), elements, &mut out);
    out
}

/// Around every number of 16 bits that is met: ties, subnormals, the ends of the range, NaN.
fn check_round_to_f16<D: TernaryDot>(isa: D, random: &mut Random) -> Result<(), String> {
    let mut x = vec![];
    let mut around = |value: f32| {
        let bits = value.to_bits();
        x.extend((0..5).map(|step| f32::from_bits(bits.wrapping_add(step).wrapping_sub(2))));
    };
    let first = u32::from(random.u16());
    for bits in (0..1024u32).map(|i| low_half(first.wrapping_add(i * 67))) {
        let (below, above) = (f16::from_bits(bits).to_f32(), f16::from_bits(bits ^ 1).to_f32());
        around(below);
        around(f32::midpoint(below, above));
    }
    for value in [65504.0, 65519.996, 65520.0, 1e9, f32::MAX, f32::INFINITY, f32::NAN, 0.0, 1e-40] {
        around(value);
        around(-value);
    }
    x.truncate(x.len() - random.between(0, LANES));
    let exact: Vec<f32> = x.iter().map(|&x| round_f16(x).to_f32()).collect();
    let mut found = vec![f16::ZERO; x.len()];
    round_to_f16(isa.lanes(), &x, &mut found);
    let found: Vec<f32> = found.iter().map(|x| x.to_f32()).collect();
    compare("rounded to f16", &exact, &found)
}

fn check_greatest<D: TernaryDot>(isa: D, random: &mut Random) -> Result<(), String> {
    for len in (0..3 * LANES).chain([128, 2563]) {
        let mut x = random.floats(len);
        if len > 0 && random.chance(0.3) {
            x[random.below(len)] = random.pick(&[f32::NAN, f32::NEG_INFINITY, f32::INFINITY]);
        }
        let exact = x.iter().copied().fold(f32::NEG_INFINITY, maximum);
        compare("the greatest", &[exact], &[greatest(isa.lanes(), &x)])?;
    }
    Ok(())
}

fn check_exp<D: TernaryDot>(isa: D, random: &mut Random) -> Result<(), String> {
    let special = [0.0, -0.0, f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1e-40, -1e-40];
    let ends = [setun_ops::exp::UNDERFLOW, setun_ops::exp::OVERFLOW].into_iter();
    let ends = ends.flat_map(|x| (0..9).map(move |i| f32::from_bits(x.to_bits() - 4 + i)));
    let spread = random.pick(&[1.0, 100.0, 1000.0, 1e30]);
    let mut x: Vec<f32> = special.into_iter().chain(ends).collect();
    x.extend((0..999).map(|_| (random.unit() * 2.0 - 1.0) * spread));
    let exact: Vec<f32> = x.iter().map(|&x| exact_exp(x)).collect();
    exp_minus(isa.lanes(), &mut x, 0.0);
    compare("exp", &exact, &x)
}

fn check_folds<D: TernaryDot>(isa: D, random: &mut Random) -> Result<(), String> {
    let simd = isa.lanes();
    for len in (0..3 * LANES).chain([128, 2560, 2563]) {
        let (a, b) = (random.floats(len), random.floats(len));
        let [dot] = dots(simd, &a, [b.as_slice()]);
        compare("a dot product", &[fold16_dot(&a, &b)], &[dot])?;
        compare("a sum", &[fold16(a.iter().copied())], &[sum(simd, &a)])?;
    }
    Ok(())
}

fn check_quantize_row<D: TernaryDot>(isa: D, random: &mut Random) -> Result<(), String> {
    for _ in 0..20 {
        let len = random.between(1, 3 * BLOCK_COLUMNS);
        let mut x = random.table(1, len);
        if random.chance(0.5) {
            // A scale of 1 and many ties.
            for x in &mut x {
                *x = f32::from(random.i8()) / 2.0;
            }
            x[0] = 127.0;
        }
        let (mut exact, mut found) = (vec![1; len + 3], vec![2; len + 3]);
        let expected = exact_quantize_row(&x, &mut exact);
        let scale = quantize_row(isa.lanes(), &x, &mut found);
        compare("a scale", &[expected.scale], &[scale.scale])?;
        if exact != found || expected.sum != scale.sum {
            return Err(format!("codes of {x:?}: expected {exact:?}, found {found:?}"));
        }
    }
    Ok(())
}

/// The same bits, or NaN for NaN.
fn compare(what: &str, expected: &[f32], found: &[f32]) -> Result<(), String> {
    let mut pairs = expected.iter().zip(found);
    let differs = |(a, b): &(&f32, &f32)| a.to_bits() != b.to_bits() && !(a.is_nan() && b.is_nan());
    match pairs.find(differs) {
        None if expected.len() == found.len() => Ok(()),
        None => Err(format!("{what}: {} of {} values", found.len(), expected.len())),
        Some((a, b)) => {
            let (a_bits, b_bits) = (a.to_bits(), b.to_bits());
            Err(format!("{what}: expected {a:?} ({a_bits:#x}), found {b:?} ({b_bits:#x})"))
        }
    }
}
