//! Reads a container's tensors, chunk by chunk.

use std::sync::Arc;

use super::{Manifest, header_reader};
use crate::{
    error::CheckpointError,
    header_reader::DataReader,
    source::ReadRequest,
    tensor::{Tensor, TensorInfo},
    tensor_assembler::TensorAssembler,
};

/// Assembles tensors as if the content of all chunks were one file.
#[derive(Debug)]
pub(super) struct ContainerBody {
    file: String,
    manifest: Arc<Manifest>,
    assembler: TensorAssembler,
}

impl ContainerBody {
    pub(super) fn new(file: String, manifest: Arc<Manifest>, tensors: Vec<TensorInfo>) -> Self {
        Self { file, manifest, assembler: TensorAssembler::new(tensors) }
    }

    /// First byte of the content that is wanted, and the chunk that holds it.
    fn next(&self) -> Option<(u64, usize)> {
        let start = self.assembler.next_read()?.range?.start;
        Some((start, chunk_of(&self.manifest, start)))
    }
}

/// The chunk that holds a byte of the content.
fn chunk_of(manifest: &Manifest, place: u64) -> usize {
    manifest.chunks.partition_point(|chunk| chunk.content.end <= place)
}

impl DataReader for ContainerBody {
    fn next_read(&self) -> Option<ReadRequest> {
        self.next().map(|(_, chunk)| header_reader::read_request(&self.file, &self.manifest, chunk))
    }

    fn append(&mut self, bytes: &[u8], ready: &mut Vec<Tensor>) -> Result<(), CheckpointError> {
        let (_, chunk) = self.next().ok_or(CheckpointError::NothingWanted)?;
        let content = header_reader::content(&self.file, &self.manifest, chunk, bytes)?;
        let first = self.manifest.chunks[chunk].content.start;
        while let Some(range) = self.assembler.next_read().and_then(|want| want.range) {
            let offset = range.start.checked_sub(first).and_then(|at| usize::try_from(at).ok());
            let Some(rest) =
                offset.and_then(|at| content.get(at..)).filter(|rest| !rest.is_empty())
            else {
                break; // another chunk
            };
            let wanted = usize::try_from(range.end - range.start).unwrap_or(usize::MAX);
            self.assembler.append(&rest[..wanted.min(rest.len())], ready)?;
        }
        Ok(())
    }

    fn tensors(&self) -> &[TensorInfo] {
        self.assembler.tensors()
    }

    fn select(&mut self, keep: &mut dyn FnMut(&TensorInfo) -> bool) {
        self.assembler.select(keep);
    }

    /// Tensors that share a chunk stay together, in the order of the least key among them.
    fn sort(&mut self, key: &mut dyn FnMut(&TensorInfo) -> usize) {
        let mut least = vec![usize::MAX; self.manifest.chunks.len() + 1];
        for info in self.assembler.tensors() {
            let least = &mut least[chunk_of(&self.manifest, info.range.start)];
            *least = key(info).min(*least);
        }
        let manifest = Arc::clone(&self.manifest);
        self.assembler.sort(&mut |info| least[chunk_of(&manifest, info.range.start)]);
    }
}
