//! Keys and values of a KV head, and scores and sums of a span of them.

use std::{iter, ops::Range};

use fearless_simd::Simd;
use setun_ops::{BlockId, attention::SPAN, cache_values::CacheValues, host_cache::HostCache};

use super::{
    scores::{scale, score},
    span::{SpanScores, Vectors, with_met_elements},
    sums::add,
};
use crate::lanes::widen;

/// A layer of a cache.
#[derive(Clone, Copy)]
pub(crate) struct LayerView<'a> {
    pub(crate) cache: &'a HostCache,
    pub(crate) layer: usize,
}

/// Keys and values of one KV head of one sequence.
#[derive(Clone, Copy)]
pub(super) struct HeadView<'a> {
    pub(super) of: LayerView<'a>,
    pub(super) table: &'a [BlockId],
    pub(super) kv_head: usize,
}

/// A span of keys or values.
pub(super) struct Span<'a> {
    view: HeadView<'a>,
    values: &'a CacheValues,
    start: usize,
    widened: Option<&'a [f32]>, // `[len, d]`, otherwise as the cache has them
    scales: [f32; SPAN],
}

impl<'a> HeadView<'a> {
    /// The keys of some positions of a span; widened to `memory`, if there is any.
    pub(super) fn keys<S: Simd>(
        self,
        simd: S,
        positions: Range<usize>,
        memory: Option<&'a mut [f32]>,
    ) -> Span<'a> {
        Span::new(simd, self, &self.of.cache.layers()[self.of.layer].keys, positions, memory)
    }

    /// The values of some positions of a span; widened to `memory`, if there is any.
    pub(super) fn values<S: Simd>(
        self,
        simd: S,
        positions: Range<usize>,
        memory: Option<&'a mut [f32]>,
    ) -> Span<'a> {
        Span::new(simd, self, &self.of.cache.layers()[self.of.layer].values, positions, memory)
    }

    /// Indices of the vectors of some positions, taken together where they are neighbours.
    fn indices(self, positions: Range<usize>) -> impl Iterator<Item = Range<usize>> + use<'a> {
        let block = self.of.cache.spec().block_positions;
        let Range { mut start, end } = positions;
        iter::from_fn(move || {
            let len = (block - start % block).min(end - start);
            let first =
                (len > 0).then(|| self.of.cache.vector_index(self.table, self.kv_head, start));
            start += len;
            first.map(|first| first..first + len)
        })
    }
}

impl HeadView<'_> {
    /// Indices of the vectors in the block behind that of a position, if there is one.
    fn next_block(self, position: usize) -> Range<usize> {
        let block = self.of.cache.spec().block_positions;
        let next = position / block + 1;
        if next >= self.table.len() {
            return 0..0;
        }
        let first = self.of.cache.vector_index(self.table, self.kv_head, next * block);
        first..first + block.min(SPAN)
    }
}

impl<'a> Span<'a> {
    fn new<S: Simd>(
        simd: S,
        view: HeadView<'a>,
        values: &'a CacheValues,
        positions: Range<usize>,
        memory: Option<&'a mut [f32]>,
    ) -> Self {
        let start = positions.start;
        let mut span = Self { view, values, start, widened: None, scales: [1.0; SPAN] };
        if let CacheValues::Int8 { scales, .. } = values {
            let mut out = span.scales.as_mut_slice();
            for indices in view.indices(positions.clone()) {
                let (these, rest) = out.split_at_mut(indices.len());
                these.copy_from_slice(&scales[indices]);
                out = rest;
            }
        }
        if let (Some(memory), false) = (memory, matches!(values, CacheValues::F32(_))) {
            let memory = &mut memory[..positions.len() * span.head_dim()];
            let mut rest = &mut *memory;
            span.each(positions.len(), |_, vectors, _| {
                let all = std::mem::take(&mut rest);
                let (these, others) = all.split_at_mut(vectors.elements());
                match vectors {
                    Vectors::F32(values) => these.copy_from_slice(values),
                    Vectors::F16(values) => widen(simd, values, these),
                    Vectors::Int8(values) => widen(simd, values, these),
                }
                rest = others;
            });
            span.widened = Some(memory);
        }
        span
    }

    fn head_dim(&self) -> usize {
        self.view.of.cache.spec().head_dim
    }

    /// Visits the first `len` vectors, neighbours in memory together, with the place of the first.
    fn each(&self, len: usize, mut visit: impl FnMut(usize, Vectors<'_>, &[u8])) {
        let d = self.head_dim();
        if let Some(widened) = self.widened {
            return visit(0, Vectors::F32(&widened[..len * d]), &[]);
        }
        let mut at = 0;
        for indices in self.view.indices(self.start..self.start + len) {
            let vectors = self.vectors(indices.start * d..indices.end * d);
            let ahead = self.view.next_block(self.start + at);
            let ahead = self.vectors(ahead.start * d..ahead.end * d);
            visit(at, vectors, ahead.bytes());
            at += indices.len();
        }
    }

    fn vectors(&self, elements: Range<usize>) -> Vectors<'a> {
        match self.values {
            CacheValues::F32(values) => Vectors::F32(&values[elements]),
            CacheValues::F16(values) => Vectors::F16(&values[elements]),
            CacheValues::Int8 { codes, .. } => Vectors::Int8(&codes[elements]),
        }
    }

    /// Scores of some queries `[d]` with the first `len` keys.
    pub(super) fn score<S: Simd>(
        &self,
        simd: S,
        queries: &[&[f32]],
        len: usize,
        scores: &mut SpanScores,
    ) {
        self.each(len, |at, keys, ahead| {
            with_met_elements!(keys, keys => score(simd, queries, keys, ahead, at, scores));
        });
        for scores in &mut scores[..queries.len()] {
            scale(simd, self.head_dim(), &self.scales, scores);
        }
    }

    /// Sums of the first `len` values for some queries, to `sums` `[queries, d]`. Leaves the
    /// weights multiplied by the values' scales.
    pub(super) fn sum<S: Simd>(
        &self,
        simd: S,
        weights: &mut [[f32; SPAN]],
        len: usize,
        sums: &mut [f32],
    ) {
        if matches!(self.values, CacheValues::Int8 { .. }) {
            for weights in &mut *weights {
                weights.iter_mut().zip(&self.scales).for_each(|(weight, scale)| *weight *= scale);
            }
        }
        sums.fill(0.0);
        self.each(len, |at, values, ahead| {
            with_met_elements!(values, values => add(simd, weights, at, values, ahead, sums));
        });
    }
}
