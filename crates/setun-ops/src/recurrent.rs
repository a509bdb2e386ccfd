//! Recurrent state of sequences: its shape, and which of it a step reads and writes.
//!
//! The state of a sequence is a matrix for each value head of each layer, and a ring of the last rows of the layer's
//! input. A state has taken in the positions before some number, its base. The rows of the positions from there
//! on may be in the ring already: such rows are tentative, as drafts are before they are verified. The next step
//! takes in those of them that stay, without the layers before. A rejected row is dropped as the next step begins
//! before it.

pub use crate::recurrent_spec::RecurrentSpec;
use crate::{HAS_RECURRENT, delta_net_shape::DeltaNetShape, error::OpsError, numeric::to_u32};

/// Most tentative rows that a state may be made for.
const MAX_TENTATIVE: usize = 4096;

/// A recurrent state of the cache, over all layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StateId(pub u32);

impl RecurrentSpec {
    /// Checks that heads share evenly and nothing is empty.
    ///
    /// # Errors
    ///
    /// If they do not.
    pub fn check(&self) -> Result<(), OpsError> {
        let DeltaNetShape { key_heads, value_heads, key_dim, value_dim, kernel, .. } = self.shape;
        let what = "key heads, value heads, their widths or the kernel of a delta net";
        let sizes = [key_heads, value_heads, key_dim, value_dim, kernel - usize::from(kernel > 0)];
        if self.tentative > MAX_TENTATIVE {
            let (what, expected) = ("tentative rows of a state, at most", MAX_TENTATIVE);
            return Err(OpsError::Length { what, expected, found: self.tentative });
        }
        if sizes.contains(&0) || !value_heads.is_multiple_of(key_heads) {
            return Err(OpsError::Length { what, expected: key_heads, found: value_heads });
        }
        Ok(())
    }
}

/// What a step does with the state of a sequence.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StateRows {
    /// The state before the step, and its base; none where the sequence begins with the step.
    pub loaded: Option<(StateId, u32)>,
    /// The states that are written, each with the positions that it has taken in, ascending. The last is
    /// the sequence's from then on, and may be the loaded one; those before are snapshots. Rows beyond
    /// the last are tentative.
    pub stored: Vec<(StateId, u32)>,
}

impl StateRows {
    /// The positions that the loaded state has taken in.
    #[must_use]
    pub fn base(&self) -> u32 {
        self.loaded.map_or(0, |(_, base)| base)
    }

    /// The part of this for a microbatch: `positions` of the sequence in it, and whether others of the step came
    /// before.
    #[must_use]
    pub fn cut(&self, positions: Option<(u32, u32)>, begun: bool) -> Self {
        let (Some((first, end)), Some(&(target, certain))) = (positions, self.stored.last()) else {
            return self.clone();
        };
        let loaded = if begun { Some((target, certain.min(first))) } else { self.loaded };
        let base = loaded.map_or(0, |(_, base)| base);
        let snapshots = self.stored[..self.stored.len() - 1].iter().copied();
        let within = snapshots.filter(|&(_, taken)| taken > base && taken <= end);
        Self { loaded, stored: within.chain([(target, certain.min(end))]).collect() }
    }

    /// Checks these against the positions of the sequence's rows, and that the states are there.
    pub(crate) fn check(
        &self,
        rows: std::ops::Range<usize>,
        spec: &RecurrentSpec,
        states: usize,
    ) -> Result<(), OpsError> {
        let bound = |what, found: usize, expected: usize| {
            if found <= expected { Ok(()) } else { Err(OpsError::Inputs { what, expected, found }) }
        };
        let ids = self.loaded.iter().chain(&self.stored).map(|(id, _)| id.0 as usize);
        for id in ids {
            bound("recurrent state", id + 1, states)?;
        }
        let base = self.base() as usize;
        bound("positions that a state has taken in", base, rows.start)?;
        let tentative = if self.loaded.is_some() { spec.tentative } else { 0 };
        bound("tentative rows before a step", rows.start - base, tentative)?;
        let mut before = base;
        for (_, taken) in &self.stored {
            bound("positions before a stored state (ascending)", before, *taken as usize)?;
            before = *taken as usize;
        }
        bound("positions of a stored state", before, rows.end)?;
        bound("stored states (at least 1)", 1, self.stored.len())?;
        bound("tentative rows of a step", rows.end - before, spec.tentative)
    }
}

