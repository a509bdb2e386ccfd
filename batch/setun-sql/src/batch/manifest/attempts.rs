//! Folders of chunks that run on a cluster: the files that executors read.

use std::{
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::{SystemTime, UNIX_EPOCH},
};

use datafusion::datasource::listing::ListingTableUrl;
use futures::{StreamExt, TryStreamExt, stream::BoxStream};
use object_store::{Error as StoreError, ObjectStoreExt, path::Path};
use tracing::debug;
use url::Url;

use super::Manifest;
use crate::error::Error;

/// Where they are. Readers of the results do not see them.
const ATTEMPTS: &str = "_manifest/attempts";

impl Manifest {
    /// The folder of an attempt, which no other has.
    pub(crate) fn attempt(chunk: &str) -> String {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        format!("{ATTEMPTS}/{chunk}-{}-{count:x}", process_name())
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
        let name = format!("{folder}/{number:05}.parquet");
        let put = self.store.put(&self.path(&name), bytes.into()).await;
        put.map(drop).map_err(|error| self.failed(&name, &error))
    }

    /// Removes what the attempts of this process have put: executors that read none of it yet run none of it.
    pub(crate) async fn remove_own_attempts(&self) {
        let own = format!("-{}-", process_name());
        let folder = self.path(ATTEMPTS);
        let found = self.store.list(Some(&folder)).try_filter(move |file| {
            let is_own = file.location.as_ref().contains(&own);
            async move { is_own }
        });
        self.remove(found.map_ok(|file| file.location).boxed(), ATTEMPTS).await;
    }

    /// Removes what attempts have left, when no chunk is missing.
    pub(crate) async fn remove_attempts(&self) {
        self.remove_attempt(ATTEMPTS).await;
    }

    /// Removes what an attempt has put. What cannot be removed does no harm.
    pub(crate) async fn remove_attempt(&self, folder: &str) {
        let found = self.store.list(Some(&self.path(folder)));
        self.remove(found.map_ok(|file| file.location).boxed(), folder).await;
    }

    async fn remove(&self, files: BoxStream<'static, Result<Path, StoreError>>, folder: &str) {
        let removed: Result<Vec<_>, _> = self.store.delete_stream(files).try_collect().await;
        if let Err(error) = removed {
            debug!(folder, %error, "an attempt's files stay");
        }
    }
}

/// A name of this process that no other has, on whatever machine.
fn process_name() -> &'static str {
    static NAME: OnceLock<String> = OnceLock::new();
    NAME.get_or_init(|| {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        format!("{:x}x{:x}", std::process::id(), now.as_nanos())
    })
}
