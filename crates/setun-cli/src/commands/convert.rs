//! `setun convert`: the same model in another format.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use setun::{
    ContainerOptions, Conversion, Converted, Format, HeadType, TableType,
    checkpoint::{
        Dtype,
        files::{CONFIG, IN_FOLDER},
    },
};

use crate::{
    args::FileArgs,
    destination::Destination,
    error::CliError,
    output::{Progress, report},
    source::{ModelFiles, percent},
};

/// Convert a model to another format
///
/// Codes and scales are copied unchanged, so all formats give the same logits. One tensor at a time
/// is in memory, or with --weight-image the whole model.
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

    /// Overwrite files that are there already
    #[arg(long)]
    force: bool,

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

    /// Add the weights as a processor keeps them, to be mapped by `--weight-image` (setun)
    #[arg(long, conflicts_with = "shard")]
    weight_image: bool,

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
    /// Rounded to int8 rows: the same as --head int8 of a run
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
    /// Refuses what another format than `.setun` does not have.
    pub(crate) fn check(&self, to: To) -> Result<(), CliError> {
        let given = [
            ("--head", !matches!(self.head, Table::Stored)),
            ("--embedding", !matches!(self.embedding, Table::Stored)),
            ("--zstd", self.zstd),
            ("--shard", self.shard.is_some()),
            ("--weight-image", self.weight_image),
            ("--licence", self.licence.is_some()),
        ];
        match given.into_iter().find(|&(_, is_given)| is_given && !matches!(to, To::Setun)) {
            Some((flag, _)) => Err(CliError::Usage(format!("{flag} is for --to setun alone"))),
            None => Ok(()),
        }
    }

    fn options(&self, source: &str) -> ContainerOptions {
        ContainerOptions {
            embedding: self.embedding.into(),
            head: self.head.into(),
            part_bytes: self.shard.map(|megabytes| u64::from(megabytes) * 1_000_000),
            zstd: self.zstd,
            image: self.weight_image,
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
    /// A folder in MLX's layout: setun synth alone writes it, of models that are stored so
    Mlx,
    /// A .gguf file with two bits a weight, as bitnet.cpp reads it
    #[value(name = "gguf-i2_s")]
    GgufI2S,
    /// A .gguf file with two bits a weight; the architecture has the name that bitnet.cpp knows
    #[value(name = "gguf-tq2_0")]
    GgufTq2_0,
    /// A .gguf file with five weights a byte; the same name
    #[value(name = "gguf-tq1_0")]
    GgufTq1_0,
    /// A .gguf file with two bits a weight and a scale for 64, as llama.cpp reads it
    #[value(name = "gguf-q2_0")]
    GgufQ2_0,
    /// The same with a scale for 128, as files of before llama.cpp knew the type have it
    #[value(name = "gguf-q2_0_g128")]
    GgufQ2_0Wide,
    /// The same under the number that Ternary Bonsai's files have now
    #[value(name = "gguf-pq2_0")]
    GgufPq2_0,
    /// A .gguf file with five weights a byte and a scale for 128, as files of Ternary Bonsai have it
    #[value(name = "gguf-ptq1_0")]
    GgufPtq1_0,
}

impl To {
    fn format(self, container: &ContainerArgs, source: &str) -> Result<Format, CliError> {
        Ok(match self {
            Self::Setun => Format::Setun(Box::new(container.options(source))),
            Self::Hf => Format::Hf,
            Self::Mlx => {
                let reason = "--to mlx: only `setun synth` writes it, of the bonsai shapes and \
                              models in MLX's layout";
                return Err(CliError::Usage(reason.to_owned()));
            }
            Self::GgufI2S => Format::Gguf(Dtype::I2S),
            Self::GgufTq2_0 => Format::Gguf(Dtype::Tq2_0),
            Self::GgufTq1_0 => Format::Gguf(Dtype::Tq1_0),
            Self::GgufQ2_0 => Format::Gguf(Dtype::Q2_0),
            Self::GgufQ2_0Wide => Format::Gguf(Dtype::Q2_0Wide),
            Self::GgufPq2_0 => Format::Gguf(Dtype::Pq2_0),
            Self::GgufPtq1_0 => Format::Gguf(Dtype::Ptq1_0),
        })
    }

    /// Ending of the file's name, where the format has one file.
    fn extension(self) -> Option<&'static str> {
        match self {
            Self::Setun => Some("setun"),
            Self::Hf | Self::Mlx => None,
            _ => Some("gguf"),
        }
    }

    /// What is to be written, and the name of the file; none where it is a folder.
    fn open(self, destination: &Path, force: bool) -> Result<(Destination, String), CliError> {
        let Some(extension) = self.extension() else {
            check_is_folder(destination)?;
            return Ok((Destination::folder(destination, force)?, String::new()));
        };
        if destination.extension().is_none_or(|found| found != extension) {
            let found = destination.display();
            return Err(CliError::Usage(format!(
                "the file to write, `{found}`, must end in .{extension}"
            )));
        }
        Destination::file(destination, force)
    }
}

