//! A folder for an input that has files.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
};

/// Linux's disk in memory.
const IN_MEMORY: &str = "/dev/shm";

/// A folder that is removed in the end.
pub struct Folder(PathBuf);

impl Folder {
    /// An empty folder, in memory where that is possible.
    ///
    /// # Panics
    ///
    /// If the system gives none.
    #[must_use]
    pub fn create() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let memory = Path::new(IN_MEMORY);
        let parent = if memory.is_dir() { memory.to_owned() } else { env::temp_dir() };
        let count = COUNT.fetch_add(1, Relaxed);
        let folder = parent.join(format!("setun-fuzz-{}-{count}", process::id()));
        fs::create_dir(&folder).expect("a folder for the input");
        Self(folder)
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Writes a file in it, or in folders in it.
    ///
    /// # Panics
    ///
    /// If the system refuses.
    pub fn write(&self, name: &str, contents: &[u8]) {
        let path = self.0.join(name);
        let folder = path.parent().expect("a file in a folder");
        fs::create_dir_all(folder).expect("a folder for the input");
        fs::write(path, contents).expect("a disk for the input");
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
