//! Bounds on the difference between two implementations of an operation.

use half::f16;

use super::super::{
    Case,
    compare::{Disagreement, Place, floats, ranked, words},
};
use crate::{
    BatchInputs, CacheElement, CacheSpec, WeightData,
    argmax::argmax,
    attention::inverse_sqrt,
    head::head_logit,
    host_cache::HostCache,
    op::{Agreement, HeadShape, Op, WeightId},
    quantize::{MAX_CODE, MIN_ABSMAX, absmax},
    rms_norm::rms_norm_row,
    top_logits::{MAX_LOGIT, Ranked},
};

/// What is compared.
pub(super) struct At<'a> {
    pub(super) op: &'a Op,
    pub(super) place: Place,
    /// Of each row a magnitude that rounding follows where it exceeds that of the result.
    pub(super) magnitudes: Vec<f32>,
}

/// Below this a device may have zero.
const MIN_NORMAL: f32 = f32::MIN_POSITIVE;

/// An exponent below this many units has no error that counts.
const SMALL_SCORE: f32 = 8.0;

/// How near to a tie a value lies whose code may be either.
const TIE: f32 = 1e-3;

/// Units in the last place of the row's largest magnitude that an operation may be off by.
fn ulp(op: &Op) -> f32 {
    let agreement = match op {
        Op::Embed { .. } => crate::embed::AGREEMENT,
        Op::RmsNorm { .. } => crate::rms_norm::AGREEMENT,
        Op::Quantize { .. } => crate::quantize::AGREEMENT,
        Op::TernaryMatmul { .. } => crate::ternary_matmul::AGREEMENT,
        Op::HeadNorm { .. } => crate::head_norm::AGREEMENT,
        Op::RopeAppend { .. } => crate::rope_append::AGREEMENT,
        Op::Attention { .. } => crate::attention::AGREEMENT,
        Op::SigmoidGate { .. } => crate::sigmoid_gate::AGREEMENT,
        Op::DeltaNet { .. } => crate::delta_net::AGREEMENT,
        Op::DenseMatmul { .. } => crate::dense_matmul::AGREEMENT,
        Op::Hadamard { .. } => crate::hadamard::AGREEMENT,
        Op::Gate { .. } => crate::gate::AGREEMENT,
        Op::Head { .. } => crate::head::AGREEMENT,
        Op::TopLogits { .. } => crate::top_logits::AGREEMENT,
        Op::Argmax { .. } => crate::argmax::AGREEMENT,
    };
    ulps(agreement)
}

fn ulps(agreement: Agreement) -> f32 {
    match agreement {
        Agreement::Exact => 0.0,
        #[expect(clippy::cast_precision_loss, reason = "small numbers")]
        Agreement::ExactOnCpu { gpu_ulp } => gpu_ulp as f32,
    }
}

/// The bound of a row; none where a value is not finite: a shading language promises nothing of it.
fn bound(at: &At<'_>, index: usize, row: &[f32]) -> Option<f32> {
    let least = at.magnitudes.get(index).copied().unwrap_or_default();
    let most = row.iter().fold(least, |most, value| most.max(value.abs()));
    let finite = most.is_finite() && row.iter().all(|value| value.is_finite());
    let unit = f32::EPSILON * most;
    finite.then_some((ulp(at.op) * unit).max(2.0 * MIN_NORMAL))
}

/// Of each row of logits the largest `Σ |x × w|`; `x` is `[rows, hidden]`.
pub(super) fn logit_magnitudes(case: &Case, table: WeightId, x: &[u8]) -> Vec<f32> {
    let WeightData::Dense(table) = &case.weights[table.0 as usize] else { return vec![] };
    let mut widened = vec![0.0; table.columns()];
    let x: Vec<f32> = floats(x).collect();
    x.chunks_exact(table.columns())
        .map(|x| {
            let sums = (0..table.rows()).map(|token| {
                table.widen_row(token, &mut widened);
                x.iter().zip(&widened).map(|(x, w)| (x * w).abs()).sum::<f32>()
            });
            sums.fold(0.0, f32::max)
        })
        .collect()
}

/// Scores that are off by some of their units multiply weights by as much: the largest value, times
/// the largest score where that exceeds some units; `qkv` is `[rows, shape.qkv_width()]`.
pub(super) fn attention_magnitudes(shape: HeadShape, qkv: &[u8], cache: &HostCache) -> Vec<f32> {
    let d = shape.head_dim;
    let norm = |x: &[f32]| x.iter().map(|x| x * x).sum::<f32>().sqrt();
    let (mut key, mut value) = (0.0f32, 0.0f32);
    let mut vector = vec![0.0; d];
    for layer in cache.layers() {
        for index in 0..cache.blocks() * cache.spec().kv_heads * cache.spec().block_positions {
            let scale = layer.keys.load(index, &mut vector);
            key = key.max(norm(&vector) * scale);
            let scale = layer.values.load(index, &mut vector);
            value = vector.iter().fold(value, |most, x| most.max((x * scale).abs()));
        }
    }
    let qkv: Vec<f32> = floats(qkv).collect();
    qkv.chunks_exact(shape.qkv_width())
        .map(|row| {
            let heads = row[..shape.query_width()].chunks_exact(d);
            let query = heads.map(norm).fold(0.0, f32::max);
            value * (query * key * inverse_sqrt(d) / SMALL_SCORE).max(1.0)
        })
        .collect()
}

