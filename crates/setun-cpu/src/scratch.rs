//! Memory that one member of the team works in.

use setun_ops::{
    OpsError, Plan,
    aligned::Aligned,
    attention::SPAN,
    delta_net::DeltaNetShape,
    dense::DenseValues,
    op::{HeadShape, Linear, Op},
    plan::{BufferKind, BufferSpec},
    ternary::{BLOCK_COLUMNS, padded_columns},
    ternary_matmul::common_group,
};

use crate::{
    delta_scratch::{DeltaScratch, delta_scratch},
    group_scratch::GroupScratch,
    memory::zeroed,
    step::Weights,
    ternary_panel::{
        BLOCK_QUADS, FEWEST_PANEL_ROWS, MAX_BLOCKS, MAX_ROWS, PanelOutputs, PanelSums, Quad,
    },
};

/// Most queries that meet a key together.
pub(crate) const TILE_QUERIES: usize = 4;

/// Most rows of a sequence that meet its keys and values together.
pub(crate) const TILE_ROWS: usize = 8;

/// Scores of a query head, whatever the rows: those of [`TILE_ROWS`] of 16,384 positions. They may
/// exceed the second-level cache: to read keys and values for fewer rows takes longer.
pub(crate) const TILE_SCORES: usize = 128 * 1024;

/// Scratch memory of one member. Grown by `prepare`, never by a step (but see
/// [`Scratch::grow_scores`]).
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    /// Index of the member.
    pub(crate) member: usize,
    /// One row of activations or of a table: `[width]`.
    pub(crate) row: Aligned<f32>,
    /// Scores of a group of heads: `[rows, heads, positions]`.
    pub(crate) scores: Aligned<f32>,
    /// Keys or values of a span, widened: `[SPAN, head_dim]`.
    pub(crate) span: Aligned<f32>,
    /// Sums of a span's values: `[TILE_QUERIES, head_dim]`.
    pub(crate) span_sums: Aligned<f32>,
    pub(crate) panel: PanelScratch,
    pub(crate) groups: GroupScratch,
    pub(crate) delta: DeltaScratch,
}

/// A panel of unpacked weights and what it adds up to.
#[derive(Debug, Default)]
pub(crate) struct PanelScratch {
    /// `[quads]`
    pub(crate) quads: Aligned<Quad>,
    /// `[rows]`
    pub(crate) sums: Aligned<PanelSums>,
    /// Outputs by groups of columns, `[rows]`.
    pub(crate) outputs: Aligned<PanelOutputs>,
    /// Weight scales of the runs of a panel, `[runs]`.
    pub(crate) scales: Aligned<PanelOutputs>,
}

/// How much scratch memory a plan needs.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ScratchSize {
    row: usize,
    scores: usize,
    span: usize,
    span_sums: usize,
    quads: usize,
    panel_rows: usize,
    group_rows: usize,
    runs: usize,
    delta: Option<DeltaNetShape>,
}

impl ScratchSize {
    /// What the ops of `plan` need.
    pub(crate) fn of(plan: &Plan, weights: &Weights) -> Self {
        let (_, positions) = plan.token_and_position_limits();
        let mut size = Self { delta: delta_scratch(plan), ..Self::default() };
        for op in plan.ops() {
            match op {
                Op::Quantize { x, norm: Some(_), .. } => {
                    size.row = size.row.max(plan.buffer(*x).width);
                }
                Op::Head { x, table, .. }
                | Op::DenseMatmul { x, weight: table, .. }
                | Op::TopLogits { x, table, .. }
                | Op::Argmax { x, table, .. } => {
                    if let DenseValues::Ternary(matrix) = weights.dense(*table).values() {
                        size.row = size.row.max(plan.buffer(*x).width);
                        let run = common_group(None, matrix.scales()).unwrap_or(BLOCK_COLUMNS);
                        size.runs = size.runs.max(padded_columns(matrix.columns()) / run);
                    }
                }
                Op::Attention { shape, .. } => {
                    size.span = size.span.max(SPAN * shape.head_dim);
                    size.span_sums = size.span_sums.max(TILE_QUERIES * shape.head_dim);
                    if positions != usize::MAX {
                        size.scores = size.scores.max(scores(*shape, positions));
                    }
                }
                _ => {}
            }
            for linear in op.linears().filter(|it| weights.columns(it.weight).is_none()) {
                size.add_panel(plan, weights, linear);
            }
        }
        size
    }

    /// What a layer needs by panels.
    fn add_panel(&mut self, plan: &Plan, weights: &Weights, linear: &Linear) {
        let BufferSpec { kind, width, .. } = plan.buffer(linear.x);
        let x = if let BufferKind::Quantized { group } = kind { group } else { None };
        let run = common_group(x, weights.ternary(linear.weight).scales());
        if let Some(run) = run {
            self.runs = self.runs.max(padded_columns(width) / run);
        }
        // Fewer are served by tiles, whatever the instruction set.
        if plan.rows() < FEWEST_PANEL_ROWS {
            return;
        }
        let blocks = width.div_ceil(BLOCK_COLUMNS);
        self.quads = self.quads.max(blocks.min(MAX_BLOCKS) * BLOCK_QUADS);
        self.panel_rows = plan.rows().min(MAX_ROWS);
        if run.is_some() {
            self.group_rows = self.panel_rows;
        }
    }
}

impl Scratch {
    pub(crate) fn of_member(member: usize) -> Self {
        Self { member, ..Self::default() }
    }

    /// Grows to `size`.
    pub(crate) fn grow(&mut self, size: ScratchSize) -> Result<(), OpsError> {
        for (memory, size) in [
            (&mut self.row, size.row),
            (&mut self.scores, size.scores),
            (&mut self.span, size.span),
            (&mut self.span_sums, size.span_sums),
        ] {
            if memory.len() < size {
                *memory = zeroed(size, "scratch memory")?;
            }
        }
        self.groups.reserve(size.runs)?;
        if let Some(shape) = size.delta {
            self.delta.grow(shape)?;
        }
        let PanelScratch { quads, sums, outputs, scales } = &mut self.panel;
        if outputs.len() < size.group_rows {
            *outputs = zeroed(size.group_rows, "scratch memory")?;
        }
        if scales.len() < size.runs && size.group_rows > 0 {
            *scales = zeroed(size.runs, "scratch memory")?;
        }
        if quads.len() < size.quads {
            *quads = zeroed(size.quads, "scratch memory")?;
        }
        if sums.len() < size.panel_rows {
            *sums = zeroed(size.panel_rows, "scratch memory")?;
        }
        Ok(())
    }

    /// Makes room for the scores of `positions`. Allocates only where the plan has no table of
    /// positions to know their number beforehand.
    pub(crate) fn grow_scores(
        &mut self,
        shape: HeadShape,
        positions: usize,
    ) -> Result<(), OpsError> {
        let size = scores(shape, positions);
        if self.scores.len() < size {
            self.scores = zeroed(size.next_power_of_two(), "scratch memory")?;
        }
        Ok(())
    }
}

/// Scores of the query heads that share a KV head.
fn scores(shape: HeadShape, positions: usize) -> usize {
    shape.heads / shape.kv_heads * max_scores(positions)
}

/// Most scores of a query head, of all rows that are taken together, up to this many positions.
fn max_scores(positions: usize) -> usize {
    positions.saturating_mul(TILE_ROWS).min(TILE_SCORES).max(positions)
}
