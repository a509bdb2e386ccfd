//! Files and batches as they are stored, and as clients see them.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A file as it is stored.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct StoredFile {
    pub(crate) id: String,
    /// Who has it.
    pub(crate) owner: String,
    /// Its place in the order in which files and batches came.
    pub(crate) number: u64,
    pub(crate) bytes: u64,
    pub(crate) created_at: u64,
    pub(crate) filename: String,
    pub(crate) purpose: Purpose,
    pub(crate) expires_at: Option<u64>,
}

/// What a file is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Purpose {
    /// Requests of a batch.
    Batch,
    /// Their answers.
    BatchOutput,
}

/// A batch as it is stored.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct StoredBatch {
    pub(crate) id: String,
    pub(crate) owner: String,
    pub(crate) number: u64,
    pub(crate) endpoint: String,
    pub(crate) input_file_id: String,
    pub(crate) status: BatchStatus,
    pub(crate) metadata: Option<Map<String, Value>>,
    pub(crate) faults: Vec<Fault>,
    /// Files that have been published.
    pub(crate) output_file_id: Option<String>,
    pub(crate) error_file_id: Option<String>,
    /// The ids that they have or will have.
    pub(crate) answers_id: String,
    pub(crate) errors_id: String,
    /// Seconds that they stay.
    pub(crate) output_seconds: Option<u64>,
    #[serde(flatten)]
    pub(crate) times: BatchTimes,
    pub(crate) counts: RequestCounts,
}

/// How far a batch is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum BatchStatus {
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
pub(crate) struct BatchTimes {
    pub(crate) created_at: u64,
    pub(crate) in_progress_at: Option<u64>,
    pub(crate) expires_at: Option<u64>,
    pub(crate) finalizing_at: Option<u64>,
    pub(crate) completed_at: Option<u64>,
    pub(crate) failed_at: Option<u64>,
    pub(crate) expired_at: Option<u64>,
    pub(crate) cancelling_at: Option<u64>,
    pub(crate) cancelled_at: Option<u64>,
}

/// Requests of a batch, and those that have ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RequestCounts {
    pub(crate) total: usize,
    pub(crate) completed: usize,
    pub(crate) failed: usize,
}

/// Why a batch has failed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Fault {
    pub(crate) code: String,
    pub(crate) message: String,
    pub(crate) param: Option<String>,
    /// The line of the input, from 1.
    pub(crate) line: Option<usize>,
}

/// A file as clients see it.
#[derive(Serialize)]
pub(crate) struct FileObject<'a> {
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
pub(crate) struct BatchObject<'a> {
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
pub(crate) const COMPLETION_WINDOW: &str = "24h";

impl Purpose {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Batch => "batch",
            Self::BatchOutput => "batch_output",
        }
    }
}

impl StoredFile {
    pub(crate) fn is_expired(&self, now: u64) -> bool {
        self.expires_at.is_some_and(|end| end <= now)
    }

    pub(crate) fn object(&self) -> FileObject<'_> {
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
    pub(crate) fn object(&self) -> BatchObject<'_> {
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
    pub(crate) fn needs(&self, file: &str) -> bool {
        !self.status.is_over()
            && [&self.input_file_id, &self.answers_id, &self.errors_id].iter().any(|id| *id == file)
    }

    /// Goes on to another status at this time.
    pub(crate) fn enter(&mut self, status: BatchStatus, now: u64) {
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
    pub(crate) fn is_over(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled | Self::Expired)
    }

    /// Whether requests are still to be answered.
    pub(crate) fn is_open(self) -> bool {
        matches!(self, Self::Validating | Self::InProgress)
    }
}
