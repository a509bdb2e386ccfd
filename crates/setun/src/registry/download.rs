//! One file: from its address to its place, checked.

mod chunk;
mod finish;
mod whole;

use std::{
    fs::{self, File},
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
    files::{open_or_make, with_end},
    http::{Http, network},
    journal::{Journal, Subject, discard},
    manifest::FileEntry,
    options::{Listener, PullEvent, PullOptions},
    plan::{Pulled, Wanted},
    probe::{Probe, probe},
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
        if let Some(entry) = there(wanted, &paths)? {
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

    /// Looks at what the server has and what is there of it.
    fn begin<'a>(&'a self, wanted: &'a Wanted, paths: &'a Paths) -> Pulled<Download<'a>> {
        let file = || wanted.name.clone();
        let tell = |reason, wait| (self.listener)(PullEvent::Retry { file: file(), reason, wait });
        let found = probe(self.http, &wanted.address, self.options, &tell)?;
        let found = found.ok_or_else(|| RegistryError::Status {
            address: wanted.address.clone(),
            status: 404,
            hint: ": there is no such file",
        })?;
        let bytes = size(wanted, &found)?;
        let chunk_bytes =
            wanted.chunks.as_ref().map_or(self.options.chunk_bytes, |chunks| chunks.0);
        let subject = Subject::new(bytes, chunk_bytes, found.identity.clone(), wanted.sha256);
        let journal = self.journal(wanted, paths, subject)?;
        let there = journal.bytes();
        (self.listener)(PullEvent::File { file: file(), bytes, there });
        Ok(Download {
            all: self,
            wanted,
            paths,
            subject: journal.subject.clone(),
            server: Mutex::new(Some(Server { address: found.address, etag: found.etag })),
            state: Mutex::new(State { journal, next: 0 }),
            stop: AtomicBool::new(false),
            unsure: !found.ranges,
        })
    }

    /// The journal of an earlier pull of the same file, without chunks that are damaged; or a
    /// new one.
    fn journal(&self, wanted: &Wanted, paths: &Paths, mut subject: Subject) -> Pulled<Journal> {
        let found = Journal::read(&paths.journal)?.filter(|_| paths.part.is_file());
        if let Some(found) = found {
            if wanted.chunks.is_none() {
                subject.chunk_bytes = found.subject.chunk_bytes;
            }
            if found.subject == subject {
                return Ok(self.checked(wanted, paths, found)?);
            }
            let reason = format!(
                "{} bytes known as {}, before {} bytes known as {}",
                subject.bytes,
                subject.identity.as_deref().unwrap_or("nothing"),
                found.subject.bytes,
                found.subject.identity.as_deref().unwrap_or("nothing"),
            );
            subject.chunk_bytes =
                wanted.chunks.as_ref().map_or(self.options.chunk_bytes, |chunks| chunks.0);
            self.changed(wanted, paths, &reason)?;
        }
        paths.clear()?;
        open_or_make(&paths.part)?;
        Ok(Journal::begin(paths.journal.clone(), subject)?)
    }

    /// Reads again the chunks that came last: should the disk have lost any, it is these.
    fn checked(
        &self,
        wanted: &Wanted,
        paths: &Paths,
        journal: Journal,
    ) -> Result<Journal, RegistryError> {
        let failed = |error| RegistryError::io("read", &paths.part, 0, error);
        let mut part = File::open(&paths.part).map_err(failed)?;
        let mut bad = vec![];
        for &chunk in journal.order.iter().rev().take(2 * self.options.connections) {
            let found =
                Digest::of_range(&mut part, journal.subject.range(chunk)).map_err(failed)?;
            if journal.chunks.get(&chunk) != Some(&found) {
                bad.push(chunk);
            }
        }
        if bad.is_empty() {
            return Ok(journal);
        }
        (self.listener)(PullEvent::Damaged { file: wanted.name.clone(), chunks: bad.clone() });
        journal.forget(&bad)
    }

    fn changed(&self, wanted: &Wanted, paths: &Paths, reason: &str) -> Result<(), RegistryError> {
        let (file, reason) = (wanted.name.clone(), reason.to_owned());
        (self.listener)(PullEvent::Changed { file, reason });
        paths.clear()
    }
}

/// The size of a file, on which all who told it agree.
fn size(wanted: &Wanted, found: &Probe) -> Pulled<u64> {
    if wanted.identity.is_some() && wanted.identity != found.identity {
        let name = |identity: &Option<String>| identity.clone().unwrap_or_else(|| "nothing".into());
        let (before, now) = (name(&wanted.identity), name(&found.identity));
        return Err(Fault::Changed(format!("known as {now}, before as {before}")));
    }
    match (wanted.bytes, found.bytes) {
        (Some(told), Some(found)) if told != found => Err(RegistryError::WrongSize {
            address: wanted.address.clone(),
            expected: told,
            found: found.to_string(),
        }
        .into()),
        (told, found) => {
            let none = || network(&wanted.address, "the server does not tell its size".into());
            Ok(told.or(found).ok_or_else(none)?)
        }
    }
}

/// A file that an earlier pull has finished.
fn there(wanted: &Wanted, paths: &Paths) -> Result<Option<FileEntry>, RegistryError> {
    let Ok(metadata) = fs::metadata(&paths.path) else { return Ok(None) };
    let Some(journal) = Journal::read(&paths.journal)? else { return Ok(None) };
    let subject = &journal.subject;
    let same = metadata.len() == subject.bytes
        && wanted.bytes.is_none_or(|bytes| bytes == subject.bytes)
        && wanted.sha256 == subject.sha256
        && (wanted.identity.is_none() || wanted.identity == subject.identity);
    Ok(journal.whole.filter(|_| same && journal.missing(0).is_none()).map(|whole| FileEntry {
        name: wanted.name.clone(),
        bytes: subject.bytes,
        etag: subject.identity.clone(),
        sha256: Some(whole),
        chunk_bytes: subject.chunk_bytes,
        chunks: journal.chunks.values().copied().collect(),
    }))
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
