//! `setun synth`: a random model of a real shape, written to disk.

use std::path::{Path, PathBuf};

use setun::checkpoint::files::{CONFIG, GENERATION_CONFIG, IN_FOLDER, WEIGHTS};

use crate::{
    args::number,
    commands::convert::{ContainerArgs, To, convert},
    destination::Destination,
    error::CliError,
    output::Progress,
    source::ModelFiles,
    synth::{ShapeName, Synthetic},
};

/// Bytes that are made and written at once.
const PIECE: usize = 8 << 20;

/// Write a model with random weights and a real shape
///
/// The same shape, seed and share give the same bytes. It has no tokenizer: it is for `setun bench`,
/// `setun logits --ids` and benchmarks of other programs.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Shape of the model
    #[arg(long, value_enum)]
    shape: ShapeName,

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
    #[arg(long, value_name = "SHARE", value_parser = number(0.0, 1.0))]
    closed: Option<f32>,

    /// Folder or file to write; a file ends in .setun or .gguf
    out: PathBuf,
}

/// See [`Args`].
pub(crate) fn run(args: &Args) -> Result<(), CliError> {
    args.container.check(args.to)?;
    let model = Synthetic::new(&args.shape.shape(), args.seed, args.closed.map(f64::from))?;
    if let To::Hf = args.to {
        return write_folder(&model, &args.out, args.force);
    }
    let source = ModelFiles::synthetic(model);
    convert(source, &args.out, args.to, args.force, &args.container).map(drop)
}

/// Writes a checkpoint, with the memory of one piece.
fn write_folder(model: &Synthetic, folder: &Path, force: bool) -> Result<(), CliError> {
    let mut written = Destination::folder(folder, force)?;
    for name in [CONFIG, GENERATION_CONFIG] {
        written.write(name, 0, model.file(name).unwrap_or_default())?;
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
