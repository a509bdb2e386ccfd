//! The leader's walk through a plan, one operation after another.

use std::{
    sync::{
        Mutex, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

use setun_ops::{
    BatchInputs, Op,
    host_cache::HostCache,
    op::BufferId,
    plan::{Plan, RowSet},
};

use crate::{
    argmax::ArgmaxScratch,
    attention::{LayerView, SpanScratch},
    scratch::Scratch,
    screen_dot::ScreenDot,
    split::{Claims, Parts},
    step::{CpuStep, Weights},
    team::Crew,
    ternary_dot::TernaryDot,
    ternary_matmul::MemberSums,
    top_logits::TopLogitsScratch,
};

/// What a step works with.
pub(crate) struct Resources<'a> {
    pub(crate) step: &'a mut CpuStep,
    pub(crate) cache: &'a mut HostCache,
    pub(crate) inputs: &'a BatchInputs,
    pub(crate) crew: &'a Crew<'a>,
    pub(crate) scratch: &'a [Mutex<Scratch>],
    pub(crate) sums: &'a [RwLock<MemberSums>],
    pub(crate) top_logits: &'a mut TopLogitsScratch,
    pub(crate) argmax: &'a mut ArgmaxScratch,
    pub(crate) spans: &'a mut SpanScratch,
}

/// Runs all ops of a plan.
pub(crate) fn walk<D: ScreenDot>(isa: D, resources: Resources<'_>) {
    let Resources { step, cache, inputs, crew, scratch, sums, top_logits, argmax, spans } =
        resources;
    let CpuStep { plan, weights, buffers, times } = step;
    let counts = times.is_some().then(Counts::default);
    let walk = Walk { isa, plan, weights, inputs, crew, scratch, sums, counts };
    for (index, op) in plan.ops().iter().enumerate() {
        let begun = times.is_some().then(Instant::now);
        match op {
            Op::Embed { table, out } => walk.embed(buffers, *table, *out),
            Op::RmsNorm { x, norm, out } => walk.rms_norm(buffers, *x, *norm, *out),
            Op::Quantize { x, norm, out } => walk.quantize(buffers, *x, *norm, *out),
            Op::TernaryMatmul { linear, residual, out, out_column } => {
                walk.ternary_matmul(buffers, linear, *residual, *out, *out_column);
            }
            Op::HeadNorm { x, column, heads, norm } => {
                walk.head_norm(buffers, *x, *column, *heads, *norm);
            }
            Op::RopeAppend { qkv, shape, rope, layer } => {
                walk.rope_append(buffers, *qkv, *shape, *rope, cache, *layer);
            }
            Op::Attention { qkv, shape, layer, out } => {
                let cache = LayerView { cache, layer: *layer };
                walk.attention(buffers, spans, *qkv, *shape, cache, *out);
            }
            Op::Gate { gate, up, activation, out } => {
                walk.gate(buffers, gate, up, *activation, *out);
            }
            Op::Head { x, table, out } => walk.head(buffers, *x, *table, *out),
            Op::TopLogits { x, table, out } => {
                walk.top_logits(buffers, top_logits, *x, *table, *out);
            }
            Op::Argmax { x, table, out, .. } => walk.argmax(buffers, argmax, *x, *table, *out),
        }
        if let (Some(begun), Some(times), Some(counts)) = (begun, &mut *times, &walk.counts) {
            times.ops[index] = begun.elapsed();
            times.unread[index] = counts.unread.swap(0, Ordering::Relaxed);
            times.nonzero[index] = counts.nonzero.swap(0, Ordering::Relaxed);
            if matches!(op, Op::TopLogits { .. }) {
                times.candidates.clone_from(&top_logits.candidates);
            }
        }
    }
    if let Some(times) = times {
        times.jobs = crew.jobs();
    }
}

/// What every operation needs; each has its method in the file of its name.
pub(crate) struct Walk<'a, D> {
    pub(crate) isa: D,
    pub(crate) plan: &'a Plan,
    pub(crate) weights: &'a Weights,
    pub(crate) inputs: &'a BatchInputs,
    pub(crate) crew: &'a Crew<'a>,
    pub(crate) scratch: &'a [Mutex<Scratch>],
    pub(crate) sums: &'a [RwLock<MemberSums>],
    /// Of the operation under way; none where the step is not timed.
    counts: Option<Counts>,
}

/// What members of the team count together.
#[derive(Debug, Default)]
struct Counts {
    unread: AtomicU64,  // bytes of weights
    nonzero: AtomicU64, // codes or gates
}

impl<D: TernaryDot> Walk<'_, D> {
    /// Notes that weights were not read, as they could not matter.
    pub(crate) fn spare(&self, bytes: usize) {
        if let Some(counts) = &self.counts {
            counts.unread.fetch_add(bytes as u64, Ordering::Relaxed);
        }
    }

    /// Notes codes or gates that are not zero; they are counted only where the step is timed.
    pub(crate) fn record_nonzero(&self, count: impl FnOnce() -> usize) {
        if let Some(counts) = &self.counts {
            counts.nonzero.fetch_add(count() as u64, Ordering::Relaxed);
        }
    }

    /// Rows of this step that a buffer holds.
    pub(crate) fn rows(&self, buffer: BufferId) -> usize {
        match self.plan.buffer(buffer).rows {
            RowSet::Batch => self.inputs.rows(),
            RowSet::Wanted => self.inputs.wanted.len(),
        }
    }

    /// Has the team do `work` on each part, with the part's index.
    pub(crate) fn each<P: Parts>(
        &self,
        parts: P,
        work: impl Fn(&mut Scratch, usize, P::Part) + Sync,
    ) {
        let alone = parts.count() <= 1;
        let claims = Claims::new(parts);
        let job = |member: usize| {
            // A member's own: never contended.
            let mut scratch = self.scratch[member].lock().unwrap_or_else(PoisonError::into_inner);
            while let Some((index, part)) = claims.next() {
                work(&mut scratch, index, part);
            }
        };
        if alone { job(0) } else { self.crew.run(&job) }
    }
}
