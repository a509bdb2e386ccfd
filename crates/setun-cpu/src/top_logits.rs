//! `top_logits` over a screen; defined in [`setun_ops::top_logits`].
//!
//! Some rows at a time go through four stages: bounds of all logits from the table's screen; from
//! them, row by row, the `k`-th best lower bound and the tokens whose upper bound reaches it, the
//! *candidates*; the exact logits of candidates and touched tokens; the best of those. A token that
//! is not a candidate has a lower logit than `k` others, so the result is that of the definition.
//! Where noisy scores are requested, the bounds are those of scores.
//!
//! Where a table has no screen, a row none that is proven, or more candidates than are worth
//! picking out, the head runs in full.

mod noisy;
mod rank;
mod sum;

use std::ops::Range;

use fearless_simd::Simd;
use setun_ops::{
    DenseMatrix, OpsError, TernaryMatrix,
    aligned::Aligned,
    dense::DenseValues,
    op::{BufferId, WeightId},
    screen_dot::screen_bytes,
    top_logits::{Ranked, TopLogitsRequest},
};

use self::rank::{candidates, rank_all, rank_candidates, start};
use crate::{
    head::{logits_of, ternary_logits_of},
    memory::zeroed,
    quantized::RowRun,
    screen::{Hidden, MAX_HIDDEN_ROWS, Screen, TernaryHidden, TileBounds},
    screen_dot::ScreenDot,
    split::{Grid, Tile},
    step::{Buffers, Floats, Weights},
    walk::Walk,
};

/// Hidden rows that meet a row of the screen together. Each has memory for the bounds of all
/// tokens; the screen is read again for each group.
const GROUP: usize = MAX_HIDDEN_ROWS;

/// Most candidates: past them the head runs in full.
const MAX_CANDIDATES: usize = 4096;

/// Tokens of the screen that a member claims at once.
const RUN: usize = 64;

/// The number of tokens of a ternary table that a member claims at once. More tokens mean fewer claims,
/// and the first rows of a claim are not requested ahead.
const TERNARY_RUN: usize = 256;

/// Candidates that a member claims at once.
const RESCORE_RUN: usize = 32;

/// Memory for a group of rows. Grown by `prepare`, never by a step.
#[derive(Debug, Default)]
pub(crate) struct TopLogitsScratch {
    /// Of each row of the last step, see [`StepTimes`](setun_ops::backend::StepTimes).
    pub(crate) candidates: Vec<Option<u32>>,
    planes: Aligned<i8>,    // [GROUP, 2, the screen's columns]
    runs: Aligned<RowRun>,  // beside a ternary table, [GROUP, the screen's runs]
    lower: Aligned<f32>,    // bounds, [GROUP, vocab]
    upper: Aligned<f32>,    // bounds, or all logits, [GROUP, vocab]
    tokens: Aligned<u32>,   // touched ones and candidates, [GROUP, MAX_CANDIDATES + capacity]
    rescored: Aligned<f32>, // their logits
}

/// How far a row of a group has come.
#[derive(Clone, Copy, Debug, Default)]
struct RowState {
    hidden: Option<Hidden>, // none where the head runs in full
    tokens: usize,          // touched ones and candidates
}

impl TopLogitsScratch {
    /// Grows to what a table, the requested rows and their capacity need.
    pub(crate) fn grow(
        &mut self,
        weights: &Weights,
        table: WeightId,
        wanted: usize,
        capacity: usize,
    ) -> Result<(), OpsError> {
        let vocab = weights.dense(table).rows();
        self.candidates.clear();
        let bytes = wanted * size_of::<Option<u32>>();
        let reserved = self.candidates.try_reserve_exact(wanted);
        reserved.map_err(|_| OpsError::OutOfMemory { what: "scratch memory", bytes })?;
        let rows = wanted.min(GROUP);
        grow(&mut self.upper, rows * vocab)?;
        if let Some(screen) = weights.screen(table) {
            grow(&mut self.lower, rows * vocab)?;
            grow(&mut self.planes, rows * 2 * screen.columns())?;
            grow(&mut self.runs, rows * screen.runs())?;
            grow(&mut self.tokens, rows * (MAX_CANDIDATES + capacity))?;
            grow(&mut self.rescored, rows * (MAX_CANDIDATES + capacity))?;
        }
        Ok(())
    }
}

