//! Buffers between the operations of a step.

use std::path::Path;

use bytemuck::{AnyBitPattern, NoUninit, allocation::pod_collect_to_vec};
use setun::{
    forward::{Batch, Model as _, PagedCache, RequestedOutput, TransformerOptions},
    ops::{Backend, CacheElement},
};

use crate::run::transformer;

/// Contents of them.
pub struct Tapped {
    /// Hidden states after the embedding and each layer; the last after the last norm.
    pub hidden: Vec<Vec<f32>>,
    /// Hidden states after the last layer.
    pub residual: Vec<f32>,
    /// The int8 codes that enter each linear layer, by its name.
    pub codes: Vec<(String, Vec<i8>)>,
    /// The recurrent state after the step, layer by layer matrices and then history.
    pub state: Vec<f32>,
}

/// Runs a text as one step of the model at `path`, whose cache has all bits.
///
/// # Panics
///
/// If the model cannot be loaded, or the step fails.
pub fn tapped<B>(path: impl AsRef<Path>, backend: B, ids: &[u32]) -> Tapped
where
    B: Backend<Weight: Send, Prepared: Send, Cache: Send> + Send,
{
    let options =
        TransformerOptions { cache_element: CacheElement::F32, ..TransformerOptions::default() };
    let mut transformer = transformer(path, backend, options);
    let plan = transformer.plan(ids.len(), ids.len(), true).expect("a plan");

    let mut cache = PagedCache::for_model(&transformer, 1 << 10);
    let sequence = cache.create();
    cache.extend(sequence, ids.len()).expect("room");
    let mut batch = Batch::default();
    batch.push_run(sequence, 0, ids, RequestedOutput::Logits);
    batch.request_logits(0);

    let mut buffers = plan.taps.hidden.clone();
    buffers.extend(plan.taps.normed);
    buffers.extend(plan.taps.codes.iter().map(|(_, buffer)| *buffer));
    let reads: Vec<_> = buffers.iter().map(|&buffer| (buffer, ids.len())).collect();
    let forward = transformer.forward_with_taps(&plan.plan, &batch, &mut cache, &reads);
    let mut read = pollster::block_on(forward).expect("a step").into_iter();

    let mut floats = || numbers::<f32>(&read.next().expect("a buffer"));
    let mut hidden: Vec<Vec<f32>> = plan.taps.hidden.iter().map(|_| floats()).collect();
    let normed = floats();
    let residual = hidden.pop().expect("a layer");
    hidden.push(normed);
    let names = plan.taps.codes.iter().map(|(name, _)| name.clone());
    let codes = names.zip(read.map(|bytes| numbers::<i8>(&bytes))).collect();

    let mut state = vec![0; transformer.state_bytes()];
    if let Some((id, taken)) = cache.state(sequence).expect("a sequence") {
        assert_eq!(taken, ids.len(), "positions that the state has taken in");
        pollster::block_on(transformer.read_states(&[id], &mut state)).expect("a state");
    }
    Tapped { hidden, residual, codes, state: numbers(&state) }
}

fn numbers<T: NoUninit + AnyBitPattern>(bytes: &[u8]) -> Vec<T> {
    pod_collect_to_vec(bytes)
}
