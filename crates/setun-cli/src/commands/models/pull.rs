//! `setun models pull`: download of a model.

use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

use serde::Serialize;
use setun::hub::PullOptions;

use crate::{error::CliError, output::Output, pull_progress::PullProgress, source::store};

/// Largest chunk, in MB.
const MAX_CHUNK: i64 = 1000;

/// Download a model, or resume its download, and print its path
///
/// An interrupted download resumes when the command is run again. Files that are stored already are
/// compared by their sizes, with --verify by their hashes; what differs is downloaded again. Progress
/// is shown on a terminal.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Name of the model
    name: String,

    /// Number of connections
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=64))]
    connections: u16,

    /// Size of the chunks that are requested and verified, in MB
    #[arg(long, value_name = "MB", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=MAX_CHUNK))]
    chunk_size: u16,

    /// Least speed of a connection, in bytes a second over 30 s; a slower one is opened again
    #[arg(long, value_name = "N", default_value_t = 100)]
    min_speed: u64,

    /// Longest time for the pull, in seconds; what has arrived is kept [default: no limit]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..))]
    timeout: Option<u32>,

    /// Read the files that are stored already, and compare them with their hashes
    #[arg(long)]
    verify: bool,

    /// Print a JSON object
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
    let options = PullOptions {
        connections: args.connections.into(),
        chunk_bytes: u64::from(args.chunk_size) * 1_000_000,
        min_speed: args.min_speed,
        verify_stored: args.verify,
        deadline: args
            .timeout
            .and_then(|seconds| Instant::now().checked_add(Duration::from_secs(seconds.into()))),
        ..PullOptions::default()
    };
    let store = store();
    let progress = PullProgress::new();
    let pulled = store.pull(&args.name, &options, &|event| progress.show(event));
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
