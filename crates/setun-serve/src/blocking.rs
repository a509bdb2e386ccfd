//! Work that takes some time, such as tokenizing and compiling.

use tokio::task::spawn_blocking;

use crate::error::ApiError;

/// Runs what takes some time beside those who serve connections.
pub(crate) async fn beside<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    spawn_blocking(work).await.map_err(|_| ApiError::internal("the work failed"))?
}
