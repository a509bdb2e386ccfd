//! Renames of several files, which are undone where one of them fails.

use std::{
    fs,
    io::ErrorKind,
    path::{Path, PathBuf},
};

use super::write_error;
use crate::{error::CliError, interrupt};

/// Renames in the order in which they were made.
#[derive(Debug, Default)]
pub(super) struct Moves {
    done: Vec<(PathBuf, PathBuf)>,
    /// Files that others take the place of.
    old: Vec<PathBuf>,
}

impl Moves {
    /// Gives a file another name.
    pub(super) fn rename(&mut self, from: &Path, to: &Path) -> Result<(), CliError> {
        fs::rename(from, to).map_err(write_error(to))?;
        self.done.push((from.to_owned(), to.to_owned()));
        Ok(())
    }

    /// Gives a file that may not be there a name under which it can be found until the others have
    /// theirs.
    pub(super) fn set_aside(&mut self, path: &Path, aside: &Path) -> Result<(), CliError> {
        match fs::rename(path, aside) {
            Ok(()) => {
                self.done.push((path.to_owned(), aside.to_owned()));
                self.old.push(aside.to_owned());
                Ok(())
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            Err(error) => Err(write_error(path)(error)),
        }
    }

    /// Takes all renames back, the last one first. The first error is reported, not that of this.
    pub(super) fn undo(self) {
        for (from, to) in self.done.iter().rev() {
            let _ = fs::rename(to, from);
        }
    }

    /// Removes what was set aside.
    pub(super) fn remove_old(self) {
        self.old.iter().for_each(|path| interrupt::remove(path));
    }
}
