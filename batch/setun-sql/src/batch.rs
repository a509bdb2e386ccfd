//! Batch jobs: a table of prompts becomes files of results, across restarts.
//!
//! The input is cut into chunks of rows. The results of a chunk are one file, and then an entry of the manifest. Both are
//! put where nothing is yet, so a reader of the manifest never sees a part. A run does the chunks that have no entry. The
//! bytes of a file depend on the job alone: a run that was killed, and two runs at once, leave the same files.

mod chunk;
mod input;
mod job;
mod manifest;
mod requests;
mod rows;
#[cfg(feature = "ballista")]
mod shards;
mod workers;

use std::time::Duration;

use datafusion::datasource::listing::ListingTableUrl;
use futures::{StreamExt, future::BoxFuture, stream::FuturesUnordered};
use tokio::time::sleep;
#[cfg(feature = "ballista")]
use tokio::time::timeout;
use tracing::warn;

use crate::{error::Error, identity::Identity, session::plain_session};
use chunk::Chunk;
use input::{ChunkReader, Input};
pub use job::{BatchJob, Conversation};
use manifest::Manifest;
pub use manifest::{BatchStatus, ChunkEntry};
pub use workers::Workers;

/// Chunks that run at once: the second fills the places that the last rows of the first leave.
const CHUNKS_IN_FLIGHT: usize = 2;

/// Time before a chunk is tried again, longer each time.
const PAUSE: Duration = Duration::from_secs(2);

/// Runs the chunks of a job that are not done, and reports the status at the start and after each.
///
/// # Errors
///
/// Before any token, if the input, a column, an option or the output is wrong, or the output has another
/// job. Later if the engine or a store fails: what is done stays, and the next run goes on from there.
pub async fn run_batch(
    job: &BatchJob,
    workers: &Workers,
    mut report: impl FnMut(&BatchStatus) + Send,
) -> Result<BatchStatus, Error> {
    boxed(job, workers, &mut report).await
}

/// A job is a deep nest of futures: in a box it is compiled in this crate alone, and not in each that runs one.
fn boxed<'a>(
    job: &'a BatchJob,
    workers: &'a Workers,
    report: &'a mut (dyn FnMut(&BatchStatus) + Send),
) -> BoxFuture<'a, Result<BatchStatus, Error>> {
    Box::pin(run(job, workers, report))
}

async fn run(
    job: &BatchJob,
    workers: &Workers,
    report: &mut (dyn FnMut(&BatchStatus) + Send),
) -> Result<BatchStatus, Error> {
    let context = plain_session()?;
    let manifest = Manifest::open(&context, &job.output)?;
    manifest.check_is_not(&ListingTableUrl::parse(&job.input)?)?;
    let input = Input::open(&context, job).await?;
    let model = identity(job, workers).await?;
    let begun = manifest.begin(&job.describe(input.files(), model.clone())?).await?;
    let status = manifest.status().await?;
    let run = Run { job, model: &model, workers, manifest: &manifest, time: begun.time };
    let ended = run.chunks(input.chunks(job.chunk_rows), status, report).await;
    #[cfg(feature = "ballista")]
    match &ended {
        // Also those of runs that were killed.
        Ok(status) if status.is_complete() => manifest.remove_attempts().await,
        Ok(_) => {}
        // Of the chunk beside the one that failed. What a store refuses now stays.
        Err(_) => drop(timeout(PAUSE, manifest.remove_own_attempts()).await),
    }
    ended
}

/// The model, from a cluster whose executors may fail.
async fn identity(job: &BatchJob, workers: &Workers) -> Result<Identity, Error> {
    let mut attempt = 1;
    loop {
        match workers.identity(job).await {
            Err(error) if error.is_of_a_task() && attempt < workers.attempts() => {
                warn!(attempt, %error, "the model is asked for again");
            }
            found => return found,
        }
        sleep(PAUSE).await;
        attempt += 1;
    }
}

/// What the manifest in this folder says.
///
/// # Errors
///
/// If there is no job, or the store fails.
#[must_use = "a future does nothing unless it is awaited"]
pub fn batch_status(output: &str) -> BoxFuture<'_, Result<BatchStatus, Error>> {
    Box::pin(async { Manifest::open(&plain_session()?, output)?.status().await })
}

/// Takes away what a job that was interrupted has given to a cluster: what no executor has begun then ends.
///
/// # Errors
///
/// If the output is no folder. What the store refuses stays, and does no harm.
#[cfg(feature = "ballista")]
#[must_use = "a future does nothing unless it is awaited"]
pub fn end_attempts(output: &str) -> BoxFuture<'_, Result<(), Error>> {
    Box::pin(async {
        Manifest::open(&plain_session()?, output)?.remove_own_attempts().await;
        Ok(())
    })
}

async fn next_missing(
    reader: &mut ChunkReader,
    status: &BatchStatus,
) -> Result<Option<Chunk>, Error> {
    while let Some(chunk) = reader.next().await? {
        if !status.has(&chunk.name) {
            reader.check_unchanged().await?;
            return Ok(Some(chunk));
        }
    }
    Ok(None)
}

/// What the chunks of a run share.
#[derive(Clone, Copy)]
struct Run<'a> {
    job: &'a BatchJob,
    model: &'a Identity,
    workers: &'a Workers,
    manifest: &'a Manifest,
    /// When the job was begun.
    time: u64,
}

impl Run<'_> {
    /// Runs the chunks that are missing.
    async fn chunks(
        self,
        mut reader: ChunkReader,
        mut status: BatchStatus,
        report: &mut (dyn FnMut(&BatchStatus) + Send),
    ) -> Result<BatchStatus, Error> {
        report(&status);
        let mut running = FuturesUnordered::new();
        loop {
            while running.len() < CHUNKS_IN_FLIGHT
                && let Some(chunk) = next_missing(&mut reader, &status).await?
            {
                running.push(self.chunk(chunk));
            }
            let Some(entry) = running.next().await else { break };
            status.add(entry?);
            report(&status);
        }
        Ok(status)
    }

    async fn chunk(self, chunk: Chunk) -> Result<ChunkEntry, Error> {
        let mut attempt = 0;
        loop {
            attempt += 1;
            let found = chunk.run(self).await;
            let error = match found {
                Ok(results) => {
                    return self
                        .manifest
                        .put(&chunk.name, self.job.conversation.format(), results)
                        .await;
                }
                Err(error) => error,
            };
            // Another run of this job may have done it, and taken its files away.
            if let Some(entry) = self.manifest.entry(&chunk.name).await? {
                return Ok(entry);
            }
            if attempt >= self.workers.attempts() || !error.may_pass() {
                return Err(error);
            }
            warn!(chunk = chunk.name, attempt, %error, "the chunk is tried again");
            sleep(PAUSE * attempt).await;
        }
    }
}