pub(super) fn compare_floats(
    at: &At<'_>,
    expected: &[u8],
    found: &[u8],
) -> Result<(), Disagreement> {
    let (expected, found): (Vec<f32>, Vec<f32>) =
        (floats(expected).collect(), floats(found).collect());
    let rows = expected.chunks_exact(at.place.width).zip(found.chunks_exact(at.place.width));
    for (row, (a, b)) in rows.enumerate() {
        let Some(bound) = bound(at, row, a) else { continue };
        for (column, (&expected, &found)) in a.iter().zip(b).enumerate() {
            let is_close = (expected - found).abs() <= bound; // false of no number
            if !is_close {
                return Err(at.place.differs(row * at.place.width + column, expected, found));
            }
        }
    }
    Ok(())
}

pub(super) fn compare_scales(
    at: &At<'_>,
    expected: &[f32],
    found: &[f32],
) -> Result<(), Disagreement> {
    for (element, (&expected, &found)) in expected.iter().zip(found).enumerate() {
        let close = (expected - found).abs() <= ulp(at.op) * f32::EPSILON * expected.abs();
        if !close && expected.is_finite() {
            return Err(Place { width: 1, ..at.place }.differs(element, expected, found));
        }
    }
    Ok(())
}

/// Codes may be one off where the value lies close to a tie.
pub(super) fn compare_codes(
    case: &Case,
    at: &At<'_>,
    group: Option<usize>,
    input: &[u8],
    rows: usize,
    expected: &[u8],
    found: &[u8],
) -> Result<(), Disagreement> {
    let x: Vec<f32> = floats(input).collect();
    let width = at.place.width;
    for row in 0..rows {
        let scaled = scaled_row(case, at.op, group, &x[row * width..][..width]);
        for (column, scaled) in scaled.iter().enumerate() {
            let element = row * width + column;
            let (a, b) = (expected[element].cast_signed(), found[element].cast_signed());
            let is_tie = (scaled - scaled.floor() - 0.5).abs() < TIE && a.abs_diff(b) == 1;
            if a != b && !is_tie && scaled.is_finite() {
                return Err(at.place.differs(element, a, b));
            }
        }
    }
    Ok(())
}

/// A row as it is before it is rounded to codes.
fn scaled_row(case: &Case, op: &Op, group: Option<usize>, x: &[f32]) -> Vec<f32> {
    let mut values = x.to_vec();
    if let Op::Quantize { norm: Some(norm), .. } = op
        && let WeightData::Vector(gain) = &case.weights[norm.gain.0 as usize]
    {
        rms_norm_row(x, gain, norm.eps, &mut values);
    }
    for values in values.chunks_mut(group.unwrap_or(x.len()).max(1)) {
        let factor = MAX_CODE / absmax(values).max(MIN_ABSMAX);
        for value in values {
            *value *= factor;
        }
    }
    values
}

/// Each place may hold another token whose logit is as good within the bound.
pub(super) fn compare_ranked(
    at: &At<'_>,
    inputs: &BatchInputs,
    expected: &[u8],
    found: &[u8],
) -> Result<(), Disagreement> {
    let (expected, found): (Vec<_>, Vec<_>) = (ranked(expected).collect(), ranked(found).collect());
    for row in 0..inputs.wanted.len() {
        let range = row * at.place.width..(row + 1) * at.place.width;
        let (a, b) = (&expected[range.clone()], &found[range]);
        let logits: Vec<f32> =
            a.iter().filter(|best| best.is_token()).map(|best| best.logit).collect();
        let Some(bound) = bound(at, row, &logits) else { continue };
        let is_large = logits.iter().any(|logit| logit.abs() > MAX_LOGIT / 2.0);
        for (column, (&expected, &found)) in a.iter().zip(b).enumerate() {
            let touched = inputs.top_logits[row].touched.get(column);
            if expected.token == Ranked::SUM {
                continue; // a bound, see `compare`
            }
            let same = expected.is_token() == found.is_token()
                && (!found.is_token()
                    || touched.is_none_or(|&token| token == found.token)
                        && (expected.logit - found.logit).abs() <= bound);
            // At the edge of `within` a token may belong or not.
            let is_edge = inputs.top_logits[row].within.is_some() && touched.is_none();
            let is_at_edge = is_edge && expected.is_token() != found.is_token();
            if !(same || is_large || is_at_edge) {
                return Err(at.place.differs(row * at.place.width + column, expected, found));
            }
        }
    }
    Ok(())
}

