//! Download of one chunk with a range request.

use std::{
    fs::{File, OpenOptions},
    io::{Read, Seek, SeekFrom, Write},
    path::Path,
    sync::atomic::Ordering,
};

use ureq::{Body, http::Response};

use super::transfer::{Download, Server, lock};
use crate::{
    digest::{BUFFER_BYTES, Hasher},
    error::Error,
    http::{Reply, Request, broken, expect, network, text},
    options::PullEvent,
    probe::{content_range, strong},
    pull_plan::PullResult,
    retry::{Attempts, Fault, later},
};

/// Bytes that make an attempt one that brought something.
const PROGRESS: u64 = 64 << 10;

/// The file that chunks are written to, and memory for what comes.
pub(crate) struct PartFile {
    pub(crate) file: File,
    pub(crate) buffer: Vec<u8>,
}

impl PartFile {
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        let file = OpenOptions::new().write(true).open(path);
        let file = file.map_err(|error| Error::io("open", path, 0, error))?;
        Ok(Self { file, buffer: vec![0; BUFFER_BYTES] })
    }
}

/// How far a chunk has come.
struct Progress {
    at: u64,
    end: u64,
    hasher: Hasher,
}

impl Download<'_> {
    /// Downloads a chunk. After a broken connection the next request continues at the same byte.
    pub(crate) fn chunk(&self, chunk: u64, part: &mut PartFile) -> PullResult<()> {
        let range = self.subject.range(chunk);
        let begin = || Progress { at: range.start, end: range.end, hasher: Hasher::new() };
        let enough = PROGRESS.min((range.end - range.start).div_ceil(8));
        let (mut progress, mut attempts, mut doubted) =
            (begin(), Attempts::new(self.all.options), false);
        loop {
            let before = progress.at;
            match self.piece(&mut progress, part) {
                Ok(()) => {}
                Err(Fault::Later { error, wait }) => {
                    if progress.at - before >= enough {
                        attempts.progressed();
                    }
                    attempts.wait(error, wait, |reason, wait| self.retry(reason, wait))?;
                }
                Err(fault) => {
                    self.dropped(progress.at - range.start);
                    return Err(fault);
                }
            }
            if self.stop.load(Ordering::Relaxed) && progress.at < progress.end {
                self.dropped(progress.at - range.start);
                return Ok(());
            }
            if progress.at < progress.end {
                continue;
            }
            let found = std::mem::replace(&mut progress, begin()).hasher.finish();
            let Some(expected) = self.expected_digest(chunk).filter(|expected| *expected != found)
            else {
                // The bytes first, then the line that says they are there.
                part.file.sync_data().map_err(|error| self.cannot_write(error))?;
                return Ok(self.state().journal.add(chunk, found)?);
            };
            self.dropped(range.end - range.start);
            if doubted {
                return Err(Error::ChecksumMismatch {
                    address: self.wanted.address.clone(),
                    chunks: vec![chunk],
                    expected: expected.hex(),
                    found: found.hex(),
                }
                .into());
            }
            doubted = true;
            (self.all.listener)(PullEvent::Corrupt { file: self.name(), chunks: vec![chunk] });
        }
    }

    /// Asks for the rest of a chunk, and writes what comes.
    fn piece(&self, progress: &mut Progress, part: &mut PartFile) -> PullResult<()> {
        self.all.options.check_cancelled()?;
        let server = lock(&self.server).clone();
        let address = server.as_ref().map_or(&self.wanted.address, |server| &server.address);
        let ask = Request {
            head: false,
            range: Some(progress.at..progress.end),
            if_range: server.as_ref().and_then(|server| strong(server.etag.as_deref())),
        };
        let answer = self.all.http.send(address, &ask)?;
        let (address, response) = self.accept(answer, server.as_ref(), progress)?;
        let last = content_range(response.headers()).map_or(progress.at, |(_, last, _)| last);
        let end = last.saturating_add(1).min(progress.end);
        self.receive(&address, response, end, progress, part)
    }

    /// Finds out whether an answer is a part of the same file.
    fn accept(
        &self,
        answer: Reply,
        server: Option<&Server>,
        progress: &Progress,
    ) -> PullResult<(String, Response<Body>)> {
        let Reply { address, linked_etag, response } = answer;
        let headers = response.headers();
        let etag = text(headers, "etag");
        let known = server.and_then(|server| server.etag.as_ref());
        let changed = match (known, &etag) {
            (Some(known), Some(etag)) => known != etag,
            (None, Some(etag)) if server.is_none() => {
                let identity = linked_etag.as_ref().unwrap_or(etag).trim_start_matches("W/");
                self.subject.identity.as_ref().is_some_and(|known| known != identity)
            }
            _ => false,
        };
        let status = response.status().as_u16();
        if changed && [200, 206].contains(&status) {
            let now = etag.unwrap_or_default();
            return Err(Fault::Changed(format!("known as {now} while it came")));
        }
        match status {
            206 => {
                let Some((first, last, total)) = content_range(headers) else {
                    return Err(Fault::NoRanges);
                };
                if total.is_some_and(|total| total != self.subject.bytes) {
                    let (total, bytes) = (total.unwrap_or(0), self.subject.bytes);
                    return Err(Fault::Changed(format!("{total} bytes, before {bytes}")));
                }
                if first != progress.at || last < first {
                    let reason =
                        format!("bytes from {first} arrived, expected from {}", progress.at);
                    return Err(later(network(&address, reason)));
                }
                self.remember(&address, etag);
                Ok((address, response))
            }
            200 => {
                let length = text(headers, "content-length");
                let length = length.and_then(|length| length.parse::<u64>().ok());
                match length.filter(|length| *length != self.subject.bytes) {
                    Some(length) => {
                        let before = self.subject.bytes;
                        Err(Fault::Changed(format!("{length} bytes, before {before}")))
                    }
                    None => Err(Fault::NoRanges),
                }
            }
            416 => Err(Fault::Changed("it ends before bytes that it had".into())),
            // An address that a redirect gave is good for some time only.
            400 | 401 | 403 | 404 | 410 if address != self.wanted.address => {
                *lock(&self.server) = None;
                Err(later(Error::HttpStatus { address, status, hint: "" }))
            }
            _ => Ok((address.clone(), expect(&address, response, &[206])?)),
        }
    }

    /// The next chunks are asked for where this one came from.
    fn remember(&self, address: &str, etag: Option<String>) {
        let mut server = lock(&self.server);
        if server.is_none() {
            *server = Some(Server { address: address.into(), etag });
        }
    }

    /// Writes what comes up to `end`; that more comes is an error.
    fn receive(
        &self,
        address: &str,
        response: Response<Body>,
        end: u64,
        progress: &mut Progress,
        part: &mut PartFile,
    ) -> PullResult<()> {
        let expected = end - progress.at;
        let wrong = |found| later(Error::SizeMismatch { address: address.into(), expected, found });
        let length = response.body().content_length();
        if let Some(length) = length.filter(|length| *length > expected) {
            return Err(wrong(length.to_string()));
        }
        let mut body = self.all.http.body(response);
        part.file.seek(SeekFrom::Start(progress.at)).map_err(|error| self.cannot_write(error))?;
        while progress.at < end {
            self.all.options.check_cancelled()?;
            if self.stop.load(Ordering::Relaxed) {
                return Ok(());
            }
            let most =
                usize::try_from(end - progress.at).unwrap_or(usize::MAX).min(part.buffer.len());
            let read = match body.read(&mut part.buffer[..most]) {
                Ok(0) => return Err(wrong(format!("{} bytes", expected - (end - progress.at)))),
                Ok(read) => read,
                Err(error) => return Err(broken(address, &error)),
            };
            let bytes = &part.buffer[..read];
            part.file.write_all(bytes).map_err(|error| self.cannot_write(error))?;
            progress.hasher.add(bytes);
            progress.at += read as u64;
            (self.all.listener)(PullEvent::Received { file: self.name(), bytes: read as u64 });
        }
        if length.is_none() && matches!(body.read(&mut part.buffer[..1]), Ok(1)) {
            // Whose these bytes are is not known, so none of the chunk is kept.
            progress.at =
                self.subject.range(progress.at.saturating_sub(1) / self.subject.chunk_bytes).start;
            progress.hasher = Hasher::new();
            self.dropped(end - progress.at);
            return Err(wrong("more".into()));
        }
        Ok(())
    }
}