/// Refuses the name of a file where a folder is written.
pub(crate) fn check_is_folder(destination: &Path) -> Result<(), CliError> {
    let extension = destination.extension().unwrap_or_default().to_string_lossy().to_lowercase();
    let other = match extension.as_str() {
        "gguf" => "; for a .gguf file choose one of --to gguf-i2_s, gguf-tq2_0, gguf-q2_0 …",
        "setun" => "; for a .setun file: --to setun",
        "safetensors" | "onnx" | "bin" => "",
        _ => return Ok(()),
    };
    let found = destination.display();
    Err(CliError::Usage(format!(
        "--to hf and mlx write a folder, found the file name `{found}`{other}"
    )))
}

/// See [`Args`].
pub(crate) fn run(args: &Args) -> Result<(), CliError> {
    let Args { destination, to, force, container, .. } = args;
    let source = ModelFiles::find(Some(&args.source), args.file.into())?;
    let converted = convert(source, destination, *to, *force, container)?;
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

/// Converts a model. The destination is another place than the source, and nothing is left there if
/// the conversion fails.
pub(crate) fn convert(
    mut source: ModelFiles,
    destination: &Path,
    to: To,
    force: bool,
    container: &ContainerArgs,
) -> Result<Converted, CliError> {
    container.check(to)?;
    let format = to.format(container, source.name())?;
    source.check_is_not(destination)?;
    let (mut written, file) = to.open(destination, force)?;
    if !file.is_empty() && container.shard.is_none() {
        written.check(&file)?; // before the work of reading
    }
    let converted = write(&mut source, &mut written, format, &file)?;
    if container.weight_image {
        setun::add_weight_image(written.part_path(&file), HeadType::Auto)?;
    }
    match to {
        To::Hf => written.publish(CONFIG, &IN_FOLDER)?,
        // Of several parts the first names the others.
        _ => written.publish_first()?,
    }
    Ok(converted)
}

fn write(
    source: &mut ModelFiles,
    written: &mut Destination,
    format: Format,
    file: &str,
) -> Result<Converted, CliError> {
    let name = source.name().to_owned();
    let mut conversion =
        Conversion::with_options(source.layout(), source.options(), name.clone(), format, file);
    let (mut bytes, mut read, mut progress) = (vec![], 0, Progress::new());
    while let Some(want) = conversion.next_read() {
        let found = source.read(&want, &mut bytes)?;
        written.protect(source.newly_read());
        conversion.give(found.then_some(&bytes), |piece| {
            written.write(&piece.file, piece.offset, &piece.bytes)
        })?;
        if let Some(total) = conversion.total_bytes() {
            if read == 0 {
                conversion.check_sizes(|file| source.file_bytes(file))?;
            }
            read += bytes.len() as u64;
            progress.show(|| format!("converting {name}: {} %", percent(read, total)));
        }
    }
    conversion.finish(|piece| written.write(&piece.file, piece.offset, &piece.bytes))
}
