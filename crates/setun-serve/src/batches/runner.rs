//! The course of a batch, from its validation to its end.

use std::{
    io,
    pin::pin,
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Duration,
};

use futures::{
    FutureExt, StreamExt,
    future::{Either, select, select_all},
};
use setun::batch_file::BatchOutcome;
use tokio::time::sleep;
use tracing::info;

use super::{
    answering::{Answered, Answering, Stop},
    lines,
    validation::{of_file, validate},
};
use crate::files::{
    answer_files::AnswerFiles,
    records::{BatchStatus, Fault, StoredBatch},
    service::{Batches, Owner},
};
use crate::{
    app::{App, AppState},
    blocking::beside,
    error::ApiError,
    lifecycle::Lifecycle,
};

/// Bytes of a line beside those of its body.
const LINE_HEAD: usize = 64 << 10;

/// Time after which a batch is tried again whose end could not be written.
const PAUSE: Duration = Duration::from_secs(30);

/// Answers to what has not been answered when a batch's time was over.
const EXPIRED: BatchOutcome<'_> = BatchOutcome::Error {
    code: "batch_expired",
    message: "This request could not be executed before the completion window expired.",
};

/// A batch that runs.
struct Runner {
    app: Weak<AppState>,
    batches: Arc<Batches>,
    lifecycle: Lifecycle,
    max_line: usize,
    id: String,
}

type Files = Arc<Mutex<AnswerFiles>>;

/// Continues the batches that have not ended, once. Without a runtime it does nothing.
pub(crate) fn resume(app: &App) {
    let Ok(batches) = app.batches() else { return };
    if tokio::runtime::Handle::try_current().is_ok() && batches.starts() {
        batches.store.unfinished().into_iter().for_each(|id| spawn(app, batches, id));
    }
}

/// Runs a batch in a task of its own.
pub(super) fn spawn(app: &App, batches: &Arc<Batches>, id: String) {
    let runner = Runner {
        app: Arc::downgrade(app),
        batches: Arc::clone(batches),
        lifecycle: app.lifecycle.clone(),
        max_line: app.max_body_bytes().saturating_add(LINE_HEAD),
        id,
    };
    tokio::spawn(async move {
        loop {
            if let Err(error) = runner.run().await {
                runner.fail(of_file(error.code(), error.message().to_owned()), None).await;
            }
            let Some(batch) = runner.batches.store.batch(&runner.id) else { return };
            info!(target: "setun_serve", id = batch.id, status = ?batch.status, "batch");
            if batch.status.is_over() || runner.is_ending() {
                return;
            }
            sleep(PAUSE).await; // the disk takes nothing at present
        }
    });
}

impl Runner {
    /// Whether the server ends, or its router has gone.
    fn is_ending(&self) -> bool {
        self.lifecycle.is_draining() || self.app.strong_count() == 0
    }

    async fn run(&self) -> Result<(), ApiError> {
        let Some(mut batch) = self.batches.store.batch(&self.id) else { return Ok(()) };
        if batch.status == BatchStatus::Validating {
            batch = match self.validate(batch).await? {
                Some(batch) => batch,
                None => return Ok(()), // the server ends
            };
        }
        if batch.status.is_over() {
            return Ok(());
        }
        let files = self.files(&batch).await?;
        if batch.status == BatchStatus::InProgress {
            let ended = self.answer_all(&batch, &files).await;
            match ended {
                Ok(Some(Stop::Server)) => return Ok(()),
                Ok(Some(Stop::Cancelled)) => {}
                Ok(Some(Stop::Expired)) => {
                    self.expire(&batch, &files).await?;
                    return self.end(&files, BatchStatus::Expired, vec![]).await;
                }
                Ok(Some(Stop::Key)) => {
                    let message = "the server does not have the key of the batch any more";
                    let fault = of_file("invalid_api_key", message.to_owned());
                    return self.end(&files, BatchStatus::Failed, vec![fault]).await;
                }
                Ok(None) => self.enter(BatchStatus::Finalizing, BatchStatus::InProgress).await?,
                // What has been answered is not lost.
                Err(error) => {
                    let fault = of_file(error.code(), error.message().to_owned());
                    self.fail(fault, Some(&files)).await;
                    return Ok(());
                }
            }
        }
        let is_cancelled = self
            .batches
            .store
            .batch(&self.id)
            .is_none_or(|batch| batch.status == BatchStatus::Cancelling);
        let end = if is_cancelled { BatchStatus::Cancelled } else { BatchStatus::Completed };
        self.end(&files, end, vec![]).await
    }

