//! The way of few rows over a long context: members claim spans.
//!
//! First scores and the greatest of each run of spans; then, as the maximum is known, each span's
//! sums of weights and of values; then these are added, span after span, and divided.

use std::ops::Range;

use fearless_simd::Simd;
use setun_ops::{
    BatchInputs, OpsError,
    aligned::Aligned,
    attention::{SPAN, maximum},
    op::HeadShape,
};

use super::{
    head_view::{HeadView, LayerView},
    longest,
    pair::Pair,
    sums::{add_sums, divide, span_total},
};
use crate::{
    lanes::{exp_minus, greatest},
    memory::zeroed,
    split::Grid,
    step::Floats,
    ternary_dot::TernaryDot,
    walk::Walk,
};

/// With fewer positions a step is not worth three jobs of the team.
const FEWEST_POSITIONS: usize = 256;

/// Pairs of a row and a KV head for each member, from which on they are claimed whole.
const MAX_PAIRS: usize = 4;

/// Parts for each member that the spans of a step fall into, if there are as many.
const PARTS: usize = 4;

/// Most spans that a member claims at once.
const MAX_SPANS: usize = 16;

/// Scores of all rows that go together, unless those of a single row are more.
const MAX_SCORES: usize = 1 << 21;

/// What members hand to each other. Grown by `prepare`, never by a step.
#[derive(Debug, Default)]
pub(crate) struct SpanScratch {
    scores: Aligned<f32>, // then weights, [rows, heads, spans, SPAN]
    maxima: Aligned<f32>, // of runs, [rows, heads, runs]
    totals: Aligned<f32>, // of weights, [rows, heads, spans]
    sums: Aligned<f32>,   // of values, [rows, heads, spans, head_dim]
}

impl SpanScratch {
    /// Grows to what a step of this many rows needs, the last of them at the last of `positions`.
    pub(crate) fn grow(
        &mut self,
        shape: HeadShape,
        rows: usize,
        positions: usize,
        threads: usize,
    ) -> Result<(), OpsError> {
        if threads == 1 || positions < FEWEST_POSITIONS {
            return Ok(());
        }
        let rows = rows.min(max_rows(shape, positions, threads));
        let spans = rows * shape.heads * positions.div_ceil(SPAN);
        for (memory, len) in [
            (&mut self.scores, spans * SPAN),
            (&mut self.maxima, spans),
            (&mut self.totals, spans),
            (&mut self.sums, spans * shape.head_dim),
        ] {
            if memory.len() < len {
                *memory = zeroed(len, "scratch memory")?;
            }
        }
        Ok(())
    }
}

/// Most rows that go together.
fn max_rows(shape: HeadShape, positions: usize, threads: usize) -> usize {
    let rows = (MAX_PAIRS * threads).div_ceil(shape.kv_heads);
    rows.min(MAX_SCORES / (shape.heads * positions)).max(1)
}

/// Whether a step of this many rows is cut into spans.
pub(super) fn is_worth_it(shape: HeadShape, rows: usize, longest: usize, threads: usize) -> bool {
    threads > 1 && longest >= FEWEST_POSITIONS && rows * shape.kv_heads < MAX_PAIRS * threads
}

/// How scores are cut.
#[derive(Clone, Copy)]
struct SpanPartition {
    spans: usize,
    run: usize, // spans that are claimed at once
}

impl SpanPartition {
    fn new(longest: usize, pairs: usize, threads: usize) -> Self {
        let spans = longest.div_ceil(SPAN);
        Self { spans, run: (spans * pairs / (PARTS * threads)).clamp(1, MAX_SPANS) }
    }

    fn runs(self) -> usize {
        self.spans.div_ceil(self.run)
    }
}

/// Some rows of a step, cut into spans.
struct SpanGroup<'a> {
    inputs: &'a BatchInputs,
    qkv: &'a Floats,
    shape: HeadShape,
    cache: LayerView<'a>,
    rows: Range<usize>,
    cut: SpanPartition,
}

