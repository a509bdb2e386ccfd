//! `setun convert`: the same model in another format.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

use clap::ValueEnum;
use setun::{Conversion, Converted, Format, checkpoint::write::Piece};

use crate::{
    error::CliError,
    output::{Progress, tell},
    source::{ModelSource, percent},
};

/// Write a model in another format
///
/// Every code and every scale stays what it is: all formats give the same logits. A tensor at a
/// time is in memory.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The model to read: a file, or a folder in Hugging Face's layout
    source: String,

    /// The folder to write
    destination: PathBuf,

    /// Format
    #[arg(long, value_enum)]
    to: To,
}

/// The formats that are written.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum To {
    /// A folder in Hugging Face's layout, packed
    Hf,
}

impl To {
    pub(crate) fn format(self) -> Format {
        match self {
            Self::Hf => Format::Hf,
        }
    }

    /// Folder and name of the file, where the format has one.
    fn place(self, destination: &Path) -> (PathBuf, Option<String>) {
        match self {
            Self::Hf => (destination.to_owned(), None),
        }
    }
}

/// See [`Args`].
pub(crate) fn run(args: &Args) -> Result<(), CliError> {
    let source = ModelSource::find(Some(&args.source))?;
    let converted = convert(source, &args.destination, args.to)?;
    for warning in &converted.warnings {
        tell(&format!("setun: {warning}\n"));
    }
    if let Some(first) = converted.unused.first() {
        let more = converted.unused.len() - 1;
        tell(&format!("setun: left out what the model does not use: `{first}`, and {more} more\n"));
    }
    Ok(())
}

/// Converts a model; what was written is removed if that fails.
pub(crate) fn convert(
    mut source: ModelSource,
    destination: &Path,
    to: To,
) -> Result<Converted, CliError> {
    let (folder, file) = to.place(destination);
    let mut written = Written::new(folder, file);
    let converted = write(&mut source, &mut written, to.format());
    match converted {
        Ok(converted) => {
            written.complete()?;
            Ok(converted)
        }
        Err(error) => {
            written.remove();
            Err(error)
        }
    }
}

fn write(
    source: &mut ModelSource,
    written: &mut Written,
    format: Format,
) -> Result<Converted, CliError> {
    let name = source.name().to_owned();
    let mut conversion = Conversion::new(source.source(), name.clone(), format);
    let (mut bytes, mut read, mut progress) = (vec![], 0, Progress::new());
    while let Some(want) = conversion.want() {
        let found = source.read(&want, &mut bytes)?;
        let pieces = conversion.give(found.then_some(&bytes))?;
        written.write(pieces)?;
        if let Some(total) = conversion.total_bytes() {
            read += bytes.len() as u64;
            progress.show(|| format!("converting {name}: {} %", percent(read, total)));
        }
    }
    let (pieces, converted) = conversion.finish()?;
    written.write(pieces)?;
    Ok(converted)
}

/// The files of a conversion on their way. Each has its name once all are whole.
struct Written {
    folder: PathBuf,
    lone: Option<String>, // the name of the one file, whatever the format calls it
    open: BTreeMap<String, File>,
}

/// Ending of a file that is not whole.
const PART: &str = ".part";

impl Written {
    fn new(folder: PathBuf, lone: Option<String>) -> Self {
        Self { folder, lone, open: BTreeMap::new() }
    }

    fn write(&mut self, pieces: Vec<Piece>) -> Result<(), CliError> {
        for Piece { file, offset, bytes } in pieces {
            let name = self.lone.clone().unwrap_or(file);
            let path = self.part(&name);
            let failed = |source| CliError::Write { path: path.clone(), source };
            if !self.open.contains_key(&name) {
                fs::create_dir_all(&self.folder).map_err(failed)?;
                self.open.insert(name.clone(), File::create(&path).map_err(failed)?);
            }
            if let Some(file) = self.open.get_mut(&name) {
                file.seek(SeekFrom::Start(offset)).map_err(failed)?;
                file.write_all(&bytes).map_err(failed)?;
            }
        }
        Ok(())
    }

    fn complete(&mut self) -> Result<(), CliError> {
        for (name, file) in std::mem::take(&mut self.open) {
            let path = self.folder.join(&name);
            let failed = |source| CliError::Write { path: path.clone(), source };
            file.sync_all().map_err(failed)?;
            fs::rename(self.part(&name), &path).map_err(failed)?;
        }
        Ok(())
    }

    /// Half a model helps nobody; that it cannot be removed is no news after the first error.
    fn remove(&mut self) {
        for name in std::mem::take(&mut self.open).into_keys() {
            let _ = fs::remove_file(self.part(&name));
        }
    }

    fn part(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}{PART}"))
    }
}