fn grow<T: Copy + Default>(memory: &mut Aligned<T>, len: usize) -> Result<(), OpsError> {
    if memory.len() < len {
        *memory = zeroed(len, "scratch memory")?;
    }
    Ok(())
}

impl<D: ScreenDot> Walk<'_, D> {
    pub(crate) fn top_logits(
        &self,
        buffers: &mut Buffers,
        scratch: &mut TopLogitsScratch,
        x: BufferId,
        table: WeightId,
        out: BufferId,
    ) {
        let (screen, table) = (self.weights.screen(table), self.weights.dense(table));
        buffers.write_ranked(out, |buffers, out| {
            let (x, capacity) = (buffers.floats(x), out.width);
            let groups =
                out.values.chunks_mut(GROUP * capacity).zip(self.inputs.top_logits.chunks(GROUP));
            let mut rows_read = 0;
            scratch.candidates.clear();
            for (group, (out, requests)) in groups.enumerate() {
                let first = group * GROUP;
                let work = RowGroup { first, x, table, requests, capacity };
                let out = &mut out[..requests.len() * capacity];
                let mut states = [RowState::default(); GROUP];
                if let Some(screen) = screen {
                    self.bounds(&work, screen, scratch, &mut states);
                    self.candidates(&work, scratch, &mut states, out);
                    self.rescore(&work, scratch, &states);
                }
                self.full(&work, scratch, &states);
                self.rank(&work, scratch, &states, out);
                let rows = requests.iter().zip(&states);
                scratch.candidates.extend(rows.map(|(request, state)| state.candidates(request)));
                let states = states.iter().take(requests.len());
                rows_read += states
                    .map(|state| state.hidden.map_or(table.rows(), |_| state.tokens))
                    .sum::<usize>();
            }
            if screen.is_some() {
                let row = table.bytes() / table.rows().max(1);
                let screened = match table.values() {
                    DenseValues::Ternary(_) => table.bytes(),
                    _ => screen_bytes(table.rows(), table.columns()),
                };
                let read = screened + rows_read * row;
                self.spare(table.bytes().saturating_sub(read));
            }
        });
    }

    /// Bounds of all logits of the rows that the screen is proven for.
    fn bounds(
        &self,
        work: &RowGroup<'_>,
        screen: &Screen,
        scratch: &mut TopLogitsScratch,
        states: &mut [RowState; GROUP],
    ) {
        let (rows, vocab) = (work.requests.len(), work.table.rows());
        let planes = scratch.planes.chunks_exact_mut(2 * screen.columns());
        for (row, (state, planes)) in states.iter_mut().zip(planes).enumerate().take(rows) {
            let x = work.x.row(work.first + row);
            state.hidden = if screen.runs() > 0 {
                let runs = &mut scratch.runs[row * screen.runs()..][..screen.runs()];
                Hidden::by_runs(screen, x, &mut planes[..screen.columns()], runs)
            } else {
                Hidden::new(screen, x, planes)
            };
        }
        // Those that the screen is proven for, side by side.
        let mut proven = [(0, Hidden::default()); GROUP];
        let rows_of =
            states.iter().enumerate().filter_map(|(row, state)| Some((row, state.hidden?)));
        let mut count = 0;
        for row in rows_of {
            proven[count] = row;
            count += 1;
        }
        if count == 0 {
            return;
        }
        if let DenseValues::Ternary(matrix) = work.table.values() {
            return self.ternary_bounds(work, (screen, matrix), scratch, &proven[..count]);
        }
        let hidden = proven.map(|(_, hidden)| hidden);
        let planes = proven.map(|(row, _)| {
            let planes = &scratch.planes[row * 2 * screen.columns()..][..2 * screen.columns()];
            planes.split_at(screen.columns()).into()
        });
        let lower = Grid::new(&mut scratch.lower[..rows * vocab], vocab).tiles(rows, RUN);
        let upper = Grid::new(&mut scratch.upper[..rows * vocab], vocab).tiles(rows, RUN);
        self.each((lower, upper), |_, _, (mut lower, mut upper)| {
            let (isa, tokens) = (self.isa, lower.columns());
            let (hidden, planes) = (&hidden[..count], &planes[..count]);
            screen.bounds(isa, tokens.clone(), hidden, planes, |row, block, [below, above]| {
                let row = proven[row].0;
                let within = block.start - tokens.start..block.end - tokens.start;
                lower.row(row)[within.clone()].copy_from_slice(&below[..block.len()]);
                upper.row(row)[within].copy_from_slice(&above[..block.len()]);
            });
        });
    }

    /// Bounds of all logits of the rows that the screen of a ternary table is proven for.
    fn ternary_bounds(
        &self,
        work: &RowGroup<'_>,
        (screen, matrix): (&Screen, &TernaryMatrix),
        scratch: &mut TopLogitsScratch,
        proven: &[(usize, Hidden)],
    ) {
        let (rows, vocab) = (work.requests.len(), work.table.rows());
        let (columns, runs) = (screen.columns(), screen.runs());
        let TopLogitsScratch { planes, runs: of_rows, lower, upper, .. } = scratch;
        let mut hidden = [TernaryHidden::default(); GROUP];
        for (it, &(row, hidden)) in hidden.iter_mut().zip(proven) {
            let codes = &planes[row * 2 * columns..][..columns];
            *it = TernaryHidden { hidden, codes, runs: &of_rows[row * runs..][..runs] };
        }
        let lower = Grid::new(&mut lower[..rows * vocab], vocab).tiles(rows, TERNARY_RUN);
        let upper = Grid::new(&mut upper[..rows * vocab], vocab).tiles(rows, TERNARY_RUN);
        self.each((lower, upper), |scratch, _, (mut lower, mut upper)| {
            let (isa, tokens) = (self.isa, lower.columns());
            let (hidden, groups) = (&hidden[..proven.len()], &mut scratch.groups);
            let store = |row: usize, tile: Range<usize>, [below, above]: &TileBounds| {
                let row = proven[row].0;
                let within = tile.start - tokens.start..tile.end - tokens.start;
                lower.row(row)[within.clone()].copy_from_slice(&below[..tile.len()]);
                upper.row(row)[within].copy_from_slice(&above[..tile.len()]);
            };
            screen.ternary_bounds(isa, matrix, groups, tokens.clone(), hidden, store);
        });
    }

    /// Lists the touched tokens and the candidates of each row. Uses `out` to find the `k`-th
    /// best lower bound.
    fn candidates(
        &self,
        work: &RowGroup<'_>,
        scratch: &mut TopLogitsScratch,
        states: &mut [RowState; GROUP],
        out: &mut [Ranked],
    ) {
        let (rows, vocab) = (work.requests.len(), work.table.rows());
        let listed = MAX_CANDIDATES + work.capacity;
        self.each(
            (
                Grid::new(out, work.capacity).tiles(1, work.capacity),
                Grid::new(&mut scratch.lower[..rows * vocab], vocab).tiles(1, vocab),
                Grid::new(&mut scratch.upper[..rows * vocab], vocab).tiles(1, vocab),
                Grid::new(&mut scratch.tokens[..rows * listed], listed).tiles(1, listed),
                Grid::new(&mut states[..rows], 1).tiles(1, 1),
            ),
            |_, row, (mut out, mut lower, mut upper, mut tokens, mut state)| {
                let state = &mut state.row(0)[0];
                if state.hidden.is_some() {
                    let bounds = [&*lower.row(0), &*upper.row(0)];
                    match candidates(&work.requests[row], bounds, out.row(0), tokens.row(0)) {
                        Some(tokens) => state.tokens = tokens,
                        None => state.hidden = None,
                    }
                }
            },
        );
    }

    /// The exact logits of the tokens listed.
    fn rescore(
        &self,
        work: &RowGroup<'_>,
        scratch: &mut TopLogitsScratch,
        states: &[RowState; GROUP],
    ) {
        let (simd, listed) = (self.isa.lanes(), MAX_CANDIDATES + work.capacity);
        let rows =
            scratch.tokens.chunks_exact(listed).zip(scratch.rescored.chunks_exact_mut(listed));
        for (row, (state, (tokens, rescored))) in states.iter().zip(rows).enumerate() {
            if state.hidden.is_none() {
                continue;
            }
            let x = work.x.row(work.first + row);
            let rescored = &mut rescored[..state.tokens];
            let out = Grid::new(rescored, state.tokens).tiles(1, RESCORE_RUN);
            self.each(out, |scratch, _, mut tile| {
                let tokens = &tokens[tile.columns()];
                rescore(simd, x, work.table, &mut scratch.row, tokens, &mut tile);
            });
        }
    }

    /// All logits of the other rows.
    fn full(
        &self,
        work: &RowGroup<'_>,
        scratch: &mut TopLogitsScratch,
        states: &[RowState; GROUP],
    ) {
        let vocab = work.table.rows();
        let is_full = |row: &usize| states[*row].hidden.is_none();
        let mut row = 0;
        while row < work.requests.len() {
            // Neighbours meet the table together.
            let run = (row..work.requests.len()).take_while(is_full).count();
            if run > 0 {
                let rows = work.first + row..work.first + row + run;
                let out = &mut scratch.upper[row * vocab..(row + run) * vocab];
                self.logits(work.table, work.x, rows, out);
            }
            row += run + 1;
        }
    }

    /// The result, from the exact logits.
    fn rank(
        &self,
        work: &RowGroup<'_>,
        scratch: &mut TopLogitsScratch,
        states: &[RowState; GROUP],
        out: &mut [Ranked],
    ) {
        let (rows, vocab) = (work.requests.len(), work.table.rows());
        let listed = MAX_CANDIDATES + work.capacity;
        let TopLogitsScratch { upper, tokens, rescored, .. } = scratch;
        let out = Grid::new(out, work.capacity).tiles(1, work.capacity);
        let upper = Grid::new(&mut upper[..rows * vocab], vocab).tiles(1, vocab);
        self.each((out, upper), |_, row, (mut out, mut upper)| {
            let (request, state) = (&work.requests[row], &states[row]);
            let (out, upper) = (out.row(0), upper.row(0));
            if state.hidden.is_some() {
                let tokens = tokens[row * listed..][..state.tokens].iter().copied();
                let logits = &rescored[row * listed..][..state.tokens];
                let (touched, best) = start(request, out);
                let mut rescored = tokens.zip(logits.iter().copied());
                if request.sum {
                    for (token, logit) in rescored.clone() {
                        upper[token as usize] = logit;
                    }
                }
                for (out, (token, logit)) in touched.iter_mut().zip(&mut rescored) {
                    *out = Ranked { token, logit };
                }
                rank_candidates(request, best, rescored);
            } else {
                rank_all(request, upper, out);
            }
            sum::write(request, upper, out);
        });
    }
}

