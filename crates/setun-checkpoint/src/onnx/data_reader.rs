//! Reads the data of a graph's tensors.

use crate::{
    data_reader::DataReader,
    error::CheckpointError,
    source::{PIECE_BYTES, ReadRequest},
    tensor::{Tensor, TensorData, TensorInfo},
};

use super::{data_range::DataRange, item::Item};

/// All tensors, and how far their parts have come.
#[derive(Debug)]
pub(super) struct OnnxBody {
    infos: Vec<TensorInfo>,
    items: Vec<Option<Item>>, // none once handed out
    wanted: Vec<bool>,
    current: usize,
    data: Vec<TensorData>, // of the parts that have begun
    arrived: u64,          // bytes of the last of them
    begun: bool,
}

impl OnnxBody {
    pub(super) fn new(items: Vec<Item>) -> Self {
        let infos = items.iter().map(|item| item.info.clone()).collect();
        let wanted = items.iter().map(|item| item.parts.iter().all(|part| !part.range.is_empty()));
        let wanted = wanted.collect();
        let items = items.into_iter().map(Some).collect();
        let (data, current, arrived) = (vec![], 0, 0);
        let mut reader = Self { infos, items, wanted, current, data, arrived, begun: false };
        reader.go_to(0);
        reader
    }

    /// Stands before the first wanted tensor from `item` on.
    fn go_to(&mut self, item: usize) {
        let skipped = self.wanted.iter().skip(item).take_while(|wanted| !**wanted).count();
        self.current = item + skipped;
        self.data.clear();
        self.begin_part();
    }

    fn begin_part(&mut self) {
        self.arrived = 0;
        if let Some(part) = self.item().and_then(|item| item.parts.get(self.data.len())) {
            let empty = part.empty();
            self.data.push(empty);
        }
    }

    fn item(&self) -> Option<&Item> {
        self.items.get(self.current)?.as_ref()
    }

    /// The part that arrives.
    fn part(&self) -> Option<&DataRange> {
        self.item()?.parts.get(self.data.len().checked_sub(1)?)
    }
}

impl DataReader for OnnxBody {
    fn next_read(&self) -> Option<ReadRequest> {
        let part = self.part()?;
        let start = part.range.start + self.arrived;
        let range = Some(start..part.range.end.min(start + PIECE_BYTES));
        Some(ReadRequest { file: part.file.to_string(), range, required: true })
    }

    fn append(&mut self, bytes: &[u8], ready: &mut Vec<Tensor>) -> Result<(), CheckpointError> {
        let part = self.part().ok_or(CheckpointError::NothingWanted)?;
        let (values, end) = (part.values(), part.range.end - part.range.start);
        self.begun = true;
        let last = self.data.last_mut().ok_or(CheckpointError::NothingWanted)?;
        last.append(bytes, values).map_err(|_| CheckpointError::OutOfMemory {
            tensor: self.infos[self.current].name.clone(),
            bytes: end,
        })?;
        self.arrived += bytes.len() as u64;
        if self.arrived < end {
            return Ok(());
        }
        if self.item().is_some_and(|item| self.data.len() < item.parts.len()) {
            self.begin_part();
            return Ok(());
        }
        let data = std::mem::take(&mut self.data);
        if let Some(item) = self.items[self.current].take() {
            ready.push(item.finish(data)?);
        }
        self.go_to(self.current + 1);
        Ok(())
    }

    fn tensors(&self) -> &[TensorInfo] {
        &self.infos
    }

    fn select(&mut self, keep: &mut dyn FnMut(&TensorInfo) -> bool) {
        for (wanted, info) in self.wanted.iter_mut().zip(&self.infos) {
            *wanted = *wanted && keep(info);
        }
        if self.arrived == 0 && self.data.len() <= 1 {
            self.go_to(self.current);
        }
    }

    fn sort(&mut self, key: &mut dyn FnMut(&TensorInfo) -> usize) {
        if self.begun {
            return;
        }
        let infos = std::mem::take(&mut self.infos).into_iter();
        let rest =
            std::mem::take(&mut self.items).into_iter().zip(std::mem::take(&mut self.wanted));
        let mut all: Vec<_> = infos.zip(rest).collect();
        all.sort_by_cached_key(|(info, _)| key(info));
        for (info, (item, wanted)) in all {
            self.infos.push(info);
            self.items.push(item);
            self.wanted.push(wanted);
        }
        self.go_to(0);
    }
}
