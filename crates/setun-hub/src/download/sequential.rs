//! Download of a whole file from a server without range requests.

use std::io::{Read, Seek, SeekFrom, Write};

use super::{chunk::PartFile, transfer::Download};
use crate::{
    digest::Hasher,
    error::Error,
    http::{Reply, Request, broken, expect, text},
    options::PullEvent,
    probe::strong,
    pull_plan::PullResult,
    retry::{Fault, later},
};

impl Download<'_> {
    /// Brings the file once through. Chunks that were there are compared, not written.
    pub(crate) fn sequential(&self) -> PullResult<()> {
        self.all.options.check_cancelled()?;
        (self.all.listener)(PullEvent::RangesUnsupported { file: self.name() });
        let Reply { address, response, .. } =
            self.all.http.send(&self.wanted.address, &Request::default())?;
        let response = expect(&address, response, &[200])?;
        let etag = text(response.headers(), "etag");
        let known = strong(self.subject.identity.as_deref());
        if let (Some(known), Some(etag)) = (known, strong(etag.as_deref()))
            && known != etag
        {
            return Err(Fault::Changed(format!("known as {etag}, before as {known}")));
        }
        let (length, bytes) = (response.body().content_length(), self.subject.bytes);
        if let Some(length) = length.filter(|length| *length != bytes) {
            return Err(Fault::Changed(format!("{length} bytes, before {bytes}")));
        }
        let mut part = PartFile::open(&self.paths.part)?;
        let mut body = self.all.http.body(response);
        for chunk in 0..self.subject.chunks() {
            self.next_chunk(chunk, &address, &mut body, &mut part)?;
        }
        match body.read(&mut part.buffer[..1]) {
            Ok(1) => {
                Err(later(Error::SizeMismatch { address, expected: bytes, found: "more".into() }))
            }
            _ => Ok(()),
        }
    }

    fn next_chunk(
        &self,
        chunk: u64,
        address: &str,
        body: &mut impl Read,
        part: &mut PartFile,
    ) -> PullResult<()> {
        let range = self.subject.range(chunk);
        let there = self.state().journal.chunks.get(&chunk).copied();
        part.file.seek(SeekFrom::Start(range.start)).map_err(|error| self.cannot_write(error))?;
        let (mut at, mut hasher) = (range.start, Hasher::new());
        while at < range.end {
            self.all.options.check_cancelled()?;
            let most = usize::try_from(range.end - at).unwrap_or(usize::MAX).min(part.buffer.len());
            let read = match body.read(&mut part.buffer[..most]) {
                Ok(0) => {
                    self.forget(there.is_none(), at - range.start);
                    let (address, expected) = (address.into(), self.subject.bytes);
                    let error = Error::SizeMismatch { address, expected, found: at.to_string() };
                    return Err(later(error));
                }
                Ok(read) => read,
                Err(error) => {
                    self.forget(there.is_none(), at - range.start);
                    return Err(broken(address, &error));
                }
            };
            hasher.add(&part.buffer[..read]);
            at += read as u64;
            if there.is_none() {
                part.file
                    .write_all(&part.buffer[..read])
                    .map_err(|error| self.cannot_write(error))?;
                (self.all.listener)(PullEvent::Received { file: self.name(), bytes: read as u64 });
            }
        }
        let found = hasher.finish();
        if there.is_some_and(|there| there != found) {
            return Err(Fault::Changed(format!("other bytes in chunk {chunk}")));
        }
        if let Some(expected) = self.expected_digest(chunk).filter(|expected| *expected != found) {
            self.forget(there.is_none(), at - range.start);
            return Err(later(Error::ChecksumMismatch {
                address: self.wanted.address.clone(),
                chunks: vec![chunk],
                expected: expected.hex(),
                found: found.hex(),
            }));
        }
        if there.is_none() {
            part.file.sync_data().map_err(|error| self.cannot_write(error))?;
            self.state().journal.add(chunk, found)?;
        }
        Ok(())
    }

    /// Bytes that were reported will come once more.
    fn forget(&self, reported: bool, bytes: u64) {
        if reported {
            self.dropped(bytes);
        }
    }
}
