//! Stamps of build steps: a digest of each output's inputs, so that nothing is made twice.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::shell::target;

/// A digest of everything that an output depends on.
#[derive(Default)]
pub(crate) struct Inputs {
    hasher: DefaultHasher,
}

impl Inputs {
    /// Adds a word: an option, a version.
    pub(crate) fn word(mut self, word: impl Hash) -> Self {
        word.hash(&mut self.hasher);
        self
    }

    /// Adds the contents of files.
    pub(crate) fn files(mut self, files: impl IntoIterator<Item = PathBuf>) -> Result<Self> {
        for file in files {
            let bytes =
                fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?;
            file.hash(&mut self.hasher);
            bytes.hash(&mut self.hasher);
        }
        Ok(self)
    }

    fn digest(&self) -> String {
        format!("{:016x}", self.hasher.finish())
    }
}

/// Makes `outputs` by `make`, unless they are there and were made from the same inputs before.
/// Returns true if they were made now.
pub(crate) fn if_changed(
    name: &str,
    outputs: &[&Path],
    inputs: &Inputs,
    make: impl FnOnce() -> Result<()>,
) -> Result<bool> {
    let stamp = target().join("xtask").join("stamps").join(name);
    stamp.parent().map_or(Ok(()), fs::create_dir_all)?;
    // Stages that run beside each other may want the same: the second finds it made.
    let lock = File::create(stamp.with_added_extension("lock"))?;
    lock.lock().with_context(|| format!("cannot wait for {name}"))?;
    let digest = inputs.digest();
    if outputs.iter().all(|output| output.exists())
        && fs::read_to_string(&stamp).is_ok_and(|found| found == digest)
    {
        return Ok(false);
    }
    // A build that breaks off must not look fresh.
    if stamp.exists() {
        fs::remove_file(&stamp)?;
    }
    make()?;
    fs::write(&stamp, digest)?;
    Ok(true)
}
