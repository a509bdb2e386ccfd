//! Limits of a store, and what counts towards them.

use std::collections::HashMap;

use crate::error::ApiError;

/// Limits on files and batches.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct FileLimits {
    /// Bytes of one file. Default: 200 MiB.
    pub file_bytes: u64,
    /// Bytes of all files. Default: 10 GiB.
    pub total_bytes: u64,
    /// Number of all files. Default: 10,000.
    pub files: usize,
    /// Requests of a batch. Default: 50,000.
    pub batch_requests: usize,
    /// Requests of batches of a key that are answered at once. Default: 8.
    pub batch_concurrency: usize,
}

impl Default for FileLimits {
    fn default() -> Self {
        Self {
            file_bytes: 200 << 20,
            total_bytes: 10 << 30,
            files: 10_000,
            batch_requests: 50_000,
            batch_concurrency: 8,
        }
    }
}

/// What the files of each owner take.
#[derive(Debug, Default)]
pub(crate) struct Usage(HashMap<String, Used>);

#[derive(Clone, Copy, Debug, Default)]
struct Used {
    bytes: u64,
    files: usize,
}

impl Usage {
    /// Counts bytes of an owner, which has three quarters of all where there are several owners.
    pub(crate) fn take_bytes(
        &mut self,
        owner: &str,
        bytes: u64,
        limits: &FileLimits,
        is_shared: bool,
    ) -> Result<(), ApiError> {
        let most = limits.total_bytes;
        let of_one = if is_shared { most - most / 4 } else { most };
        let all: u64 = self.0.values().map(|used| used.bytes).sum();
        let own = self.0.entry(owner.to_owned()).or_default();
        if all.saturating_add(bytes) > most || own.bytes.saturating_add(bytes) > of_one {
            let message = format!(
                "the files of the server may take {most} bytes, and there is no room for more"
            );
            return Err(ApiError::storage_full(message));
        }
        own.bytes += bytes;
        Ok(())
    }

    /// Counts a file in the same way.
    pub(crate) fn take_file(
        &mut self,
        owner: &str,
        limits: &FileLimits,
        is_shared: bool,
    ) -> Result<(), ApiError> {
        let most = limits.files;
        let of_one = if is_shared { (most - most / 4).max(1) } else { most };
        let all: usize = self.0.values().map(|used| used.files).sum();
        let own = self.0.entry(owner.to_owned()).or_default();
        if all >= most || own.files >= of_one {
            let message = format!("the server keeps {most} files, and there is no room for more");
            return Err(ApiError::storage_full(message));
        }
        own.files += 1;
        Ok(())
    }

    /// Counts what is there, whatever the limits are.
    pub(crate) fn add(&mut self, owner: &str, bytes: u64, files: usize) {
        let own = self.0.entry(owner.to_owned()).or_default();
        own.bytes += bytes;
        own.files += files;
    }

    pub(crate) fn remove(&mut self, owner: &str, bytes: u64, files: usize) {
        if let Some(own) = self.0.get_mut(owner) {
            own.bytes = own.bytes.saturating_sub(bytes);
            own.files = own.files.saturating_sub(files);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_several_owners_leaves_room_for_others() {
        let limits = FileLimits { total_bytes: 100, files: 4, ..FileLimits::default() };
        let mut usage = Usage::default();
        assert!(usage.take_bytes("a", 75, &limits, true).is_ok());
        assert!(usage.take_bytes("a", 1, &limits, true).is_err());
        assert!(usage.take_bytes("a", 1, &limits, false).is_ok());
        assert!(usage.take_bytes("b", 24, &limits, true).is_ok());
        assert!(usage.take_bytes("b", 1, &limits, true).is_err(), "all are full");
        usage.remove("a", 50, 0);
        assert!(usage.take_bytes("b", 1, &limits, true).is_ok());
        assert!((0..3).all(|_| usage.take_file("a", &limits, true).is_ok()));
        assert!(usage.take_file("a", &limits, true).is_err());
        assert!(usage.take_file("b", &limits, true).is_ok());
        assert!(usage.take_file("b", &limits, true).is_err());
        assert!(usage.take_bytes("c", u64::MAX, &limits, true).is_err(), "no overflow");
    }
}
