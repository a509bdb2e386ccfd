//! `setun models pull`.

mod progress;

use std::path::PathBuf;

use serde::Serialize;
use setun::hub::PullOptions;

use super::store;
use crate::{error::CliError, output::Output};
use progress::PullProgress;

/// Most bytes of a chunk, in MiB.
const MAX_CHUNK: i64 = 1024;

/// Pull a model, or what is missing of it, and print what to open
///
/// It can be ended at any time, and goes on with what is missing when it is run again. Progress
/// is shown on a terminal.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The model
    name: String,

    /// Connections at once
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=64))]
    connections: u16,

    /// Size of the pieces that are asked for and checked, in MiB
    #[arg(long, value_name = "MIB", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=MAX_CHUNK))]
    chunk: u16,

    /// Print a JSON object instead
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Pulled {
    name: String,
    revision: String,
    path: PathBuf,
    bytes: u64,
}

/// See [`Args`].
pub(super) fn run(args: &Args) -> Result<(), CliError> {
    let options = PullOptions::new()
        .connections(usize::from(args.connections))
        .chunk_bytes(u64::from(args.chunk) << 20);
    let store = store();
    let progress = PullProgress::new();
    let pulled = store.pull(&args.name, &options, &|event| progress.hear(event));
    progress.end();
    let model = pulled?;
    let path = store.resolve(&args.name).or_else(|_| model.path(None))?;
    let mut output = Output::new();
    if args.json {
        let (revision, bytes) = (model.manifest.revision.clone(), model.manifest.bytes());
        return output.json(&Pulled { name: model.id.to_string(), revision, path, bytes });
    }
    output.line(&path.display().to_string())
}