    /// Checks the input. The batch then is in progress, has failed, or is cancelled; none where the server ends.
    async fn validate(&self, batch: StoredBatch) -> Result<Option<StoredBatch>, ApiError> {
        let _turn = self.batches.validating.acquire().await;
        if self.lifecycle.is_draining() {
            return Ok(None);
        }
        let path = self.batches.store.content(&batch.input_file_id);
        let (endpoint, most, max_line) =
            (batch.endpoint, self.batches.store.limits().batch_requests, self.max_line);
        let found = beside(move || {
            validate(&path, &endpoint, most, max_line).map_err(|error| unreadable(&error))
        });
        let found = found.await?;
        let now = self.batches.now();
        let batch = self.change(move |batch| {
            batch.counts.total = found.requests;
            if batch.status == BatchStatus::Validating {
                let is_good = found.faults.is_empty();
                batch.faults = found.faults;
                batch.enter(
                    if is_good { BatchStatus::InProgress } else { BatchStatus::Failed },
                    now,
                );
            }
            Ok(())
        });
        batch.await.map(Some)
    }

    async fn files(&self, batch: &StoredBatch) -> Result<Files, ApiError> {
        let (store, batch) = (self.batches.store.clone(), batch.clone());
        let owner = self.owner(&batch.owner);
        beside(move || {
            let files = AnswerFiles::open(&store, &batch, owner);
            files
                .map(|files| Arc::new(Mutex::new(files)))
                .map_err(|error| ApiError::of_storage(&error))
        })
        .await
    }

    /// Answers what has not been answered. Why it ends before all is.
    async fn answer_all(
        &self,
        batch: &StoredBatch,
        files: &Files,
    ) -> Result<Option<Stop>, ApiError> {
        let limits = self.batches.store.limits();
        let Some(app) = self.app.upgrade() else { return Ok(Some(Stop::Server)) };
        let at_once = app.limiter().share_of_batches(limits.batch_concurrency);
        drop(app);
        let answering = Answering {
            app: self.app.clone(),
            batches: Arc::clone(&self.batches),
            owner: batch.owner.clone(),
            time: batch.times.created_at,
            places: self.batches.places(&batch.owner, at_once),
        };
        let answering = &answering;
        let answers = self.left(batch, files).map(|request| async move {
            match request {
                Ok(request) => Ok(answering.answer(request).await),
                Err(error) => Err(unreadable(&error)),
            }
        });
        let mut answers = pin!(answers.buffer_unordered(at_once));
        let mut stop = pin!(self.stop(batch));
        loop {
            let answered = match select(&mut stop, answers.next()).await {
                Either::Left((stop, _)) => return Ok(Some(stop)),
                Either::Right((None, _)) => return Ok(None),
                Either::Right((Some(answered), _)) => answered?,
            };
            let Answered { custom_id, status, body } = match answered {
                Ok(answered) => answered,
                Err(stop) => return Ok(Some(stop)),
            };
            self.with_files(files, move |files| {
                files.append(&custom_id, BatchOutcome::Answer { status, body: &body })
            })
            .await?;
        }
    }

    /// The requests that have not been answered.
    fn left(
        &self,
        batch: &StoredBatch,
        files: &Files,
    ) -> impl futures::Stream<Item = io::Result<setun::batch_file::BatchRequest>> + use<> {
        let path = self.batches.store.content(&batch.input_file_id);
        let done = files.lock().unwrap_or_else(PoisonError::into_inner).done();
        lines::requests(path, self.max_line, done)
    }

