//! Puts tensors together from pieces of their files.

use setun_ops::aligned::Aligned;

use crate::{
    data_reader::DataReader,
    error::CheckpointError,
    paired_rows,
    source::{PIECE_BYTES, ReadRequest},
    tensor::{Tensor, TensorData, TensorInfo},
};

/// All tensors of a checkpoint, and how far their data have come.
#[derive(Debug)]
pub(crate) struct TensorAssembler {
    tensors: Vec<TensorInfo>,
    wanted: Vec<bool>, // by tensor
    current: usize,    // the tensor that arrives, or the number of tensors
    elements: TensorData,
    arrived: u64, // bytes of the current tensor
    begun: bool,
}

impl TensorAssembler {
    /// Before the first byte. An empty tensor is not wanted: it has nothing to wait for, and no
    /// model needs one.
    pub(crate) fn new(tensors: Vec<TensorInfo>) -> Self {
        let wanted = tensors.iter().map(|info| info.bytes() > 0).collect();
        let elements = TensorData::Bytes(Aligned::new());
        let mut assembler =
            Self { tensors, wanted, current: 0, elements, arrived: 0, begun: false };
        assembler.go_to(0);
        assembler
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

    /// The current tensor is whole: hands it out.
    fn complete(&mut self, info: TensorInfo) -> Result<Tensor, CheckpointError> {
        let data = std::mem::replace(&mut self.elements, TensorData::Bytes(Aligned::new()));
        self.go_to(self.current + 1);
        paired_rows::in_order(Tensor { info, data })
    }
}

impl DataReader for TensorAssembler {
    fn next_read(&self) -> Option<ReadRequest> {
        let info = self.tensors.get(self.current)?;
        let start = info.range.start + self.arrived;
        let range = Some(start..info.range.end.min(start + PIECE_BYTES));
        Some(ReadRequest { file: info.file.to_string(), range, required: true })
    }

    fn append(&mut self, bytes: &[u8], ready: &mut Vec<Tensor>) -> Result<(), CheckpointError> {
        let info = self.tensors.get(self.current).ok_or(CheckpointError::NothingWanted)?;
        self.begun = true;
        let length = self.elements.stored_length(info);
        self.elements.append(bytes, length).map_err(|_| CheckpointError::OutOfMemory {
            tensor: info.name.clone(),
            bytes: info.bytes(),
        })?;
        self.arrived += bytes.len() as u64;
        if self.arrived == info.bytes() {
            let info = info.clone();
            ready.push(self.complete(info)?);
        }
        Ok(())
    }

    fn tensors(&self) -> &[TensorInfo] {
        &self.tensors
    }

    fn select(&mut self, keep: &mut dyn FnMut(&TensorInfo) -> bool) {
        for (wanted, info) in self.wanted.iter_mut().zip(&self.tensors) {
            *wanted = *wanted && keep(info);
        }
        if self.arrived == 0 {
            self.go_to(self.current);
        }
    }

    fn sort(&mut self, key: &mut dyn FnMut(&TensorInfo) -> usize) {
        if self.begun {
            return;
        }
        let tensors = std::mem::take(&mut self.tensors);
        let mut both: Vec<_> = tensors.into_iter().zip(std::mem::take(&mut self.wanted)).collect();
        both.sort_by_cached_key(|(info, _)| key(info));
        (self.tensors, self.wanted) = both.into_iter().unzip();
        self.go_to(0);
    }
}
