//! The manifest: what of a job is done.

#[cfg(feature = "ballista")]
mod attempts;
mod local;

use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};

use datafusion::{datasource::listing::ListingTableUrl, prelude::SessionContext};
use futures::TryStreamExt;
use object_store::{
    Error as StoreError, ObjectStore, ObjectStoreExt, PutMode, PutPayload, local::LocalFileSystem,
    path::Path,
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use sha2::{Digest, Sha256};
use tokio::time::sleep;
use url::Url;

use super::job::Description;
use crate::{error::Error, identity::digits};

/// The description of the job, and the folder of the entries. Readers of the folder see only the results.
const JOB: &str = "_manifest/job.json";
const ENTRIES: &str = "_manifest/chunks";

/// How often an object is put that a store refuses for another that is under way, and the first pause.
const CONFLICTS: u32 = 6;
const PAUSE: Duration = Duration::from_millis(200);

/// A folder with results and their manifest.
pub(super) struct Manifest {
    store: Arc<dyn ObjectStore>,
    folder: Path,
    url: ListingTableUrl,
    shown: String,
}

/// The file of a chunk, and what is counted of it.
pub(super) struct ChunkResults {
    pub(super) bytes: Vec<u8>,
    pub(super) rows: usize,
    pub(super) errors: usize,
    pub(super) prompt_tokens: u64,
    pub(super) completion_tokens: u64,
}

/// An entry of the manifest: a chunk that is done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ChunkEntry {
    /// Name of the chunk: the number of its file in the input and its first row.
    pub chunk: String,
    /// The file with its results.
    pub file: String,
    /// Size of that file.
    pub bytes: u64,
    /// SHA-256 of that file, in hexadecimal digits.
    pub sha256: String,
    /// Its rows.
    pub rows: u64,
    /// Those of them with an `error`.
    pub errors: u64,
    /// Tokens of prompts.
    pub prompt_tokens: u64,
    /// Tokens generated.
    pub completion_tokens: u64,
}

/// How far a job is, as its manifest says.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BatchStatus {
    /// Chunks of the job.
    pub chunks: usize,
    /// Rows of the job.
    pub rows: u64,
    done: BTreeMap<String, ChunkEntry>,
}

impl BatchStatus {
    /// The entries of the manifest, by the names of their chunks.
    #[must_use]
    pub fn entries(&self) -> impl ExactSizeIterator<Item = &ChunkEntry> {
        self.done.values()
    }

    /// The sum of a count over all entries.
    pub fn total(&self, count: impl Fn(&ChunkEntry) -> u64) -> u64 {
        self.done.values().map(count).sum()
    }

    /// Whether nothing is left to do.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.done.len() >= self.chunks
    }

    pub(super) fn has(&self, chunk: &str) -> bool {
        self.done.contains_key(chunk)
    }

    pub(super) fn add(&mut self, entry: ChunkEntry) {
        self.done.insert(entry.chunk.clone(), entry);
    }
}

impl Manifest {
    pub(super) fn open(context: &SessionContext, output: &str) -> Result<Self, Error> {
        // A folder's address ends so; one that is not there yet is told from a file by it.
        let url = ListingTableUrl::parse(format!("{}/", output.trim_end_matches('/')))?;
        if url.get_glob().is_some() {
            let reason = "it has one of `?`, `*` and `[`, expected a folder".to_owned();
            return Err(Error::Output { output: output.to_owned(), reason });
        }
        let store = context.runtime_env().object_store(url.object_store())?;
        Ok(Self { store, folder: url.prefix().clone(), url, shown: output.to_owned() })
    }

    /// Refuses an input whose files lie where the results go.
    pub(super) fn check_is_not(&self, input: &ListingTableUrl) -> Result<(), Error> {
        let is_same = self.url.object_store() == input.object_store()
            && self.folder.prefix_matches(input.prefix());
        if is_same {
            let reason = "it is in the input, expected another folder".to_owned();
            return Err(Error::Output { output: self.shown.clone(), reason });
        }
        Ok(())
    }

    /// Begins a job, or continues the one that is there, which it returns. Another one is refused.
    pub(super) async fn begin(&self, job: &Description) -> Result<Description, Error> {
        // Not every store refuses to replace an object.
        if !self.exists(JOB).await? {
            self.create(JOB, self.json(job)?.into()).await?;
        }
        let found = self.read(JOB).await?;
        job.check_same(&found)?;
        Ok(found)
    }

