//! Files of a revision that are stored already, each sound or damaged.

use std::{fs, path::Path};

use crate::{
    atomic_files::remove_any,
    download::Paths,
    error::Error,
    file_check::{FileCheck, check_file},
    journal::{Journal, JournalHeader},
    manifest::{FileEntry, Manifest},
    options::PullOptions,
    pull_plan::PlannedFile,
};

/// What a manifest says of a folder, and what of it is true.
#[derive(Debug, Default)]
pub(crate) struct Stored {
    manifest: Option<Manifest>,
    /// Of each file of the manifest.
    checks: Vec<FileCheck>,
}

impl Stored {
    /// Reads the manifest and compares the files with it: their hashes, or their sizes alone.
    /// `look` hears of each file before.
    pub(crate) fn read(
        folder: &Path,
        options: &PullOptions,
        look: impl Fn(&FileEntry),
    ) -> Result<Self, Error> {
        let Some(manifest) = Manifest::read(folder)? else { return Ok(Self::default()) };
        let mut checks = vec![];
        for entry in &manifest.files {
            look(entry);
            let sizes_alone = FileEntry { sha256: None, chunks: vec![], ..entry.clone() };
            let entry = if options.verify_stored { entry } else { &sizes_alone };
            checks.push(check_file(folder, entry, options)?);
        }
        Ok(Self { manifest: Some(manifest), checks })
    }

    /// The manifest, if all that it lists is there and sound.
    pub(crate) fn complete(&self) -> Option<&Manifest> {
        let manifest = self.manifest.as_ref().filter(|manifest| manifest.complete);
        manifest.filter(|_| self.checks.iter().all(|check| check.good))
    }

    /// What is there and is not as it was pulled.
    pub(crate) fn damaged(&self) -> impl Iterator<Item = &FileCheck> {
        let complete = self.manifest.as_ref().is_some_and(|manifest| manifest.complete);
        self.checks.iter().filter(move |check| complete && !check.good)
    }

    /// Files that are sound.
    pub(crate) fn good(&self) -> Vec<FileEntry> {
        self.entries().filter(|(_, check)| check.good).map(|(entry, _)| entry.clone()).collect()
    }

    /// Whether a file that is wanted is there and sound.
    pub(crate) fn has(&self, wanted: &PlannedFile) -> bool {
        self.get(wanted).is_some()
    }

    /// A file that is wanted, if it is there and sound.
    pub(crate) fn get(&self, wanted: &PlannedFile) -> Option<&FileEntry> {
        self.find(wanted).filter(|(_, check)| check.good).map(|(entry, _)| entry)
    }

    /// Makes the good chunks of damaged files those of unfinished downloads, so that the others
    /// alone are requested. A damaged file that is not wanted is removed.
    pub(crate) fn keep_good_chunks(
        &self,
        wanted: &[PlannedFile],
        folder: &Path,
    ) -> Result<(), Error> {
        for check in self.damaged() {
            let paths = Paths::new(folder, &check.file);
            let file = wanted.iter().find(|wanted| wanted.name == check.file);
            match file.and_then(|wanted| Some((wanted, self.find(wanted)?.0))) {
                Some((wanted, entry)) if !check.chunks.is_empty() => {
                    begin_again(&paths, wanted, entry, &check.chunks)?;
                }
                Some(_) => {}
                None => remove_any(&paths.path)?,
            }
        }
        Ok(())
    }

    /// What is known of a file, if it is the one that is wanted.
    fn find(&self, wanted: &PlannedFile) -> Option<(&FileEntry, &FileCheck)> {
        self.entries().find(|(entry, _)| {
            let same = wanted.sha256.is_none() || wanted.sha256 == entry.sha256;
            entry.name == wanted.name && same
        })
    }

    fn entries(&self) -> impl Iterator<Item = (&FileEntry, &FileCheck)> {
        let entries = self.manifest.iter().flat_map(|manifest| &manifest.files);
        entries.zip(&self.checks)
    }
}

/// Makes a damaged file an unfinished download without the chunks that are bad.
fn begin_again(
    paths: &Paths,
    wanted: &PlannedFile,
    entry: &FileEntry,
    bad: &[u64],
) -> Result<(), Error> {
    let renamed = fs::rename(&paths.path, &paths.part);
    renamed.map_err(|error| Error::io("rename", &paths.path, 0, error))?;
    let FileEntry { bytes, chunk_bytes, etag, chunks, .. } = entry.clone();
    let header = JournalHeader::new(bytes, chunk_bytes, etag, wanted.sha256);
    let mut journal = Journal::begin(paths.journal.clone(), header)?;
    for (chunk, digest) in (0..).zip(chunks) {
        if !bad.contains(&chunk) {
            journal.add(chunk, digest)?;
        }
    }
    Ok(())
}
