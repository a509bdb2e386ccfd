//! `setun convert`: the same model in another format.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

use clap::ValueEnum;
use setun::{
    ContainerOptions, Conversion, Converted, Format, TableType,
    checkpoint::{Dtype, write::Piece},
};

use crate::{
    args::FileArgs,
    error::CliError,
    output::{Progress, report},
    source::{ModelFiles, percent},
};

/// Convert a model to another format
///
/// Codes and scales are copied unchanged, so all formats give the same logits. One tensor at a time
/// is in memory.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Model to read: a file (.safetensors, .gguf, .onnx, .setun), a folder in Hugging Face's layout,
    /// or the name of a pulled model
    source: String,

    #[command(flatten)]
    file: FileArgs,

    /// Folder or file to write; a file ends in .setun or .gguf
    destination: PathBuf,

    /// Format to write
    #[arg(long, value_enum)]
    to: To,

    #[command(flatten)]
    container: ContainerArgs,
}

/// What a user chooses of a `.setun` file.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct ContainerArgs {
    /// Representation of the output head (setun)
    #[arg(long, value_enum, default_value_t = Table::Stored)]
    head: Table,

    /// Representation of the embedding, if the head has its own table (setun)
    #[arg(long, value_enum, default_value_t = Table::Stored)]
    embedding: Table,

    /// Compress with Zstandard (setun)
    #[arg(long)]
    zstd: bool,

    /// Largest file, in MB: the model is split into several files (setun)
    #[arg(long, value_name = "MB", value_parser = clap::value_parser!(u32).range(1..))]
    shard: Option<u32>,

    /// Licence of the weights, stored with them (setun)
    #[arg(long)]
    licence: Option<String>,
}

/// How a table is written.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum Table {
    /// In its own type
    #[default]
    Stored,
    /// In f16, if no value is changed by it
    F16,
    /// Rounded to int8 rows: the same as `--head int8` of a run
    Int8,
}

impl From<Table> for TableType {
    fn from(table: Table) -> Self {
        match table {
            Table::Stored => Self::Stored,
            Table::F16 => Self::F16,
            Table::Int8 => Self::Int8,
        }
    }
}

impl ContainerArgs {
    fn options(&self, source: &str) -> ContainerOptions {
        ContainerOptions {
            embedding: self.embedding.into(),
            head: self.head.into(),
            part_bytes: self.shard.map(|megabytes| u64::from(megabytes) * 1_000_000),
            zstd: self.zstd,
            licence: self.licence.clone(),
            source: Some(source.to_owned()),
            tool: Some(concat!("setun ", env!("CARGO_PKG_VERSION")).to_owned()),
            ..ContainerOptions::default()
        }
    }
}

/// The formats that are written.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum To {
    /// setun's own container, one .setun file or several
    Setun,
    /// A folder in Hugging Face's layout, packed
    Hf,
    /// A .gguf file with two bits a weight, as bitnet.cpp reads it
    #[value(name = "gguf-i2_s")]
    GgufI2S,
    /// A .gguf file with two bits a weight, as llama.cpp reads it
    #[value(name = "gguf-tq2_0")]
    GgufTq2_0,
    /// A .gguf file with five weights a byte, as llama.cpp reads it
    #[value(name = "gguf-tq1_0")]
    GgufTq1_0,
}

impl To {
    fn format(self, container: &ContainerArgs, source: &str) -> Format {
        match self {
            Self::Setun => Format::Setun(Box::new(container.options(source))),
            Self::Hf => Format::Hf,
            Self::GgufI2S => Format::Gguf(Dtype::I2S),
            Self::GgufTq2_0 => Format::Gguf(Dtype::Tq2_0),
            Self::GgufTq1_0 => Format::Gguf(Dtype::Tq1_0),
        }
    }

    /// Ending of the file's name, where the format has one file.
    fn extension(self) -> Option<&'static str> {
        match self {
            Self::Setun => Some("setun"),
            Self::Hf => None,
            Self::GgufI2S | Self::GgufTq2_0 | Self::GgufTq1_0 => Some("gguf"),
        }
    }

    /// Folder and name of the file to write; no name where the destination is a folder.
    fn place(self, destination: &Path) -> Result<(PathBuf, String), CliError> {
        let Some(extension) = self.extension() else {
            return Ok((destination.to_owned(), String::new()));
        };
        if destination.extension().is_none_or(|found| found != extension) {
            let found = destination.display();
            return Err(CliError::Usage(format!(
                "the file to write, `{found}`, must end in .{extension}"
            )));
        }
        let folder = destination.parent().unwrap_or(Path::new("")).to_owned();
        let name = destination.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok((folder, name))
    }
}

/// See [`Args`].
pub(crate) fn run(args: &Args) -> Result<(), CliError> {
    let source = ModelFiles::find(Some(&args.source), args.file.into())?;
    let converted = convert(source, &args.destination, args.to, &args.container)?;
    for warning in &converted.warnings {
        report(&format!("setun: {warning}\n"));
    }
    if let Some(first) = converted.unused.first() {
        let more = converted.unused.len() - 1;
        report(&format!(
            "setun: left out what the model does not use: `{first}`, and {more} more\n"
        ));
    }
    Ok(())
}

/// Converts a model; what was written is removed if that fails.
pub(crate) fn convert(
    mut source: ModelFiles,
    destination: &Path,
    to: To,
    container: &ContainerArgs,
) -> Result<Converted, CliError> {
    let (folder, file) = to.place(destination)?;
    let mut written = Written::new(folder);
    let format = to.format(container, source.name());
    let converted = write(&mut source, &mut written, format, &file);
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
    source: &mut ModelFiles,
    written: &mut Written,
    format: Format,
    file: &str,
) -> Result<Converted, CliError> {
    let name = source.name().to_owned();
    let mut conversion =
        Conversion::with_options(source.layout(), source.options(), name.clone(), format, file);
    let (mut bytes, mut read, mut progress) = (vec![], 0, Progress::new());
    while let Some(want) = conversion.next_read() {
        let found = source.read(&want, &mut bytes)?;
        conversion.give(found.then_some(&bytes), |piece| written.write(&piece))?;
        if let Some(total) = conversion.total_bytes() {
            read += bytes.len() as u64;
            progress.show(|| format!("converting {name}: {} %", percent(read, total)));
        }
    }
    conversion.finish(|piece| written.write(&piece))
}

/// The files of a conversion on their way. Each has its name once all are whole.
struct Written {
    folder: PathBuf,
    open: BTreeMap<String, File>,
}

/// Ending of a file that is not whole.
const PART: &str = ".part";

impl Written {
    fn new(folder: PathBuf) -> Self {
        Self { folder, open: BTreeMap::new() }
    }

    fn write(&mut self, piece: &Piece) -> Result<(), CliError> {
        let Piece { file: name, offset, bytes } = piece;
        let path = self.part(name);
        let failed = |source| CliError::Write { path: path.clone(), source };
        if !self.open.contains_key(name) {
            fs::create_dir_all(&self.folder).map_err(failed)?;
            self.open.insert(name.clone(), File::create(&path).map_err(failed)?);
        }
        if let Some(file) = self.open.get_mut(name) {
            file.seek(SeekFrom::Start(*offset)).map_err(failed)?;
            file.write_all(bytes).map_err(failed)?;
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

    /// Half a model is of no use; the first error is reported, not that of the removal.
    fn remove(&mut self) {
        for name in std::mem::take(&mut self.open).into_keys() {
            let _ = fs::remove_file(self.part(&name));
        }
    }

    fn part(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}{PART}"))
    }
}
