//! Recurrent states in a device's memory, and their way to and from the host.
//!
//! Of each layer there is a buffer of matrices and one of histories, as the host has them: a state follows the other.

use setun_ops::{
    HAS_RECURRENT, OpsError, RecurrentSpec, StateId,
    recurrent::{check_bytes, check_ids},
};

use crate::executor::Executor;

/// The states of a cache. Their buffers are others once there are more or fewer of them.
#[derive(Debug)]
pub(crate) struct GpuStates<B> {
    spec: Option<RecurrentSpec>,
    count: usize,
    layers: Vec<[B; 2]>, // matrices, history; none where there is no state
}

impl<B: Clone> GpuStates<B> {
    /// No states of a shape.
    pub(crate) fn new(spec: Option<RecurrentSpec>) -> Self {
        Self { spec, count: 0, layers: vec![] }
    }

    pub(crate) fn count(&self) -> usize {
        self.count
    }

    pub(crate) fn matrices(&self, layer: usize) -> Option<&B> {
        self.layers.get(layer).map(|[matrices, _]| matrices)
    }

    pub(crate) fn history(&self, layer: usize) -> Option<&B> {
        self.layers.get(layer).map(|[_, history]| history)
    }

    /// See [`Backend::grow_states`](setun_ops::Backend::grow_states).
    pub(crate) fn grow<E: Executor<Buffer = B>>(
        &mut self,
        executor: &mut E,
        states: usize,
    ) -> Result<(), OpsError> {
        let is_more = HAS_RECURRENT && states > self.count;
        let Some(spec) = self.spec.filter(|_| is_more) else { return Ok(()) };
        if self.layers.is_empty() {
            for _ in 0..spec.layers {
                let [matrices, history] = bytes(&spec)
                    .map(|bytes| executor.create_buffer("recurrent states", bytes * states as u64));
                match (matrices, history) {
                    (Ok(matrices), Ok(history)) => self.layers.push([matrices, history]),
                    (Err(error), _) | (_, Err(error)) => {
                        self.layers.clear();
                        return Err(error);
                    }
                }
            }
        } else {
            // One by one, so that there is never twice the memory. Where that fails, some have more
            // room than states, and all have what they had.
            for layer in &mut self.layers {
                for (buffer, bytes) in layer.iter_mut().zip(bytes(&spec)) {
                    let grown =
                        executor.create_buffer("recurrent states", bytes * states as u64)?;
                    executor.copy((buffer, 0), (&grown, 0), bytes * self.count as u64)?;
                    *buffer = grown;
                }
            }
        }
        self.count = states;
        Ok(())
    }

    /// See [`Backend::shrink_states`](setun_ops::Backend::shrink_states).
    pub(crate) fn shrink<E: Executor<Buffer = B>>(
        &mut self,
        executor: &mut E,
        states: usize,
    ) -> Result<(), OpsError> {
        let is_fewer = HAS_RECURRENT && states < self.count;
        let Some(spec) = self.spec.filter(|_| is_fewer) else { return Ok(()) };
        self.count = states;
        if states == 0 {
            self.layers.clear();
            return Ok(());
        }
        for layer in &mut self.layers {
            for (buffer, bytes) in layer.iter_mut().zip(bytes(&spec)) {
                let bytes = bytes * states as u64;
                let smaller = match executor.create_buffer("recurrent states", bytes) {
                    Ok(smaller) => smaller,
                    Err(OpsError::OutOfMemory { .. }) => return Ok(()),
                    Err(error) => return Err(error),
                };
                executor.copy((buffer, 0), (&smaller, 0), bytes)?;
                *buffer = smaller;
            }
        }
        Ok(())
    }

    /// See [`Backend::copy_states`](setun_ops::Backend::copy_states).
    pub(crate) fn copy<E: Executor<Buffer = B>>(
        &self,
        executor: &mut E,
        pairs: &[(StateId, StateId)],
    ) -> Result<(), OpsError> {
        for &(from, to) in pairs {
            let spec = self.check_ids(&[from, to])?;
            if from == to {
                continue;
            }
            for layer in &self.layers {
                for (buffer, bytes) in layer.iter().zip(bytes(&spec)) {
                    let (from, to) = (u64::from(from.0) * bytes, u64::from(to.0) * bytes);
                    executor.copy((buffer, from), (buffer, to), bytes)?;
                }
            }
        }
        Ok(())
    }

    /// See [`Backend::read_states`](setun_ops::Backend::read_states).
    pub(crate) async fn read<E: Executor<Buffer = B>>(
        &self,
        executor: &mut E,
        ids: &[StateId],
        out: &mut [u8],
    ) -> Result<(), OpsError> {
        let spec = self.check(ids, out.len())?;
        for (id, mut out) in ids.iter().zip(out.chunks_exact_mut(spec.state_bytes().max(1))) {
            for layer in &self.layers {
                for (buffer, bytes) in layer.iter().zip(bytes(&spec)) {
                    let (part, rest) = out.split_at_mut(to_usize(bytes));
                    executor.read(buffer, u64::from(id.0) * bytes, part).await?;
                    out = rest;
                }
            }
        }
        Ok(())
    }

    /// See [`Backend::write_states`](setun_ops::Backend::write_states).
    pub(crate) fn write<E: Executor<Buffer = B>>(
        &self,
        executor: &mut E,
        ids: &[StateId],
        data: &[u8],
    ) -> Result<(), OpsError> {
        let spec = self.check(ids, data.len())?;
        for (id, mut data) in ids.iter().zip(data.chunks_exact(spec.state_bytes().max(1))) {
            for layer in &self.layers {
                for (buffer, bytes) in layer.iter().zip(bytes(&spec)) {
                    let (part, rest) = data.split_at(to_usize(bytes));
                    executor.write(buffer, u64::from(id.0) * bytes, part)?;
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
        check_ids(self.spec, self.count, ids)
    }
}

/// Bytes of a state's matrices and of its history in a layer.
fn bytes(spec: &RecurrentSpec) -> [u64; 2] {
    [spec.matrices(), spec.history()].map(|floats| 4 * floats as u64)
}

fn to_usize(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}
