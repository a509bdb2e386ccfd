//! Files and batches as they are stored, and as clients see them.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A file as it is stored.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct StoredFile {
    pub(super) id: String,
    /// Who has it.
    pub(super) owner: String,
    /// Its place in the order in which files and batches came.
    pub(super) number: u64,
    pub(super) bytes: u64,
    pub(super) created_at: u64,
    pub(super) filename: String,
    pub(super) purpose: Purpose,
    pub(super) expires_at: Option<u64>,
}

/// What a file is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Purpose {
    /// Requests of a batch.
    Batch,
    /// Their answers.
    BatchOutput,
}

/// A batch as it is stored.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct StoredBatch {
    pub(super) id: String,
    pub(super) owner: String,
    pub(super) number: u64,
    pub(super) endpoint: String,
    pub(super) input_file_id: String,
    pub(super) status: BatchStatus,
    pub(super) metadata: Option<Map<String, Value>>,
    pub(super) faults: Vec<Fault>,
    /// Files that have been published.
    pub(super) output_file_id: Option<String>,
    pub(super) error_file_id: Option<String>,
    /// The ids that they have or will have.
    pub(super) answers_id: String,
    pub(super) errors_id: String,
    /// Seconds that they stay.
    pub(super) output_seconds: Option<u64>,
    #[serde(flatten)]
    pub(super) times: BatchTimes,
    pub(super) counts: RequestCounts,
}

/// How far a batch is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum BatchStatus {
    Validating,
    InProgress,
    Finalizing,
    Completed,
    Failed,
    Cancelling,
    Cancelled,
    Expired,
}

/// When a batch came to be what it is, in seconds of Unix time.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
#[expect(clippy::struct_field_names, reason = "clients have these names")]
pub(super) struct BatchTimes {
    pub(super) created_at: u64,
    pub(super) in_progress_at: Option<u64>,
    pub(super) expires_at: Option<u64>,
    pub(super) finalizing_at: Option<u64>,
    pub(super) completed_at: Option<u64>,
    pub(super) failed_at: Option<u64>,
    pub(super) expired_at: Option<u64>,
    pub(super) cancelling_at: Option<u64>,
    pub(super) cancelled_at: Option<u64>,
}

/// Requests of a batch, and those that have ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RequestCounts {
    pub(super) total: usize,
    pub(super) completed: usize,
    pub(super) failed: usize,
}

/// Why a batch has failed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Fault {
    pub(super) code: String,
    pub(super) message: String,
    pub(super) param: Option<String>,
    /// The line of the input, from 1.
    pub(super) line: Option<usize>,
}

/// A file as clients see it.
#[derive(Serialize)]
pub(super) struct FileObject<'a> {
    id: &'a str,
    object: &'static str,
    bytes: u64,
    created_at: u64,
    expires_at: Option<u64>,
    filename: &'a str,
    purpose: Purpose,
    status: &'static str,
    status_details: Option<()>,
}

/// A batch as clients see it.
#[derive(Serialize)]
pub(super) struct BatchObject<'a> {
    id: &'a str,
    object: &'static str,
    endpoint: &'a str,
    errors: Option<Faults<'a>>,
    input_file_id: &'a str,
    completion_window: &'static str,
    status: BatchStatus,
    output_file_id: Option<&'a str>,
    error_file_id: Option<&'a str>,
    #[serde(flatten)]
    times: BatchTimes,
    request_counts: RequestCounts,
    metadata: Option<&'a Map<String, Value>>,
}

#[derive(Serialize)]
struct Faults<'a> {
    object: &'static str,
    data: &'a [Fault],
}

/// The only time in which a batch may be asked to end.
pub(super) const COMPLETION_WINDOW: &str = "24h";

impl Purpose {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Batch => "batch",
            Self::BatchOutput => "batch_output",
        }
    }
}

impl StoredFile {
    pub(super) fn is_expired(&self, now: u64) -> bool {
        self.expires_at.is_some_and(|end| end <= now)
    }

    pub(super) fn object(&self) -> FileObject<'_> {
        FileObject {
            id: &self.id,
            object: "file",
            bytes: self.bytes,
            created_at: self.created_at,
            expires_at: self.expires_at,
            filename: &self.filename,
            purpose: self.purpose,
            status: "processed",
            status_details: None,
        }
    }
}

impl StoredBatch {
    pub(super) fn object(&self) -> BatchObject<'_> {
        let faults = || Faults { object: "list", data: &self.faults };
        BatchObject {
            id: &self.id,
            object: "batch",
            endpoint: &self.endpoint,
            errors: (!self.faults.is_empty()).then(faults),
            input_file_id: &self.input_file_id,
            completion_window: COMPLETION_WINDOW,
            status: self.status,
            output_file_id: self.output_file_id.as_deref(),
            error_file_id: self.error_file_id.as_deref(),
            times: self.times,
            request_counts: self.counts,
            metadata: self.metadata.as_ref(),
        }
    }

    /// Whether it needs this file.
    pub(super) fn needs(&self, file: &str) -> bool {
        !self.status.is_over()
            && [&self.input_file_id, &self.answers_id, &self.errors_id].iter().any(|id| *id == file)
    }

    /// Goes on to another status at this time.
    pub(super) fn enter(&mut self, status: BatchStatus, now: u64) {
        self.status = status;
        let times = &mut self.times;
        let time = match status {
            BatchStatus::Validating => return,
            BatchStatus::InProgress => &mut times.in_progress_at,
            BatchStatus::Finalizing => &mut times.finalizing_at,
            BatchStatus::Completed => &mut times.completed_at,
            BatchStatus::Failed => &mut times.failed_at,
            BatchStatus::Cancelling => &mut times.cancelling_at,
            BatchStatus::Cancelled => &mut times.cancelled_at,
            BatchStatus::Expired => &mut times.expired_at,
        };
        *time = Some(now);
    }
}

impl BatchStatus {
    /// Whether nothing more happens.
    pub(super) fn is_over(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled | Self::Expired)
    }

    /// Whether requests are still to be answered.
    pub(super) fn is_open(self) -> bool {
        matches!(self, Self::Validating | Self::InProgress)
    }
}
