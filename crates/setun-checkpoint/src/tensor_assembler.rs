//! Assembly of tensors from pieces of their files.

use std::{fmt::Debug, ops::Range};

use crate::{
    error::CheckpointError,
    paired_rows,
    source::{PIECE_BYTES, ReadRequest},
    tensor::{Tensor, TensorData, TensorInfo},
};

/// Reads the data of a checkpoint, as bytes of files.
pub(crate) trait DataReader: Debug + Send + Sync {
    /// File and range of the next piece, while there is one.
    fn next_read(&self) -> Option<ReadRequest>;

    /// Takes the piece that was wanted; what is whole goes to the end of `ready`.
    fn append(&mut self, bytes: &[u8], ready: &mut Vec<Tensor>) -> Result<(), CheckpointError>;

    /// All tensors, in the order in which they will come.
    fn tensors(&self) -> &[TensorInfo];

    /// Whether a tensor has the bytes at its place in its file, unchanged.
    #[cfg(feature = "onnx")]
    fn is_stored(&self, _tensor: usize) -> bool {
        false
    }

    /// Passes over the tensors of which `keep` is false, but not over one that has partly arrived.
    fn select(&mut self, keep: &mut dyn FnMut(&TensorInfo) -> bool);

    /// Lets the tensors come in ascending order of `key`, those of one key as they were. Has no
    /// effect once data have arrived.
    fn sort(&mut self, key: &mut dyn FnMut(&TensorInfo) -> usize);

    /// Names and sizes of the files, where the format says them.
    fn file_sizes(&self) -> Vec<(String, u64)> {
        vec![]
    }
}

/// How a tensor is made of parts of files.
pub(crate) trait Recipe: Debug + Send + Sync {
    /// File and bytes of a part; none after the last.
    fn part(&self, info: &TensorInfo, part: usize) -> Option<(String, Range<u64>)>;

    /// What the bytes of a part are collected as, and how many values that will be.
    fn begin(&self, info: &TensorInfo, part: usize) -> (TensorData, usize);

    /// Whether the tensor has the bytes of its place, unchanged.
    #[cfg(feature = "onnx")]
    fn is_stored(&self) -> bool {
        false
    }

    /// The tensor, once all parts are there.
    fn finish(self, info: TensorInfo, parts: Vec<TensorData>) -> Result<Tensor, CheckpointError>;
}

/// The bytes of a tensor as its file has them.
#[derive(Debug)]
pub(crate) struct AsStored;

impl Recipe for AsStored {
    fn part(&self, info: &TensorInfo, part: usize) -> Option<(String, Range<u64>)> {
        (part == 0).then(|| (info.file.to_string(), info.range.clone()))
    }

    fn begin(&self, info: &TensorInfo, _: usize) -> (TensorData, usize) {
        let data = TensorData::empty(info.dtype);
        let length = data.stored_length(info);
        (data, length)
    }

    fn finish(self, info: TensorInfo, parts: Vec<TensorData>) -> Result<Tensor, CheckpointError> {
        let data = parts.into_iter().next().ok_or(CheckpointError::NothingWanted)?;
        paired_rows::in_order(Tensor { info, data })
    }
}

/// All tensors of a checkpoint, and how far their data have come.
#[derive(Debug)]
pub(crate) struct TensorAssembler<R = AsStored> {
    tensors: Vec<TensorInfo>,
    recipes: Vec<Option<R>>, // by tensor; none once it is handed out
    wanted: Vec<bool>,       // by tensor
    current: usize,          // the tensor that arrives, or the number of tensors
    parts: Vec<TensorData>,  // of the current tensor, the last of which arrives
    length: usize,           // values of the last part
    arrived: u64,            // bytes of the last part
    begun: bool,
}

impl TensorAssembler {
    pub(crate) fn new(tensors: Vec<TensorInfo>) -> Self {
        Self::with_recipes(tensors.into_iter().map(|info| (info, AsStored)).collect())
    }

    /// End of the tensors that are wanted one after the other, without a gap, from the one that
    /// arrives on; those that begin at `limit` or after it are not looked at.
    #[cfg(not(target_family = "wasm"))]
    pub(crate) fn wanted_until(&self, limit: u64) -> u64 {
        let tensors = self.tensors.iter().zip(&self.wanted).skip(self.current);
        let mut tensors = tensors.filter(|(info, _)| !info.range.is_empty()).peekable();
        let mut end = tensors.peek().map_or(0, |(info, _)| info.range.start);
        for (info, _) in tensors.take_while(|(_, wanted)| **wanted) {
            if info.range.start != end || end >= limit {
                break;
            }
            end = info.range.end;
        }
        end
    }
}