    pub(super) async fn status(&self) -> Result<BatchStatus, Error> {
        let job: Description = self.read(JOB).await?;
        let folder = self.path(ENTRIES);
        let listed: Vec<_> = self
            .store
            .list(Some(&folder))
            .try_collect()
            .await
            .map_err(|error| self.failed(ENTRIES, &error))?;
        let mut done = BTreeMap::new();
        for file in listed {
            let name = file.location.filename().unwrap_or_default();
            let entry: ChunkEntry = self.read(&format!("{ENTRIES}/{name}")).await?;
            done.insert(entry.chunk.clone(), entry);
        }
        Ok(BatchStatus { chunks: job.chunks(), rows: job.rows() as u64, done })
    }

    /// Puts the file of a chunk, and then its entry.
    pub(super) async fn put(
        &self,
        chunk: &str,
        format: &str,
        results: ChunkResults,
    ) -> Result<ChunkEntry, Error> {
        let ChunkResults { bytes, rows, errors, prompt_tokens, completion_tokens } = results;
        let entry = ChunkEntry {
            chunk: chunk.to_owned(),
            file: format!("{chunk}.{format}"),
            bytes: bytes.len() as u64,
            sha256: digits(&Sha256::digest(&bytes)),
            rows: rows as u64,
            errors: errors as u64,
            prompt_tokens,
            completion_tokens,
        };
        if !self.create(&entry.file, bytes.into()).await? {
            // Of a run that was killed before it put the entry, or of one that is under way.
            let found = self.bytes(&entry.file).await?;
            let found = digits(&Sha256::digest(&found));
            if found != entry.sha256 {
                let (field, expected) = (entry.file, entry.sha256);
                return Err(Error::OtherJob { field, expected, found });
            }
        }
        let text = self.json(&entry)?;
        self.create(&format!("{ENTRIES}/{chunk}.json"), text.into()).await?;
        Ok(entry)
    }

    /// The entry of a chunk, if there is one.
    pub(super) async fn entry(&self, chunk: &str) -> Result<Option<ChunkEntry>, Error> {
        let name = format!("{ENTRIES}/{chunk}.json");
        if self.exists(&name).await? { self.read(&name).await.map(Some) } else { Ok(None) }
    }

    async fn exists(&self, name: &str) -> Result<bool, Error> {
        match self.store.head(&self.path(name)).await {
            Ok(_) => Ok(true),
            Err(StoreError::NotFound { .. }) => Ok(false),
            Err(error) => Err(self.failed(name, &error)),
        }
    }

    /// Puts an object where there is none; false where there is one. What a file system has then
    /// stays where its power fails.
    async fn create(&self, name: &str, bytes: PutPayload) -> Result<bool, Error> {
        if let Some(path) = self.local_path(name) {
            return local::create(path, bytes).await.map_err(|error| self.wrong(name, &error));
        }
        for attempt in 1..=CONFLICTS {
            match self.store.put_opts(&self.path(name), bytes.clone(), PutMode::Create.into()).await
            {
                Ok(_) => return Ok(true),
                // S3 says so too while another one is being put, of which nothing may come.
                Err(StoreError::AlreadyExists { .. }) if self.exists(name).await? => {
                    return Ok(false);
                }
                Err(StoreError::AlreadyExists { .. }) => sleep(PAUSE * attempt).await,
                Err(error) => return Err(self.failed(name, &error)),
            }
        }
        Err(self.wrong(name, &"the store refuses it as if it were there, and it is not"))
    }

    /// The path of an object in this machine's file system, if it is in one.
    fn local_path(&self, name: &str) -> Option<PathBuf> {
        let url: &Url = self.url.as_ref();
        let is_local = url.scheme() == "file";
        let files = is_local.then(LocalFileSystem::new)?;
        files.path_to_filesystem(&self.path(name)).ok()
    }

    async fn read<Value: DeserializeOwned>(&self, name: &str) -> Result<Value, Error> {
        let bytes = self.bytes(name).await?;
        serde_json::from_slice(&bytes).map_err(|error| Error::Output {
            output: format!("{}/{name}", self.shown),
            reason: error.to_string(),
        })
    }

    async fn bytes(&self, name: &str) -> Result<Vec<u8>, Error> {
        let read = async { self.store.get(&self.path(name)).await?.bytes().await };
        read.await.map(Into::into).map_err(|error| self.failed(name, &error))
    }

    fn json(&self, value: &impl Serialize) -> Result<Vec<u8>, Error> {
        serde_json::to_vec_pretty(value).map_err(|error| Error::Output {
            output: self.shown.clone(),
            reason: error.to_string(),
        })
    }

    fn path(&self, name: &str) -> Path {
        name.split('/').fold(self.folder.clone(), Path::join)
    }

    fn failed(&self, name: &str, error: &StoreError) -> Error {
        self.wrong(name, error)
    }

    fn wrong(&self, name: &str, reason: &dyn std::fmt::Display) -> Error {
        Error::Output { output: format!("{}/{name}", self.shown), reason: reason.to_string() }
    }
}
