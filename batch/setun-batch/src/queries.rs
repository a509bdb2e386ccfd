//! The threads and the errors of queries.

use datafusion::error::DataFusionError;
use setun::ErrorCode;
use setun_cli::CliError;
use tokio::runtime::{Builder, Runtime};

/// The error of a query.
pub(crate) fn failed(error: impl Into<DataFusionError>) -> CliError {
    let error = error.into();
    let code = match error.find_root() {
        DataFusionError::IoError(_) | DataFusionError::External(_) => ErrorCode::Io,
        DataFusionError::ObjectStore(_) => ErrorCode::NotFound,
        DataFusionError::ResourcesExhausted(_) => ErrorCode::OutOfMemory,
        _ => ErrorCode::BadOption,
    };
    let reason = match error.find_root() {
        DataFusionError::Execution(reason) => reason.clone(),
        DataFusionError::IoError(error) => error.to_string(),
        _ => error.strip_backtrace(),
    };
    CliError::Query { code, reason }
}

/// The threads of queries; those of the engine compute.
pub(crate) fn runtime() -> Result<Runtime, CliError> {
    let built = Builder::new_multi_thread().enable_all().build();
    built.map_err(|source| CliError::Query {
        code: ErrorCode::OutOfMemory,
        reason: format!("the threads of queries cannot be started: {source}"),
    })
}
