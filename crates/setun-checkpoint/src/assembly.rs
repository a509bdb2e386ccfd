//! Puts tensors together from pieces of their files.

use std::ops::Range;

use setun_ops::aligned::Aligned;

use crate::{
    error::CheckpointError,
    reader::PIECE_BYTES,
    tensor::{Tensor, TensorData, TensorInfo},
};

/// All tensors of a checkpoint, and how far their data have come.
#[derive(Debug)]
pub(crate) struct Assembly {
    tensors: Vec<TensorInfo>,
    wanted: Vec<bool>, // by tensor
    current: usize,    // the tensor that arrives, or the number of tensors
    elements: TensorData,
    arrived: u64, // bytes of the current tensor
}

impl Assembly {
    /// Before the first byte. An empty tensor is not wanted: it has nothing to wait for, and no
    /// model needs one.
    pub(crate) fn new(tensors: Vec<TensorInfo>) -> Self {
        let wanted = tensors.iter().map(|info| info.bytes() > 0).collect();
        let elements = TensorData::Bytes(Aligned::new());
        let mut assembly = Self { tensors, wanted, current: 0, elements, arrived: 0 };
        assembly.go_to(0);
        assembly
    }

    pub(crate) fn tensors(&self) -> &[TensorInfo] {
        &self.tensors
    }

    /// Passes over tensors, but not over one that has partly arrived.
    pub(crate) fn select(&mut self, mut keep: impl FnMut(&TensorInfo) -> bool) {
        for (wanted, info) in self.wanted.iter_mut().zip(&self.tensors) {
            *wanted = *wanted && keep(info);
        }
        if self.arrived == 0 {
            self.go_to(self.current);
        }
    }

    /// File and range of the next piece.
    pub(crate) fn want(&self) -> Option<(String, Range<u64>)> {
        let info = self.tensors.get(self.current)?;
        let start = info.range.start + self.arrived;
        Some((info.file.to_string(), start..info.range.end.min(start + PIECE_BYTES)))
    }

    /// Takes the piece that was wanted.
    pub(crate) fn append(&mut self, bytes: &[u8]) -> Result<Option<Tensor>, CheckpointError> {
        let info = self.tensors.get(self.current).ok_or(CheckpointError::NothingWanted)?;
        let length = self.elements.stored_length(info);
        self.elements.append(bytes, length).map_err(|_| CheckpointError::OutOfMemory {
            tensor: info.name.clone(),
            bytes: info.bytes(),
        })?;
        self.arrived += bytes.len() as u64;
        if self.arrived < info.bytes() {
            return Ok(None);
        }
        let info = info.clone();
        let data = std::mem::replace(&mut self.elements, TensorData::Bytes(Aligned::new()));
        self.go_to(self.current + 1);
        Ok(Some(Tensor { info, data }))
    }

    /// Stands before the first wanted tensor from `tensor` on.
    fn go_to(&mut self, tensor: usize) {
        let skipped = self.wanted.iter().skip(tensor).take_while(|wanted| !**wanted).count();
        self.current = tensor + skipped;
        self.arrived = 0;
        if let Some(info) = self.tensors.get(self.current) {
            self.elements = TensorData::empty(info.dtype);
        }
    }
}
