//! Recovery from a process that was killed while it gave names to its files.

use std::{
    ffi::OsStr,
    fs, io,
    path::{Component, Path},
};

use super::{
    note::{Note, ending},
    write_error,
};
use crate::error::CliError;

/// End of the names of files that were set aside, before that of a part.
pub(super) const ASIDE: &str = ".old";

/// Ends what a killed process had begun, and removes its parts. Returns the names that it has
/// given to files which are no model, because the last of them is not there; and that one.
///
/// Its files were on the disk before it noted their names. Where it had set old files aside and
/// given no name, those get theirs back; where it had given one, the new files get theirs. The
/// most important name comes last in both, and each step can be the last one of a process: the
/// next goes on from there.
pub(super) fn recover(folder: &Path, note: &Note) -> Result<Vec<String>, CliError> {
    let Note { id, names } = note;
    if id.is_empty() {
        return Ok(vec![]);
    }
    let part = |name: &String| folder.join(format!("{name}{}", ending(id)));
    let waiting: Vec<_> = names.iter().filter(|name| part(name).exists()).collect();
    let is_absent = |key: &String| !folder.join(key).exists();
    if let Some(key) = names.last().filter(|key| is_absent(key)) {
        let aside = with_ending(folder, &format!("{ASIDE}{}", ending(id)));
        if waiting.len() == names.len() {
            take_back(folder, id, &aside, key)?;
        } else if waiting.last() == Some(&key) && !aside.is_empty() {
            for name in &waiting {
                rename(&part(name), &folder.join(name))?;
            }
        }
    }
    let absent = names.last().filter(|key| is_absent(key));
    let is_given = |name: &&String| !waiting.contains(name) || Some(*name) == absent;
    let given = names.iter().filter(|_| absent.is_some()).filter(is_given).cloned().collect();
    for name in with_ending(folder, &ending(id)) {
        let path = folder.join(name + &ending(id));
        fs::remove_file(&path).map_err(write_error(&path))?;
    }
    Ok(given)
}

/// Whether a note, which may be anybody's, names files of its folder alone.
pub(super) fn is_plain(Note { id, names }: &Note) -> bool {
    let is_plain =
        |name: &str| Path::new(name).components().eq([Component::Normal(OsStr::new(name))]);
    is_plain(&ending(id)) && names.iter().all(|name| is_plain(name))
}

/// Gives files that were set aside their names.
fn take_back(folder: &Path, id: &str, aside: &[String], key: &String) -> Result<(), CliError> {
    let others = aside.iter().filter(|name| *name != key);
    for name in others.chain(aside.iter().filter(|name| *name == key)) {
        let from = folder.join(format!("{name}{ASIDE}{}", ending(id)));
        if !folder.join(name).exists() {
            rename(&from, &folder.join(name))?;
        }
    }
    Ok(())
}

fn rename(from: &Path, to: &Path) -> Result<(), CliError> {
    fs::rename(from, to).map_err(write_error(to))
}

/// The files of a folder whose names have this end, without it.
fn with_ending(folder: &Path, ending: &str) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let name = |entry: io::Result<fs::DirEntry>| entry.ok()?.file_name().into_string().ok();
    let without = |name: String| name.strip_suffix(ending).map(str::to_owned);
    entries.filter_map(name).filter_map(without).collect()
}