/// Checks that no state is written by two sequences, or by one while another reads it.
pub(crate) fn check_states(all: &[StateRows]) -> Result<(), OpsError> {
    let stored = |(index, rows): (usize, &StateRows)| {
        rows.stored.iter().map(move |(id, _)| (*id, index)).collect::<Vec<_>>()
    };
    let mut writers: Vec<_> = all.iter().enumerate().flat_map(stored).collect();
    writers.sort_unstable();
    let error =
        |what, id: StateId| Err(OpsError::Inputs { what, expected: 1, found: id.0 as usize });
    if let Some(pair) = writers.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        return error("writers of a recurrent state", pair[0].0);
    }
    for (index, rows) in all.iter().enumerate() {
        let Some((loaded, _)) = rows.loaded else { continue };
        let writer = writers.binary_search_by_key(&loaded, |(id, _)| *id).map(|at| writers[at].1);
        if writer.is_ok_and(|writer| writer != index) {
            return error("sequences of a recurrent state that is written", loaded);
        }
        // A snapshot in the place of the loaded state would be read after it was written.
        let is_last = rows.stored.last().is_some_and(|(id, _)| *id == loaded);
        if writer.is_ok() && !is_last {
            return error("snapshot in the place of the state before", loaded);
        }
    }
    Ok(())
}

/// Recurrent states in host memory.
#[derive(Clone, Debug, Default)]
pub struct HostStates {
    spec: Option<RecurrentSpec>,
    states: usize,
    layers: Vec<LayerStates>,
}

/// The states of one layer.
#[derive(Clone, Debug, Default)]
pub struct LayerStates {
    /// `[states, matrices]`
    pub matrices: Vec<f32>,
    /// `[states, history]`
    pub history: Vec<f32>,
}

impl HostStates {
    /// No states of a shape.
    #[must_use]
    pub fn new(spec: Option<RecurrentSpec>) -> Self {
        let layers = spec.filter(|_| HAS_RECURRENT).map_or(0, |spec| spec.layers);
        Self { spec, states: 0, layers: vec![LayerStates::default(); layers] }
    }

    /// Number of states.
    #[must_use]
    pub fn states(&self) -> usize {
        self.states
    }

    /// A layer's, to be written.
    pub fn layer_mut(&mut self, layer: usize) -> &mut LayerStates {
        &mut self.layers[layer]
    }

    /// Adds zeroed states until there are `states`.
    ///
    /// # Errors
    ///
    /// If the memory is not to be had; they are then as they were.
    pub fn grow(&mut self, states: usize) -> Result<(), OpsError> {
        let is_more = HAS_RECURRENT && states > self.states;
        let Some(spec) = self.spec.filter(|_| is_more) else { return Ok(()) };
        let bytes = states.saturating_mul(spec.state_bytes());
        let out_of_memory = |_| OpsError::OutOfMemory { what: "recurrent states", bytes };
        for LayerStates { matrices, history } in &mut self.layers {
            for (memory, size) in [(matrices, spec.matrices()), (history, spec.history())] {
                let more = (states * size).saturating_sub(memory.len());
                memory.try_reserve_exact(more).map_err(out_of_memory)?;
            }
        }
        self.resize(&spec, states);
        Ok(())
    }

    /// Gives back the memory of all states but the first `states`.
    pub fn shrink(&mut self, states: usize) {
        let is_fewer = HAS_RECURRENT && states < self.states;
        let Some(spec) = self.spec.filter(|_| is_fewer) else { return };
        self.resize(&spec, states);
        for LayerStates { matrices, history } in &mut self.layers {
            matrices.shrink_to_fit();
            history.shrink_to_fit();
        }
    }

    fn resize(&mut self, spec: &RecurrentSpec, states: usize) {
        for LayerStates { matrices, history } in &mut self.layers {
            matrices.resize(states * spec.matrices(), 0.0);
            history.resize(states * spec.history(), 0.0);
        }
        self.states = states;
    }

