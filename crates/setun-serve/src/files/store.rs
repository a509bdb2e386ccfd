//! The files and batches of a server, in memory and in a folder.

use std::{
    fmt, io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::Notify;
use tracing::warn;

use super::{
    disk::{Disk, length},
    error::FilesError,
    records::{RequestCounts, StoredBatch, StoredFile},
    usage::{FileLimits, Usage},
};
use crate::error::ApiError;

/// A folder with files and batches, which one server has at a time. Clones share it.
#[derive(Clone)]
pub struct FileStore(Arc<Shared>);

struct Shared {
    disk: Disk,
    limits: FileLimits,
    damaged: Vec<String>,
    state: Mutex<State>,
    /// Held while a record is changed and written, in this order for all.
    writing: Mutex<()>,
    /// Told when a batch has another status.
    changed: Notify,
}

/// What is known of the folder. Both lists are in the order in which their items came.
#[derive(Default)]
struct State {
    files: Vec<StoredFile>,
    batches: Vec<StoredBatch>,
    usage: Usage,
    next: u64,
}

impl FileStore {
    /// Opens a folder, which is created where there is none. What a process left behind that ended in the middle
    /// of writing is removed.
    ///
    /// # Errors
    ///
    /// If the folder cannot be read or written, or another server has it.
    pub fn open(folder: impl AsRef<Path>, limits: FileLimits) -> Result<Self, FilesError> {
        let disk = Disk::open(folder.as_ref())?;
        let (files, batches) =
            (disk.read_files::<StoredFile>()?, disk.read_batches::<StoredBatch>()?);
        let damaged: Vec<_> = files.damaged.into_iter().chain(batches.damaged).collect();
        for record in &damaged {
            warn!(target: "setun_serve", record, "a record cannot be read and is left as it is");
        }
        let (mut files, mut batches) = (files.whole, batches.whole);
        files.sort_by_key(|file| file.number);
        batches.sort_by_key(|batch| batch.number);
        // Answers of a batch that could not be published stay, whatever became of it.
        let has_answers =
            |batch: &StoredBatch, id: &str| batch.answers_id == id || batch.errors_id == id;
        disk.remove_unfinished(|id| batches.iter().any(|batch| has_answers(batch, id)))?;
        let numbers =
            files.iter().map(|file| file.number).chain(batches.iter().map(|batch| batch.number));
        let next = numbers.max().map_or(0, |last| last + 1);
        let mut usage = Usage::default();
        for file in &files {
            usage.add(&file.owner, file.bytes, 1);
        }
        for batch in batches.iter().filter(|batch| !batch.status.is_over()) {
            for id in [&batch.answers_id, &batch.errors_id] {
                if !files.iter().any(|file| file.id == *id)
                    && let Ok(Some(bytes)) = length(&disk.content(id))
                {
                    usage.add(&batch.owner, bytes, 0);
                }
            }
        }
        let state = Mutex::new(State { files, batches, usage, next });
        let (writing, changed) = (Mutex::default(), Notify::new());
        Ok(Self(Arc::new(Shared { disk, limits, damaged, state, writing, changed })))
    }

    /// Records of the folder that cannot be read, each with the reason. They and what they belong to are left as
    /// they are.
    #[must_use]
    pub fn damaged(&self) -> &[String] {
        &self.0.damaged
    }

    pub(crate) fn limits(&self) -> &FileLimits {
        &self.0.limits
    }

    /// Where the content of a file is, and where while it is being uploaded.
    pub(crate) fn content(&self, id: &str) -> PathBuf {
        self.0.disk.content(id)
    }

    pub(crate) fn part(&self, id: &str) -> PathBuf {
        self.0.disk.part(id)
    }

    /// The files of an owner that have not expired, in their order.
    pub(crate) fn files(&self, owner: &str, now: u64) -> Vec<StoredFile> {
        let state = self.lock();
        let own = state.files.iter().filter(|file| file.owner == owner && !file.is_expired(now));
        own.cloned().collect()
    }

    pub(crate) fn file(&self, owner: &str, id: &str, now: u64) -> Option<StoredFile> {
        let state = self.lock();
        let mut files =
            state.files.iter().filter(|file| file.owner == owner && !file.is_expired(now));
        files.find(|file| file.id == id).cloned()
    }

    /// The batches of an owner, in their order.
    pub(crate) fn batches(&self, owner: &str) -> Vec<StoredBatch> {
        self.lock().batches.iter().filter(|batch| batch.owner == owner).cloned().collect()
    }

    pub(crate) fn batch(&self, id: &str) -> Option<StoredBatch> {
        self.lock().batches.iter().find(|batch| batch.id == id).cloned()
    }

    /// Ids of the batches that have not ended.
    pub(crate) fn unfinished(&self) -> Vec<String> {
        let state = self.lock();
        let unfinished = state.batches.iter().filter(|batch| !batch.status.is_over());
        unfinished.map(|batch| batch.id.clone()).collect()
    }

    /// Counts bytes that are about to be written.
    pub(crate) fn take_bytes(
        &self,
        owner: &str,
        bytes: u64,
        is_shared: bool,
    ) -> Result<(), ApiError> {
        self.lock().usage.take_bytes(owner, bytes, &self.0.limits, is_shared)
    }

    pub(crate) fn take_file(&self, owner: &str, is_shared: bool) -> Result<(), ApiError> {
        self.lock().usage.take_file(owner, &self.0.limits, is_shared)
    }

    /// Counts bytes and files no more.
    pub(crate) fn give_back(&self, owner: &str, bytes: u64, files: usize) {
        self.lock().usage.remove(owner, bytes, files);
    }

    /// Counts a file that is kept whatever the limits are, and whose bytes are counted.
    pub(crate) fn count_file(&self, owner: &str) {
        self.lock().usage.add(owner, 0, 1);
    }

    /// Adds a file whose content is in its place, and whose bytes are counted.
    pub(crate) fn add_file(&self, mut file: StoredFile) -> io::Result<StoredFile> {
        let _writing = self.writing();
        file.number = self.number();
        self.0.disk.write_file(&file.id, &file)?;
        let mut state = self.lock();
        state.files.retain(|other| other.id != file.id);
        state.files.push(file.clone());
        Ok(file)
    }

    /// Removes a file that no batch needs.
    pub(crate) fn remove_file(&self, owner: &str, id: &str) -> Result<bool, ApiError> {
        let _writing = self.writing();
        let (file, user) = {
            let state = self.lock();
            let file =
                state.files.iter().find(|file| file.owner == owner && file.id == id).cloned();
            (file, state.batches.iter().find(|batch| batch.needs(id)).map(|batch| batch.id.clone()))
        };
        let Some(file) = file else { return Ok(false) };
        if let Some(batch) = user {
            return Err(ApiError::conflict(format!("the batch {batch} needs this file")));
        }
        self.0.disk.remove_file(id).map_err(|error| ApiError::of_storage(&error))?;
        let mut state = self.lock();
        state.files.retain(|other| other.id != id);
        state.usage.remove(owner, file.bytes, 1);
        Ok(true)
    }

    /// Removes files whose time is over, but for those that batches need.
    pub(crate) fn remove_expired(&self, now: u64) {
        let expired: Vec<_> = {
            let state = self.lock();
            let files = state.files.iter().filter(|file| file.is_expired(now));
            files.map(|file| (file.owner.clone(), file.id.clone())).collect()
        };
        for (owner, id) in expired {
            let _ = self.remove_file(&owner, &id); // the log has why; it stays until the next time
        }
    }

    /// Adds a batch. Those of its owner that ended first are forgotten where there are too many.
    pub(crate) fn add_batch(&self, mut batch: StoredBatch) -> Result<StoredBatch, ApiError> {
        let failed = |error: io::Error| ApiError::of_storage(&error);
        let _writing = self.writing();
        let own = self.batches(&batch.owner);
        let open = own.iter().filter(|other| !other.status.is_over()).count();
        if open >= MAX_OPEN {
            let message = format!("{open} batches of this key are under way");
            return Err(ApiError::too_many(message));
        }
        if own.len() >= self.0.limits.files
            && let Some(oldest) = own.iter().find(|other| other.status.is_over())
        {
            self.0.disk.remove_batch(&oldest.id).map_err(failed)?;
            self.lock().batches.retain(|other| other.id != oldest.id);
        }
        batch.number = self.number();
        self.0.disk.write_batch(&batch.id, &batch).map_err(failed)?;
        self.lock().batches.push(batch.clone());
        Ok(batch)
    }

    /// Changes a batch, and what is stored of it. Nothing is changed where the change or the disk refuses.
    pub(crate) fn change_batch(
        &self,
        id: &str,
        change: impl FnOnce(&mut StoredBatch) -> Result<(), ApiError>,
    ) -> Result<StoredBatch, ApiError> {
        let _writing = self.writing();
        let mut batch =
            self.batch(id).ok_or_else(|| ApiError::not_kept("batch", "batch_id", id))?;
        change(&mut batch)?;
        self.0.disk.write_batch(id, &batch).map_err(|error| ApiError::of_storage(&error))?;
        let mut state = self.lock();
        if let Some(place) = state.batches.iter_mut().find(|other| other.id == id) {
            *place = batch.clone();
        }
        drop(state);
        self.0.changed.notify_waiters();
        Ok(batch)
    }

    /// Sets the counts of a batch, which its files have on the disk.
    pub(crate) fn count(&self, id: &str, counts: RequestCounts) {
        let _writing = self.writing();
        if let Some(batch) = self.lock().batches.iter_mut().find(|batch| batch.id == id) {
            batch.counts = counts;
        }
    }

    /// Waits until a batch is as asked.
    pub(crate) async fn until(&self, id: &str, is_so: impl Fn(&StoredBatch) -> bool) {
        loop {
            let changed = self.0.changed.notified();
            let mut changed = std::pin::pin!(changed);
            changed.as_mut().enable(); // before the look, so that no change is missed
            if self.batch(id).is_none_or(|batch| is_so(&batch)) {
                return;
            }
            changed.await;
        }
    }

    fn number(&self) -> u64 {
        let mut state = self.lock();
        state.next += 1;
        state.next - 1
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn writing(&self) -> MutexGuard<'_, ()> {
        self.0.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Most batches of an owner that have not ended.
const MAX_OPEN: usize = 100;

impl fmt::Debug for FileStore {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.lock();
        let mut debug = formatter.debug_struct("FileStore");
        debug.field("files", &state.files.len()).field("batches", &state.batches.len());
        debug.finish_non_exhaustive()
    }
}