impl<R: Recipe> TensorAssembler<R> {
    /// Before the first byte. A tensor with an empty part is not wanted: it has nothing to wait for,
    /// and no model needs one.
    pub(crate) fn with_recipes(tensors: Vec<(TensorInfo, R)>) -> Self {
        let is_wanted = |(info, recipe): &(TensorInfo, R)| {
            let mut parts = (0..).map_while(|part| recipe.part(info, part));
            parts.all(|(_, range)| !range.is_empty())
        };
        let wanted = tensors.iter().map(is_wanted).collect();
        let (tensors, recipes) =
            tensors.into_iter().map(|(info, recipe)| (info, Some(recipe))).unzip();
        let (parts, begun) = (vec![], false);
        let mut assembler =
            Self { tensors, recipes, wanted, current: 0, parts, length: 0, arrived: 0, begun };
        assembler.go_to(0);
        assembler
    }

    /// Stands before the first wanted tensor from `tensor` on.
    fn go_to(&mut self, tensor: usize) {
        let skipped = self.wanted.iter().skip(tensor).take_while(|wanted| !**wanted).count();
        self.current = tensor + skipped;
        self.parts.clear();
        self.begin_part();
    }

    fn begin_part(&mut self) {
        self.arrived = 0;
        if let Some((info, recipe)) = self.current() {
            let (data, length) = recipe.begin(info, self.parts.len());
            self.length = length;
            self.parts.push(data);
        }
    }

    fn current(&self) -> Option<(&TensorInfo, &R)> {
        self.tensors.get(self.current).zip(self.recipes.get(self.current)?.as_ref())
    }

    /// File and bytes of the part that arrives.
    fn part(&self) -> Option<(String, Range<u64>)> {
        let (info, recipe) = self.current()?;
        recipe.part(info, self.parts.len().checked_sub(1)?)
    }
}

impl<R: Recipe> DataReader for TensorAssembler<R> {
    fn next_read(&self) -> Option<ReadRequest> {
        let (file, range) = self.part()?;
        let start = range.start + self.arrived;
        let range = Some(start..range.end.min(start + PIECE_BYTES));
        Some(ReadRequest { file, range, required: true })
    }

    fn append(&mut self, bytes: &[u8], ready: &mut Vec<Tensor>) -> Result<(), CheckpointError> {
        let (_, range) = self.part().ok_or(CheckpointError::NothingWanted)?;
        let part_bytes = range.end - range.start;
        self.begun = true;
        let last = self.parts.last_mut().ok_or(CheckpointError::NothingWanted)?;
        last.append(bytes, self.length).map_err(|_| CheckpointError::OutOfMemory {
            tensor: self.tensors[self.current].name.clone(),
            bytes: part_bytes,
        })?;
        self.arrived += bytes.len() as u64;
        if self.arrived < part_bytes {
            return Ok(());
        }
        let next = self.parts.len();
        if self.current().is_some_and(|(info, recipe)| recipe.part(info, next).is_some()) {
            self.begin_part();
            return Ok(());
        }
        let (current, parts) = (self.current, std::mem::take(&mut self.parts));
        self.go_to(current + 1);
        if let Some(recipe) = self.recipes[current].take() {
            ready.push(recipe.finish(self.tensors[current].clone(), parts)?);
        }
        Ok(())
    }

    fn tensors(&self) -> &[TensorInfo] {
        &self.tensors
    }

    #[cfg(feature = "onnx")]
    fn is_stored(&self, tensor: usize) -> bool {
        self.recipes.get(tensor).and_then(Option::as_ref).is_some_and(Recipe::is_stored)
    }

    fn select(&mut self, keep: &mut dyn FnMut(&TensorInfo) -> bool) {
        for (wanted, info) in self.wanted.iter_mut().zip(&self.tensors) {
            *wanted = *wanted && keep(info);
        }
        if self.arrived == 0 && self.parts.len() <= 1 {
            self.go_to(self.current);
        }
    }

    fn sort(&mut self, key: &mut dyn FnMut(&TensorInfo) -> usize) {
        if self.begun {
            return;
        }
        let recipes = std::mem::take(&mut self.recipes);
        let rest = recipes.into_iter().zip(std::mem::take(&mut self.wanted));
        let mut all: Vec<_> = std::mem::take(&mut self.tensors).into_iter().zip(rest).collect();
        all.sort_by_cached_key(|(info, _)| key(info));
        for (info, (recipe, wanted)) in all {
            self.tensors.push(info);
            self.recipes.push(recipe);
            self.wanted.push(wanted);
        }
        self.go_to(0);
    }
}
