//! One file: from its address to its place, checked.

mod begin;
mod chunk;
mod finish;
mod whole;

use std::{
    path::{Path, PathBuf},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use super::{
    digest::Digest,
    error::RegistryError,
    files::with_end,
    http::Http,
    journal::{Journal, Subject, discard},
    manifest::FileEntry,
    options::{Listener, PullEvent, PullOptions},
    plan::{Pulled, Wanted},
    retry::{Attempts, Fault},
};

/// Times that a file is begun before it counts as one that keeps changing.
const BEGINNINGS: u32 = 4;

/// Times that a file is read through before it counts as one that the disk does not keep.
const CHECKS: u32 = 4;

/// What all downloads of a pull share.
pub(super) struct Downloads<'a> {
    pub(super) http: &'a Http,
    pub(super) options: &'a PullOptions,
    pub(super) listener: Listener<'a>,
}

/// Where a file is, and what is beside it while it comes.
pub(super) struct Paths {
    path: PathBuf,
    part: PathBuf,
    journal: PathBuf,
}

impl Paths {
    pub(super) fn new(folder: &Path, name: &str) -> Self {
        let path = folder.join(name);
        Self { part: with_end(&path, ".part"), journal: with_end(&path, ".chunks"), path }
    }

    /// Removes what is beside the file.
    pub(super) fn clear(&self) -> Result<(), RegistryError> {
        discard(&self.part, &self.journal)
    }
}

/// A file on its way.
struct Download<'a> {
    all: &'a Downloads<'a>,
    wanted: &'a Wanted,
    paths: &'a Paths,
    subject: Subject,
    /// Who has the bytes; forgotten where that one refuses, so that the first is asked again.
    server: Mutex<Option<Server>>,
    state: Mutex<State>,
    stop: AtomicBool,
    /// Whether parts are given is not known yet.
    unsure: bool,
}

/// Who has the bytes.
#[derive(Clone)]
struct Server {
    address: String,
    etag: Option<String>,
}

struct State {
    journal: Journal,
    /// Chunks before it are there, or on their way.
    next: u64,
}

impl Downloads<'_> {
    /// Brings a file, or what is missing of it.
    pub(super) fn bring(&self, wanted: &Wanted, folder: &Path) -> Pulled<FileEntry> {
        let paths = Paths::new(folder, &wanted.name);
        if let Some(entry) = begin::there(wanted, &paths)? {
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
        Err(RegistryError::Unsteady { address: wanted.address.clone(), reason: last }.into())
    }

    fn changed(&self, wanted: &Wanted, paths: &Paths, reason: &str) -> Result<(), RegistryError> {
        let (file, reason) = (wanted.name.clone(), reason.to_owned());
        (self.listener)(PullEvent::Changed { file, reason });
        paths.clear()
    }
}

impl Download<'_> {
    /// Brings what is missing, and checks all. `doubted` are the chunks' hashes of a first fetch
    /// that was wrong as a whole.
    fn run(&self, doubted: &mut Option<Vec<Digest>>) -> Pulled<FileEntry> {
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
            match self.whole() {
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
    fn parts(&self) -> Pulled<()> {
        self.stop.store(false, Ordering::Relaxed);
        self.state().next = 0;
        if self.unsure && self.state().journal.missing(0).is_some() {
            // One that gives no parts would send the whole to each connection.
            self.work(1)?;
        }
        let workers = self.all.options.connections.max(1);
        let faults = Mutex::new(vec![]);
        thread::scope(|scope| {
            for _ in 0..workers {
                let run = || {
                    if let Err(fault) = self.work(u64::MAX) {
                        self.stop.store(true, Ordering::Relaxed);
                        faults.lock().unwrap_or_else(PoisonError::into_inner).push(fault);
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
    fn work(&self, most: u64) -> Pulled<()> {
        let mut part = None;
        for _ in 0..most {
            let Some(chunk) = self.take() else { break };
            let part = match &mut part {
                Some(part) => part,
                none => none.insert(chunk::Part::open(&self.paths.part)?),
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

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn retry(&self, reason: String, wait: std::time::Duration) {
        (self.all.listener)(PullEvent::Retry { file: self.name(), reason, wait });
    }

    fn dropped(&self, bytes: u64) {
        if bytes > 0 {
            (self.all.listener)(PullEvent::Dropped { file: self.name(), bytes });
        }
    }

    fn name(&self) -> String {
        self.wanted.name.clone()
    }

    /// The hash that a chunk was told to have.
    fn told(&self, chunk: u64) -> Option<Digest> {
        let (_, digests) = self.wanted.chunks.as_ref()?;
        digests.get(usize::try_from(chunk).ok()?).copied()
    }

    /// A failure to write, with the bytes that are still to come.
    fn cannot_write(&self, error: std::io::Error) -> Fault {
        let left = self.subject.bytes.saturating_sub(self.state().journal.bytes());
        RegistryError::io("write", &self.paths.part, left, error).into()
    }
}
