//! Download of one file in chunks over several connections.

mod chunk;
mod finish;
mod resume;
mod sequential;
mod transfer;

use std::{
    path::Path,
    sync::{Mutex, PoisonError, atomic::Ordering},
    thread,
};

use crate::{
    digest::Digest,
    error::Error,
    manifest::FileEntry,
    options::PullEvent,
    pull_plan::{PlannedFile, PullResult},
    retry::{Attempts, Fault},
};

use transfer::{Download, lock};
pub(crate) use transfer::{Downloads, Paths};

/// Times that a file is begun before it counts as one that keeps changing.
const BEGINNINGS: u32 = 4;

/// Times that a file is read through before it counts as one that the disk does not keep.
const CHECKS: u32 = 4;

impl Downloads<'_> {
    /// Brings a file, or what is missing of it.
    pub(crate) fn bring(&self, wanted: &PlannedFile, folder: &Path) -> PullResult<FileEntry> {
        let paths = Paths::new(folder, &wanted.name);
        if let Some(entry) = resume::completed(wanted, &paths)? {
            return Ok(entry);
        }
        let chunk_bytes = self.chunk_bytes(wanted);
        if let Some(entry) = resume::adopted(wanted, &paths, chunk_bytes, self.options)? {
            return Ok(entry);
        }
        let mut last = String::new();
        let mut doubted = None;
        for _ in 0..BEGINNINGS {
            match self.begin(wanted, &paths)?.run(&mut doubted) {
                // What a plan was made of has changed, so the plan has to be made again.
                Err(Fault::Changed(reason)) if wanted.identity.is_none() => {
                    self.changed(wanted, &paths, &reason)?;
                    last = reason;
                }
                ended => return ended,
            }
        }
        Err(Error::SourceChanged { address: wanted.address.clone(), reason: last }.into())
    }

    fn changed(&self, wanted: &PlannedFile, paths: &Paths, reason: &str) -> Result<(), Error> {
        let (file, reason) = (wanted.name.clone(), reason.to_owned());
        (self.listener)(PullEvent::SourceChanged { file, reason });
        paths.clear()
    }
}

impl Download<'_> {
    /// Brings what is missing, and checks all. `doubted` are the chunks' hashes of a first fetch
    /// that was wrong as a whole.
    fn run(&self, doubted: &mut Option<Vec<Digest>>) -> PullResult<FileEntry> {
        let mut attempts = Attempts::new(self.all.options);
        let mut checks = 0;
        loop {
            let before = self.state().journal.bytes();
            match self.parts() {
                Ok(()) => {
                    checks += 1;
                    match self.finish(doubted, checks == CHECKS)? {
                        Some(entry) => return Ok(entry),
                        None => continue,
                    }
                }
                Err(Fault::NoRanges) => {}
                Err(fault) => return Err(fault),
            }
            match self.sequential() {
                Ok(()) => {}
                Err(Fault::Later { error, wait }) => {
                    if self.state().journal.bytes() > before {
                        attempts.progressed();
                    }
                    attempts.wait(error, wait, |reason, wait| self.retry(reason, wait))?;
                }
                Err(fault) => return Err(fault),
            }
        }
    }

    /// Brings the missing chunks over several connections.
    fn parts(&self) -> PullResult<()> {
        self.stop.store(false, Ordering::Relaxed);
        self.state().next = 0;
        if self.unsure && self.state().journal.missing(0).is_some() {
            // One that gives no parts would send the whole to each connection.
            self.work(1)?;
        }
        let workers = self.all.options.workers();
        let faults = Mutex::new(vec![]);
        thread::scope(|scope| {
            for _ in 0..workers {
                let run = || {
                    if let Err(fault) = self.work(u64::MAX) {
                        self.stop.store(true, Ordering::Relaxed);
                        lock(&faults).push(fault);
                    }
                };
                let spawned =
                    thread::Builder::new().name("setun pull".into()).spawn_scoped(scope, run);
                if spawned.is_err() {
                    break; // those that run do its work, or this thread below
                }
            }
        });
        let faults = faults.into_inner().unwrap_or_else(PoisonError::into_inner);
        let weight = |fault: &Fault| match fault {
            Fault::Final(_) => 0,
            Fault::Changed(_) => 1,
            Fault::NoRanges => 2,
            Fault::Later { .. } => 3,
        };
        match faults.into_iter().min_by_key(weight) {
            Some(fault) => Err(fault),
            None => self.work(u64::MAX),
        }
    }

    /// Brings chunks one after the other, until there are no more or it is to stop.
    fn work(&self, most: u64) -> PullResult<()> {
        let mut part = None;
        for _ in 0..most {
            let Some(chunk) = self.take() else { break };
            let part = match &mut part {
                Some(part) => part,
                none => none.insert(chunk::PartFile::open(&self.paths.part)?),
            };
            self.chunk(chunk, part)?;
        }
        Ok(())
    }

    fn take(&self) -> Option<u64> {
        if self.stop.load(Ordering::Relaxed) {
            return None;
        }
        let mut state = self.state();
        let chunk = state.journal.missing(state.next)?;
        state.next = chunk + 1;
        Some(chunk)
    }
}
