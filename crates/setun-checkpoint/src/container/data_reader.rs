//! Reads a container's tensors, chunk by chunk.

use std::sync::Arc;

use super::Manifest;
use crate::{
    error::CheckpointError,
    readers::DataReader,
    source::ReadRequest,
    tensor::{Tensor, TensorInfo},
    tensor_assembler::TensorAssembler,
};

/// Assembles tensors as if the content of all chunks were one file.
#[derive(Debug)]
pub(super) struct ContainerDataReader {
    file: String,
    manifest: Arc<Manifest>,
    assembler: TensorAssembler,
}

impl ContainerDataReader {
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

impl DataReader for ContainerDataReader {
    fn next_read(&self) -> Option<ReadRequest> {
        self.next().map(|(_, chunk)| read_request(&self.file, &self.manifest, chunk))
    }

    fn append(&mut self, bytes: &[u8], ready: &mut Vec<Tensor>) -> Result<(), CheckpointError> {
        let (_, chunk) = self.next().ok_or(CheckpointError::NothingWanted)?;
        let content = self::content(&self.file, &self.manifest, chunk, bytes)?;
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

    fn file_sizes(&self) -> Vec<(String, u64)> {
        let parts = self.manifest.parts.iter().enumerate();
        parts.map(|(part, file)| (name(&self.file, &self.manifest, part), file.bytes)).collect()
    }
}

/// What is wanted for a chunk of a container that is opened as `file`.
pub(super) fn read_request(file: &str, manifest: &Manifest, chunk: usize) -> ReadRequest {
    let Some(found) = manifest.chunks.get(chunk) else {
        return ReadRequest { file: file.to_owned(), range: Some(0..0), required: true };
    };
    let file = name(file, manifest, found.part);
    ReadRequest { file, range: Some(found.stored.clone()), required: true }
}

/// The content of a chunk of a container that is opened as `file`.
pub(super) fn content<'a>(
    file: &str,
    manifest: &Manifest,
    chunk: usize,
    stored: &'a [u8],
) -> Result<std::borrow::Cow<'a, [u8]>, CheckpointError> {
    let found = manifest.chunks.get(chunk).ok_or(CheckpointError::NothingWanted)?;
    found.content(&name(file, manifest, found.part), chunk, stored)
}

/// Where a part lies: beside the first.
fn name(file: &str, manifest: &Manifest, part: usize) -> String {
    if part == 0 {
        return file.to_owned();
    }
    let folder = file.rfind('/').map_or("", |slash| &file[..=slash]);
    format!("{folder}{}", manifest.parts[part].file)
}
