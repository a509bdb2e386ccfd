//! Reads a container's tensors, chunk by chunk.

use std::{borrow::Cow, ops::Range, sync::Arc};

use super::Manifest;
use crate::{
    error::CheckpointError,
    readers::DataReader,
    side_by_side::side_by_side,
    source::ReadRequest,
    tensor::{Tensor, TensorInfo},
    tensor_assembler::TensorAssembler,
};

/// Most bytes of the chunks that are requested together, for threads to share their hashes.
#[cfg(not(target_family = "wasm"))]
const GROUP_BYTES: u64 = 16 << 20;

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

    /// The chunks that are requested together: the one with the first byte that is wanted, and where
    /// there are threads those that follow it in its file and in what is wanted.
    fn next(&self) -> Option<Range<usize>> {
        let start = self.assembler.next_read()?.range?.start;
        let first = chunk_of(&self.manifest, start);
        Some(first..self.end_of_group(first))
    }

    #[cfg(not(target_family = "wasm"))]
    fn end_of_group(&self, first: usize) -> usize {
        let chunks = self.manifest.chunks.get(first..).unwrap_or_default();
        let Some(chunk) = chunks.first() else { return first + 1 };
        let limit = chunk.content.start.saturating_add(GROUP_BYTES);
        let wanted = self.assembler.wanted_until(limit).min(limit);
        let follows = |[before, next]: &&[super::Chunk; 2]| {
            next.part == before.part
                && next.stored.start == before.stored.end
                && next.content.start < wanted
                && next.content.end <= limit
        };
        first + 1 + chunks.array_windows().take_while(follows).count()
    }

    #[cfg(target_family = "wasm")]
    #[expect(clippy::unused_self, reason = "there are threads elsewhere")]
    fn end_of_group(&self, first: usize) -> usize {
        first + 1
    }

    /// Takes the content of a chunk, as far as it is wanted.
    fn append_content(
        &mut self,
        chunk: usize,
        content: &[u8],
        ready: &mut Vec<Tensor>,
    ) -> Result<(), CheckpointError> {
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
}

/// The chunk that holds a byte of the content.
fn chunk_of(manifest: &Manifest, place: u64) -> usize {
    manifest.chunks.partition_point(|chunk| chunk.content.end <= place)
}

impl DataReader for ContainerDataReader {
    fn next_read(&self) -> Option<ReadRequest> {
        let chunks = self.next()?;
        let mut want = read_request(&self.file, &self.manifest, chunks.start);
        let last = chunks.last().and_then(|last| self.manifest.chunks.get(last));
        if let (Some(range), Some(last)) = (&mut want.range, last) {
            range.end = last.stored.end;
        }
        Some(want)
    }

    /// Nothing of a chunk is used before all of its request have the hashes that they should have.
    fn append(&mut self, bytes: &[u8], ready: &mut Vec<Tensor>) -> Result<(), CheckpointError> {
        let chunks = self.next().ok_or(CheckpointError::NothingWanted)?;
        let mut rest = bytes;
        let mut contents = vec![];
        for chunk in chunks {
            let stored = self.manifest.chunks.get(chunk).map(|found| found.stored.clone());
            let length = stored.and_then(|stored| usize::try_from(stored.end - stored.start).ok());
            let split = length.and_then(|length| rest.split_at_checked(length));
            let (stored, others) = split.ok_or(CheckpointError::NothingWanted)?;
            contents.push((chunk, stored, Ok(Cow::Borrowed(stored))));
            rest = others;
        }
        side_by_side(contents.iter_mut().collect(), |(chunk, stored, content)| {
            *content = self::content(&self.file, &self.manifest, *chunk, stored);
        });
        let contents: Result<Vec<_>, _> = contents
            .into_iter()
            .map(|(chunk, _, content)| content.map(|content| (chunk, content)))
            .collect();
        for (chunk, content) in contents? {
            self.append_content(chunk, &content, ready)?;
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
) -> Result<Cow<'a, [u8]>, CheckpointError> {
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