impl<D: TernaryDot> Walk<'_, D> {
    /// Attention of all rows.
    pub(super) fn attention_by_spans(
        &self,
        scratch: &mut SpanScratch,
        qkv: &Floats,
        shape: HeadShape,
        cache: LayerView<'_>,
        out: &mut Floats,
    ) {
        let (inputs, width) = (self.inputs, out.width);
        let threads = self.crew.threads();
        let (_, limit) = self.plan.token_and_position_limits();
        let limit = if limit == usize::MAX { longest(&inputs.positions) } else { limit };
        let together = max_rows(shape, limit, threads);
        for first in (0..inputs.rows()).step_by(together) {
            let rows = first..inputs.rows().min(first + together);
            let pairs = rows.len() * shape.kv_heads;
            let cut = SpanPartition::new(longest(&inputs.positions[rows.clone()]), pairs, threads);
            let out = &mut out.values[rows.start * width..rows.end * width];
            let work = SpanGroup { inputs, qkv, shape, cache, rows, cut };
            self.scores(&work, scratch);
            self.sums(&work, scratch);
            self.results(&work, scratch, Grid::new(out, width));
        }
    }

    /// All scores, and the greatest of each run.
    fn scores(&self, work: &SpanGroup<'_>, scratch: &mut SpanScratch) {
        let simd = self.isa.lanes();
        let scores = work.per_span(&mut scratch.scores, SPAN);
        let maxima = work.grid(&mut scratch.maxima, work.cut.runs(), 1);
        self.each((scores, maxima), |scratch, _, (mut scores, mut maxima)| {
            let (pair, run) = (work.pair(scores.rows().start), scores.columns());
            pair.score_run(simd, run.start, &mut scratch.span, &mut scores);
            let seen = pair.seen(run.clone());
            for head in 0..maxima.rows().len() {
                maxima.row(head)[0] = simd.vectorize(
                    #[inline(always)]
                    || greatest(simd, &scores.row(head)[..seen]),
                );
            }
        });
    }

    /// The sums of each span's weights and values.
    fn sums(&self, work: &SpanGroup<'_>, scratch: &mut SpanScratch) {
        let (simd, runs) = (self.isa.lanes(), work.cut.runs());
        let SpanScratch { scores, maxima, totals, sums } = scratch;
        let parts = (
            work.per_span(scores, SPAN),
            work.per_span(totals, 1),
            work.per_span(sums, work.shape.head_dim),
        );
        self.each(parts, |scratch, _, (mut scores, mut totals, mut sums)| {
            let (heads, run) = (scores.rows(), scores.columns());
            let pair = work.pair(heads.start);
            let seen_runs = pair.visible.div_ceil(work.cut.run * SPAN);
            for (row, head) in heads.enumerate() {
                let maxima = &maxima[head * runs..][..seen_runs];
                let max = maxima.iter().copied().fold(f32::NEG_INFINITY, maximum);
                let weights = &mut scores.row(row)[..pair.seen(run.clone())];
                weigh(simd, weights, max, totals.row(row));
            }
            pair.sum_run(simd, run.start, scratch, &mut scores, &mut sums);
        });
    }

    /// Spans added up and divided.
    fn results(&self, work: &SpanGroup<'_>, scratch: &SpanScratch, out: Grid<'_, f32>) {
        let (simd, d, spans) = (self.isa.lanes(), work.shape.head_dim, work.cut.spans);
        self.each(out.tiles(1, d), |_, index, mut out| {
            let seen = work.pair(index).visible.div_ceil(SPAN);
            let y = out.row(0);
            y.fill(0.0);
            for sums in scratch.sums[index * spans * d..][..seen * d].chunks_exact(d) {
                add_sums(simd, sums, y);
            }
            let totals = &scratch.totals[index * spans..][..seen];
            divide(simd, y, totals.iter().fold(0.0, |total, span| total + span));
        });
    }
}

/// Makes scores weights, and adds up those of each span.
fn weigh<S: Simd>(simd: S, weights: &mut [f32], max: f32, totals: &mut [f32]) {
    simd.vectorize(
        #[inline(always)]
        || exp_minus(simd, weights, max),
    );
    for (total, weights) in totals.iter_mut().zip(weights.chunks(SPAN)) {
        *total = span_total(simd, weights);
    }
}

impl SpanGroup<'_> {
    /// `[rows, heads, spans × width]`, in tiles of the heads of a pair and a run of spans.
    fn per_span<'a>(&self, memory: &'a mut [f32], width: usize) -> Grid<'a, f32> {
        self.grid(memory, self.cut.spans * width, self.cut.run * width)
    }

    /// `[rows, heads, stride]`, in tiles of the heads of a pair and some columns.
    fn grid<'a>(&self, memory: &'a mut [f32], stride: usize, columns: usize) -> Grid<'a, f32> {
        let rows = self.rows.len() * self.shape.heads;
        let shared = self.shape.heads / self.shape.kv_heads;
        Grid::new(&mut memory[..rows * stride], stride).tiles(shared, columns)
    }

    /// The pair that a row of such a grid belongs to.
    fn pair(&self, head: usize) -> Pair<'_> {
        let HeadShape { heads, kv_heads, head_dim: d } = self.shape;
        let (row, kv_head) = (self.rows.start + head / heads, head % heads * kv_heads / heads);
        let table = &self.inputs.block_tables[self.inputs.slots[row] as usize];
        let shared = heads / kv_heads * d;
        Pair {
            view: HeadView { of: self.cache, table, kv_head },
            queries: &self.qkv.row(row)[kv_head * shared..][..shared],
            visible: self.inputs.positions[row] as usize + 1,
            d,
        }
    }
}