    /// Waits until no more requests are answered.
    async fn stop(&self, batch: &StoredBatch) -> Stop {
        let is_cancelled = |batch: &StoredBatch| batch.status == BatchStatus::Cancelling;
        let server = self.lifecycle.until_draining().map(|()| Stop::Server).boxed();
        let cancelled =
            self.batches.store.until(&self.id, is_cancelled).map(|()| Stop::Cancelled).boxed();
        let end = batch.times.expires_at.unwrap_or(u64::MAX);
        let expired = self.batches.until(end).map(|()| Stop::Expired).boxed();
        select_all([server, cancelled, expired]).await.0
    }

    /// Says of what is left that its time is over.
    async fn expire(&self, batch: &StoredBatch, files: &Files) -> Result<(), ApiError> {
        let mut left = pin!(self.left(batch, files));
        while let Some(request) = left.next().await {
            let request = request.map_err(|error| unreadable(&error))?;
            self.with_files(files, move |files| files.append(&request.custom_id, EXPIRED)).await?;
        }
        Ok(())
    }

    /// Publishes the answers, and ends the batch.
    async fn end(
        &self,
        files: &Files,
        status: BatchStatus,
        faults: Vec<Fault>,
    ) -> Result<(), ApiError> {
        let now = self.batches.now();
        let seconds = self.batches.store.batch(&self.id).and_then(|batch| batch.output_seconds);
        let expires_at = seconds.map(|seconds| now.saturating_add(seconds));
        let (ids, counts) = self
            .with_files(files, move |files| Ok((files.publish(expires_at, now)?, files.counts())))
            .await?;
        let ended = self.change(move |batch| {
            [batch.output_file_id, batch.error_file_id] = ids;
            batch.counts = counts;
            batch.faults.extend(faults);
            batch.enter(status, now);
            Ok(())
        });
        ended.await.map(drop)
    }

    /// Ends the batch with a fault, and publishes what has been answered as far as that is possible.
    async fn fail(&self, fault: Fault, files: Option<&Files>) {
        if let Some(files) = files
            && self.end(files, BatchStatus::Failed, vec![fault.clone()]).await.is_ok()
        {
            return;
        }
        let now = self.batches.now();
        let failed = self.change(move |batch| {
            if !batch.status.is_over() {
                batch.faults.push(fault);
                batch.enter(BatchStatus::Failed, now);
            }
            Ok(())
        });
        let _ = failed.await; // the next start continues it
    }

    /// Goes on from one status to another, unless the batch has been cancelled.
    async fn enter(&self, to: BatchStatus, from: BatchStatus) -> Result<(), ApiError> {
        let now = self.batches.now();
        let changed = self.change(move |batch| {
            if batch.status == from {
                batch.enter(to, now);
            }
            Ok(())
        });
        changed.await.map(drop)
    }

    async fn change(
        &self,
        change: impl FnOnce(&mut StoredBatch) -> Result<(), ApiError> + Send + 'static,
    ) -> Result<StoredBatch, ApiError> {
        let (store, id) = (self.batches.store.clone(), self.id.clone());
        beside(move || store.change_batch(&id, change)).await
    }

    async fn with_files<T: Send + 'static>(
        &self,
        files: &Files,
        work: impl FnOnce(&mut AnswerFiles) -> Result<T, ApiError> + Send + 'static,
    ) -> Result<T, ApiError> {
        let files = Arc::clone(files);
        beside(move || work(&mut files.lock().unwrap_or_else(PoisonError::into_inner))).await
    }

    fn owner(&self, id: &str) -> Owner {
        let is_one_of_several = matches!(self.batches.key_of(id), Ok((Some(_), true)));
        Owner { id: id.to_owned(), is_one_of_several }
    }
}

/// An input that has gone or has been changed.
fn unreadable(error: &io::Error) -> ApiError {
    match error.kind() {
        io::ErrorKind::NotFound => ApiError::internal("the content of the input file is missing"),
        _ => ApiError::of_storage(error),
    }
}
