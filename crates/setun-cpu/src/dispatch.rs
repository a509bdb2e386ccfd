//! Dispatch of a plan's operations, one after another, by the leader of the team.

use std::{
    sync::{Mutex, RwLock, atomic::Ordering},
    time::Instant,
};

use setun_ops::{BatchInputs, HAS_RECURRENT, Op, host_cache::HostCache};

use crate::{
    argmax::ArgmaxScratch,
    attention::{LayerView, SpanScratch},
    member_sums::MemberSums,
    scratch::Scratch,
    screen_dot::ScreenDot,
    step::CpuStep,
    team::Crew,
    top_logits::TopLogitsScratch,
    walk::{Counts, Walk},
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
pub(crate) fn run_plan<D: ScreenDot>(isa: D, resources: Resources<'_>) {
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
            // Such plans are refused when they are prepared.
            op if !HAS_RECURRENT && op.is_hybrid() => {}
            Op::SigmoidGate { x, gate, column } => walk.sigmoid_gate(buffers, *x, *gate, *column),
            Op::DeltaNet { x, shape, weights, layer, out } => {
                walk.delta_net(buffers, *x, *shape, weights, *out, cache, *layer);
            }
            Op::DenseMatmul { x, weight, out, out_column } => {
                walk.dense_matmul(buffers, *x, *weight, *out, *out_column);
            }
            Op::Hadamard { x, signs, block, is_inverse } => {
                walk.hadamard(buffers, *x, *signs, *block, *is_inverse);
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
