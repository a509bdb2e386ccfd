//! Names of files that are whole.

use std::{fs::File, io, path::Path};

use super::{Destination, moves::Moves, recovery::ASIDE, write_error};
use crate::{error::CliError, interrupt};

impl Destination {
    /// Gives all files their names, that of `key` last: without it the others are no model. Files
    /// of the names `replaced` that were not written are removed: they would become part of it.
    ///
    /// # Errors
    ///
    /// If the disk refuses it, or a file may not be replaced. Nothing of the parts is left then,
    /// and what was there before is there again.
    pub(crate) fn publish(mut self, key: &str, replaced: &[&str]) -> Result<(), CliError> {
        for (name, file) in &self.parts {
            file.sync_all().map_err(write_error(&self.folder.join(name)))?;
        }
        let mut names: Vec<String> = self.parts.keys().cloned().collect();
        names.sort_by_key(|name| name == key);
        // A signal waits until all have their names.
        let mut unfinished = interrupt::unfinished();
        for name in names.iter().map(String::as_str).chain(replaced.iter().copied()) {
            self.check(name)?;
        }
        let before = self.lock.note(&names)?;
        let mut moves = Moves::default();
        if let Err(error) = self.give_names(&names, replaced, &mut moves) {
            moves.undo();
            self.lock.restore(before);
            return Err(error);
        }
        let synced = self.sync();
        moves.remove_old();
        self.parts.clear();
        self.made = false;
        self.lock.finish();
        self.clean(&mut unfinished);
        synced
    }

    /// Several files do not take the place of others at once: those are set aside first.
    fn give_names(
        &self,
        names: &[String],
        replaced: &[&str],
        moves: &mut Moves,
    ) -> Result<(), CliError> {
        if names.len() > 1 {
            let written = names.iter().rev().map(String::as_str); // without the key no model is there
            let rest = replaced.iter().copied().filter(|name| !self.parts.contains_key(*name));
            for name in written.chain(rest) {
                moves.set_aside(
                    &self.folder.join(name),
                    &self.part_path(&format!("{name}{ASIDE}")),
                )?;
            }
        }
        for name in names {
            moves.rename(&self.part_path(name), &self.folder.join(name))?;
        }
        Ok(())
    }

    /// Has the names reach the disk, and that of a folder that was made.
    fn sync(&self) -> Result<(), CliError> {
        sync(&self.folder)?;
        match self.folder.parent() {
            Some(parent) if self.made && !parent.as_os_str().is_empty() => sync(parent),
            _ => Ok(()),
        }
    }

    /// Gives all files their names, that of the first last.
    ///
    /// # Errors
    ///
    /// As [`publish`](Self::publish).
    pub(crate) fn publish_first(self) -> Result<(), CliError> {
        let first = self.parts.keys().next().cloned().unwrap_or_default();
        self.publish(&first, &[])
    }
}

/// Renames are in the folder, which has to reach the disk by itself. Windows has no such call, some
/// file systems of networks have none either, and a folder may be one that is not to be read.
fn sync(folder: &Path) -> Result<(), CliError> {
    use io::ErrorKind::{InvalidInput, PermissionDenied, Unsupported};
    if !cfg!(unix) {
        return Ok(());
    }
    match File::open(folder).and_then(|folder| folder.sync_all()) {
        Err(error) if [InvalidInput, PermissionDenied, Unsupported].contains(&error.kind()) => {
            Ok(())
        }
        synced => synced.map_err(write_error(folder)),
    }
}