/// Some rows of a step.
struct RowGroup<'a> {
    first: usize,
    x: &'a Floats,
    table: &'a DenseMatrix,
    requests: &'a [TopLogitsRequest],
    capacity: usize,
}

impl RowState {
    /// Candidates, the touched ones not counted; none where the head ran in full.
    fn candidates(&self, request: &TopLogitsRequest) -> Option<u32> {
        self.hidden?;
        u32::try_from(self.tokens - request.touched.len()).ok()
    }
}

/// Exact logits of the tokens of a tile.
fn rescore<S: Simd>(
    simd: S,
    x: &[f32],
    table: &DenseMatrix,
    scratch: &mut [f32],
    tokens: &[u32],
    tile: &mut Tile<'_, f32>,
) {
    match table.values() {
        DenseValues::F32(values) => logits_of(simd, x, values, tokens, tile.row(0)),
        DenseValues::F16(values) => logits_of(simd, x, values, tokens, tile.row(0)),
        DenseValues::Bf16(values) => logits_of(simd, x, values, tokens, tile.row(0)),
        DenseValues::Ternary(matrix) => {
            let widened = &mut scratch[..x.len()];
            ternary_logits_of(simd, x, matrix, widened, tokens, tile.row(0));
        }
        DenseValues::Int8Rows { .. } => unreachable!("tables of this type have no screen"),
    }
}
