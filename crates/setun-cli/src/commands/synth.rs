//! `setun synth`: a random model of a real shape, written to disk.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use clap::ArgGroup;
use setun::{
    ReadRequest,
    checkpoint::files::{CONFIG, IN_FOLDER, INDEX, WEIGHTS},
};

use crate::{
    args::number,
    commands::convert::{ContainerArgs, To, check_is_folder, convert},
    destination::Destination,
    error::CliError,
    output::Progress,
    source::ModelFiles,
    synth::{Change, Original, ROTATION, ShapeName, Synthetic},
};

/// Bytes that are made and written at once.
const PIECE: usize = 8 << 20;

/// Write a model with random weights and a real shape
///
/// The same arguments give the same bytes. With --shape it has no tokenizer: it is for `setun bench`,
/// `setun logits --ids` and benchmarks of other programs. With --like it stands in for a model, in
/// its size or smaller: `setun synth --like bitnet-2b-4t --set num_hidden_layers=2 --to hf FOLDER`.
#[derive(Debug, clap::Args)]
#[command(group = ArgGroup::new("model").required(true).args(["shape", "like"]))]
pub(crate) struct Args {
    /// Shape of the model
    #[arg(long, value_enum)]
    shape: Option<ShapeName>,

    /// Model whose configuration, tokenizer and chat template are written with random weights: a folder
    /// with config.json, or the name of a pulled model. Its own weights are not read
    #[arg(long, value_name = "MODEL")]
    like: Option<String>,

    /// Field of config.json to change, such as `num_hidden_layers=2`; can be repeated
    #[arg(long, value_name = "FIELD=VALUE", conflicts_with = "shape")]
    set: Vec<Change>,

    /// Seed of the random weights
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,

    /// Format to write
    #[arg(long, value_enum)]
    to: To,

    /// Overwrite files that are there already
    #[arg(long)]
    force: bool,

    #[command(flatten)]
    container: ContainerArgs,

    /// Share of the feed-forward gates that are closed for every token [default: half, at random]
    #[arg(long, value_name = "SHARE", value_parser = number(0.0, 1.0), conflicts_with = "like")]
    closed: Option<f32>,

    /// Folder or file to write; a file ends in .setun or .gguf
    out: PathBuf,
}

/// See [`Args`].
pub(crate) fn run(args: &Args) -> Result<(), CliError> {
    let Args { to, out, force, container, .. } = args;
    container.check(*to)?;
    let (model, read) = model(args)?;
    if matches!((to, model.is_mlx()), (To::Hf, false) | (To::Mlx, true)) {
        return write_folder(&model, read, out, *force);
    }
    convert(ModelFiles::synthetic(model), out, *to, *force, container).map(drop)
}

/// The random model, and the files that were read for it.
fn model(args: &Args) -> Result<(Synthetic, Vec<PathBuf>), CliError> {
    if let Some(shape) = args.shape {
        let closed = args.closed.map(f64::from);
        return Ok((Synthetic::new(&shape.shape(), args.seed, closed)?, vec![]));
    }
    let mut source = ModelFiles::without_weights(args.like.as_deref().unwrap_or_default())?;
    source.check_is_not(&args.out)?;
    let mut files = BTreeMap::new();
    // All but the index: the weights are one file.
    for file in IN_FOLDER.into_iter().filter(|&file| file != INDEX).chain([ROTATION]) {
        let want = ReadRequest { file: file.into(), range: None, required: false };
        let mut bytes = vec![];
        if source.read(&want, &mut bytes)? {
            files.insert(want.file, bytes);
        }
    }
    let original = Original::new(source.name().to_owned(), files, &args.set)?;
    Ok((Synthetic::like(original, args.seed)?, source.newly_read()))
}

/// Writes a checkpoint, with the memory of one piece.
fn write_folder(
    model: &Synthetic,
    read: Vec<PathBuf>,
    folder: &Path,
    force: bool,
) -> Result<(), CliError> {
    check_is_folder(folder)?;
    let mut written = Destination::folder(folder, force)?;
    written.protect(read);
    for (name, bytes) in model.files() {
        written.write(name, 0, bytes)?;
    }
    let (end, mut piece) = (model.weight_file_bytes(), vec![]);
    let mut progress = Progress::new();
    for start in (0..end).step_by(PIECE) {
        progress.show(|| format!("writing {}: {} %", folder.display(), 100 * start / end));
        piece.clear();
        model.read_weights(start..end.min(start + PIECE as u64), &mut piece);
        written.write(WEIGHTS, start, &piece)?;
    }
    written.publish(CONFIG, &IN_FOLDER)
}