    /// See [`Backend::copy_states`](crate::Backend::copy_states).
    ///
    /// # Errors
    ///
    /// If a state is not here.
    pub fn copy(&mut self, pairs: &[(StateId, StateId)]) -> Result<(), OpsError> {
        for &(from, to) in pairs {
            let spec = self.check_ids(&[from, to])?;
            for LayerStates { matrices, history } in &mut self.layers {
                for (memory, size) in [(matrices, spec.matrices()), (history, spec.history())] {
                    let from = from.0 as usize * size;
                    memory.copy_within(from..from + size, to.0 as usize * size);
                }
            }
        }
        Ok(())
    }

    /// See [`Backend::read_states`](crate::Backend::read_states).
    ///
    /// # Errors
    ///
    /// If a state is not here or `out` does not fit.
    pub fn read(&self, ids: &[StateId], out: &mut [u8]) -> Result<(), OpsError> {
        let spec = self.check(ids, out.len())?;
        for (id, mut out) in ids.iter().zip(out.chunks_exact_mut(spec.state_bytes().max(1))) {
            for layer in &self.layers {
                for part in layer.parts(&spec, *id) {
                    let (head, rest) = out.split_at_mut(size_of_val(part));
                    head.copy_from_slice(bytemuck::cast_slice(part));
                    out = rest;
                }
            }
        }
        Ok(())
    }

    /// See [`Backend::write_states`](crate::Backend::write_states).
    ///
    /// # Errors
    ///
    /// If a state is not here or `data` does not fit.
    pub fn write(&mut self, ids: &[StateId], data: &[u8]) -> Result<(), OpsError> {
        let spec = self.check(ids, data.len())?;
        for (id, mut data) in ids.iter().zip(data.chunks_exact(spec.state_bytes().max(1))) {
            for layer in &mut self.layers {
                for part in layer.parts_mut(&spec, *id) {
                    let (head, rest) = data.split_at(size_of_val(part));
                    bytemuck::cast_slice_mut(part).copy_from_slice(head);
                    data = rest;
                }
            }
        }
        Ok(())
    }

    fn check(&self, ids: &[StateId], bytes: usize) -> Result<RecurrentSpec, OpsError> {
        check_bytes(self.check_ids(ids)?, ids, bytes)
    }

    fn check_ids(&self, ids: &[StateId]) -> Result<RecurrentSpec, OpsError> {
        check_ids(self.spec, self.states, ids)
    }
}

/// Checks that states are among those of a cache; their shape.
///
/// # Errors
///
/// If one is not, or the cache has none.
pub fn check_ids(
    spec: Option<RecurrentSpec>,
    states: usize,
    ids: &[StateId],
) -> Result<RecurrentSpec, OpsError> {
    let spec = spec.filter(|_| HAS_RECURRENT).ok_or(OpsError::NoStates)?;
    match ids.iter().find(|id| id.0 as usize >= states) {
        None => Ok(spec),
        Some(id) => Err(OpsError::Inputs {
            what: "recurrent state",
            expected: states.saturating_sub(1),
            found: id.0 as usize,
        }),
    }
}

/// Checks the size of what states are copied to or from.
///
/// # Errors
///
/// If it is another.
pub fn check_bytes(
    spec: RecurrentSpec,
    ids: &[StateId],
    bytes: usize,
) -> Result<RecurrentSpec, OpsError> {
    let expected = ids.len() * spec.state_bytes();
    if bytes == expected {
        Ok(spec)
    } else {
        Err(OpsError::Length { what: "bytes of recurrent states", expected, found: bytes })
    }
}

impl LayerStates {
    fn parts(&self, spec: &RecurrentSpec, id: StateId) -> [&[f32]; 2] {
        let of = |size: usize| id.0 as usize * size..(id.0 as usize + 1) * size;
        [&self.matrices[of(spec.matrices())], &self.history[of(spec.history())]]
    }

    /// Matrices and history of a state.
    pub fn parts_mut(&mut self, spec: &RecurrentSpec, id: StateId) -> [&mut [f32]; 2] {
        let of = |size: usize| id.0 as usize * size..(id.0 as usize + 1) * size;
        [&mut self.matrices[of(spec.matrices())], &mut self.history[of(spec.history())]]
    }
}

/// All states of a cache, in order.
#[must_use]
pub fn all_states(count: usize) -> Vec<StateId> {
    (0..count).map(|index| StateId(to_u32(index))).collect()
}
