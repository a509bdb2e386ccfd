//! A model whose weights are made when they are read.

use std::ops::Range;

use futures::future::{FutureExt, LocalBoxFuture, ready};
use setun::{Error, ModelBytes, ReadRequest};

/// A part of a file: bytes that repeat a pattern, from an offset on.
pub(super) struct Part {
    pub(super) range: Range<u64>,
    pub(super) pattern: Vec<u8>,
}

/// Configuration and weights of a model.
pub(super) struct Files {
    /// Small files by name.
    pub(super) small: Vec<(&'static str, Vec<u8>)>,
    /// Name of the file of weights.
    pub(super) weights: &'static str,
    /// Its header, from offset 0.
    pub(super) header: Vec<u8>,
    /// What follows, without gaps but for padding, in order.
    pub(super) parts: Vec<Part>,
}

impl Files {
    pub(super) fn weight_bytes(&self) -> u64 {
        self.parts.last().map_or(self.header.len() as u64, |part| part.range.end)
    }

    /// Appends a range of the weights, or what there is of it.
    pub(super) fn read_weights(&self, range: Range<u64>, out: &mut Vec<u8>) {
        let end = range.end.min(self.weight_bytes());
        let at = |offset: u64| usize::try_from(offset).expect("an offset in memory");
        let header = at(range.start).min(self.header.len())..at(end).min(self.header.len());
        out.extend_from_slice(&self.header[header]);
        let first = self.parts.partition_point(|part| part.range.end <= range.start);
        for part in &self.parts[first..] {
            let (from, to) = (part.range.start.max(range.start), part.range.end.min(end));
            if from >= to {
                break;
            }
            out.resize(at(from - range.start), 0); // padding between parts
            let skip = at((from - part.range.start) % part.pattern.len() as u64);
            out.extend(part.pattern.iter().cycle().skip(skip).take(at(to - from)));
        }
    }
}

impl ModelBytes for Files {
    fn read<'a>(
        &'a mut self,
        want: &'a ReadRequest,
        bytes: &'a mut Vec<u8>,
    ) -> LocalBoxFuture<'a, Result<bool, Error>> {
        bytes.clear();
        let found = self.small.iter().find(|(name, _)| *name == want.file);
        if let Some((_, content)) = found {
            bytes.extend_from_slice(content);
        } else if want.file == self.weights {
            self.read_weights(want.range.clone().unwrap_or(0..u64::MAX), bytes);
        } else {
            return ready(Ok(false)).boxed_local();
        }
        ready(Ok(true)).boxed_local()
    }

    fn file_bytes(&mut self, file: &str) -> Option<u64> {
        (file == self.weights).then(|| self.weight_bytes())
    }
}
