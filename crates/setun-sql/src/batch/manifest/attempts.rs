//! Folders of chunks that run on a cluster: the files that executors read.

use std::time::{SystemTime, UNIX_EPOCH};

use datafusion::datasource::listing::ListingTableUrl;
use futures::{StreamExt, TryStreamExt};
use tracing::debug;
use url::Url;

use super::Manifest;
use crate::error::Error;

/// Where they are. Readers of the results do not see them.
const ATTEMPTS: &str = "_manifest/attempts";

impl Manifest {
    /// The folder of an attempt, which no other has.
    pub(crate) fn attempt(chunk: &str) -> String {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let process = std::process::id();
        format!("{ATTEMPTS}/{chunk}-{process:x}-{:x}", now.as_nanos())
    }

    /// The address of a folder.
    pub(crate) fn address(&self, folder: &str) -> Result<ListingTableUrl, Error> {
        let mut address = AsRef::<Url>::as_ref(&self.url.object_store()).clone();
        if let Ok(mut segments) = address.path_segments_mut() {
            let parts = self.path(folder);
            let parts = parts.parts().map(|part| part.as_ref().to_owned());
            segments.clear().extend(parts).push("");
        }
        Ok(ListingTableUrl::try_new(address, None)?)
    }

    pub(crate) async fn put_shard(
        &self,
        folder: &str,
        number: usize,
        bytes: Vec<u8>,
    ) -> Result<(), Error> {
        self.create(&format!("{folder}/{number:05}.parquet"), bytes.into()).await.map(drop)
    }

    /// Removes what attempts have left, when no chunk is missing.
    pub(crate) async fn remove_attempts(&self) {
        self.remove_attempt(ATTEMPTS).await;
    }

    /// Removes what an attempt has put. What cannot be removed does no harm.
    pub(crate) async fn remove_attempt(&self, folder: &str) {
        let found = self.store.list(Some(&self.path(folder)));
        let removed = found.map_ok(|file| file.location).boxed();
        let removed: Result<Vec<_>, _> = self.store.delete_stream(removed).try_collect().await;
        if let Err(error) = removed {
            debug!(folder, %error, "an attempt's files stay");
        }
    }
}
