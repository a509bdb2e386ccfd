//! Work that takes some time, such as tokenizing and compiling.

use tokio::task::spawn_blocking;
use tracing::Span;

use crate::error::ApiError;

/// Runs what takes some time beside those who serve connections, in the span of the request.
pub(crate) async fn beside<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    let span = Span::current();
    spawn_blocking(move || span.in_scope(work))
        .await
        .map_err(|_| ApiError::internal("the work failed"))?
}