/// Another token may be chosen whose result is as good within the bound.
pub(super) fn compare_tokens(
    case: &Case,
    at: &At<'_>,
    inputs: &BatchInputs,
    x: &[u8],
    (expected, found): (&[u8], &[u8]),
) -> Result<(), Disagreement> {
    let Op::Argmax { table, .. } = at.op else { return Ok(()) };
    let WeightData::Dense(table) = &case.weights[table.0 as usize] else { return Ok(()) };
    let x: Vec<f32> = floats(x).collect();
    let mut scratch = vec![0.0; table.columns()];
    for (row, (expected, found)) in words(expected).zip(words(found)).enumerate() {
        let Some(request) = inputs.argmax.get(row) else { break };
        let x = &x[row * table.columns()..][..table.columns()];
        let logits = (0..table.rows()).map(|token| head_logit(table, token, x, &mut scratch));
        let mut results: Vec<f32> = logits.collect();
        let Some(bound) = bound(at, row, &results) else { continue };
        argmax(&mut results, request);
        let most = results.iter().fold(0.0f32, |most, result| most.max(result.abs()));
        // What is near to infinity may be either; a penalty multiplies what logits are off by.
        let is_small = most <= f32::MAX / 2.0 && bound <= f32::MAX / 64.0;
        let scale = request.penalty.max(1.0 / request.penalty);
        let bound = 2.0 * (bound * scale + ulp(at.op) * f32::EPSILON * most);
        let of = |token: u32| results.get(token as usize).copied();
        let is_close = match (of(expected), of(found)) {
            (Some(a), Some(b)) => a - b <= bound,
            (a, b) => a == b,
        };
        if expected != found && !is_close && is_small {
            return Err(at.place.differs(row, expected, found));
        }
    }
    Ok(())
}

/// Matrices of recurrent states may differ as the result of their operation; their history is copied.
pub(super) fn compare_states(
    step: usize,
    spec: &CacheSpec,
    expected: &[u8],
    found: &[u8],
) -> Result<(), Disagreement> {
    let Some(spec) = spec.recurrent else { return Ok(()) };
    let layer = spec.matrices() + spec.history();
    let (a, b): (Vec<f32>, Vec<f32>) = (floats(expected).collect(), floats(found).collect());
    for (index, (a, b)) in a.chunks_exact(layer).zip(b.chunks_exact(layer)).enumerate() {
        let most = a[..spec.matrices()].iter().fold(0.0f32, |most, value| most.max(value.abs()));
        let bound = (ulps(crate::delta_net::AGREEMENT) * f32::EPSILON * most).max(MIN_NORMAL);
        for (float, (a, b)) in a.iter().zip(b).enumerate() {
            let bound = if float < spec.matrices() { bound } else { 0.0 };
            let is_close = (a - b).abs() <= bound; // false of no number
            if a.is_finite() && most.is_finite() && !is_close {
                let (expected, found) = (format!("{a:?}"), format!("{b:?}"));
                let float = index * layer + float;
                return Err(Disagreement::State { step, float, expected, found });
            }
        }
    }
    Ok(())
}

/// Elements of a cache may be a unit of their type apart.
pub(super) fn compare_cache(
    step: usize,
    spec: &CacheSpec,
    expected: &[u8],
    found: &[u8],
) -> Result<(), Disagreement> {
    let layer = spec.block_bytes() / spec.layers;
    let elements = layer / (spec.head_dim + 4) * spec.head_dim;
    let differ = |block, byte| Err(Disagreement::Cache { step, block, byte });
    for (index, (a, b)) in expected.chunks_exact(layer).zip(found.chunks_exact(layer)).enumerate() {
        let place = |byte| (index / spec.layers, index % spec.layers * layer + byte);
        let element = match spec.element {
            CacheElement::F32 => 4,
            CacheElement::F16 => 2,
            CacheElement::Int8 => 1,
        };
        for (vector, (x, y)) in a
            .chunks_exact(element * spec.head_dim)
            .zip(b.chunks_exact(element * spec.head_dim))
            .enumerate()
        {
            let first = vector * element * spec.head_dim;
            if spec.element == CacheElement::Int8 && first >= elements {
                break;
            }
            let (x, y) = (widen(spec.element, x), widen(spec.element, y));
            let most = x.iter().fold(0.0f32, |most, value| most.max(value.abs()));
            let bound = match spec.element {
                CacheElement::F32 => (4.0 * f32::EPSILON * most).max(2.0 * MIN_NORMAL),
                CacheElement::F16 => (most / 1024.0).max(f16::MIN_POSITIVE_SUBNORMAL.to_f32()),
                CacheElement::Int8 => 1.0,
            };
            for (column, (x, y)) in x.iter().zip(&y).enumerate() {
                let is_close = (x - y).abs() <= bound; // false of no number
                if x.is_finite() && most.is_finite() && !is_close {
                    let (block, byte) = place(first + element * column);
                    return differ(block, byte);
                }
            }
        }
    }
    Ok(())
}

fn widen(element: CacheElement, bytes: &[u8]) -> Vec<f32> {
    match element {
        CacheElement::F32 => floats(bytes).collect(),
        CacheElement::F16 => {
            let (halves, _) = bytes.as_chunks::<2>();
            halves.iter().map(|&half| f16::from_ne_bytes(half).to_f32()).collect()
        }
        CacheElement::Int8 => bytes.iter().map(|&code| f32::from(code.cast_signed())).collect(),
    }
}
