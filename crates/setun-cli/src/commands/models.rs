//! `setun models`: the store of this machine.

mod list;
mod pull;
mod verify;

use std::path::PathBuf;

use clap::Subcommand;
use serde::Serialize;
use setun::hub::{ModelStore, PullOptions, StoreSettings};

use crate::{
    error::CliError,
    output::{Output, table, tell},
};

/// Pull, list and remove models
///
/// A NAME is `owner/name` of the hub, with `@revision` and `:file` where one is meant; an address
/// of a file or a folder; or an alias. Models are in `SETUN_HOME`, or else in the system's folder
/// for data. `HF_ENDPOINT`, `HF_TOKEN` and `HF_HUB_OFFLINE` are respected.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    List(list::Args),
    Pull(pull::Args),
    Path(PathArgs),
    Rm(RemoveArgs),
    Verify(verify::Args),
    Alias(AliasArgs),
}

/// Print what to open for a name
#[derive(Debug, clap::Args)]
struct PathArgs {
    /// The model
    name: String,

    /// Print a JSON object instead
    #[arg(long)]
    json: bool,
}

/// Remove a model: all its revisions, or the one that is named
#[derive(Debug, clap::Args)]
struct RemoveArgs {
    /// The model
    name: String,

    /// Print a JSON object instead
    #[arg(long)]
    json: bool,
}

/// Let one word stand for a name; without arguments, list such words
#[derive(Debug, clap::Args)]
struct AliasArgs {
    /// The word
    #[arg(requires = "what")]
    alias: Option<String>,

    /// What it stands for
    #[arg(group = "what")]
    name: Option<String>,

    /// Take the word back
    #[arg(long, group = "what", requires = "alias")]
    remove: bool,

    /// Print a JSON object instead
    #[arg(long, conflicts_with = "alias")]
    json: bool,
}

/// The store that the environment names.
pub(crate) fn store() -> ModelStore {
    ModelStore::open(StoreSettings::from_env())
}

/// See [`Args`].
pub(crate) fn run(args: &Args) -> Result<(), CliError> {
    match &args.command {
        Command::List(args) => list::run(args),
        Command::Pull(args) => pull::run(args),
        Command::Path(args) => path(args),
        Command::Rm(args) => remove(args),
        Command::Verify(args) => verify::run(args),
        Command::Alias(args) => alias(args),
    }
}

fn path(args: &PathArgs) -> Result<(), CliError> {
    #[derive(Serialize)]
    struct Found<'a> {
        name: &'a str,
        path: PathBuf,
    }
    let path = store().resolve(&args.name)?;
    let mut output = Output::new();
    if args.json {
        return output.json(&Found { name: &args.name, path });
    }
    output.line(&path.display().to_string())
}

fn remove(args: &RemoveArgs) -> Result<(), CliError> {
    #[derive(Serialize)]
    struct Removed<'a> {
        name: &'a str,
        bytes: u64,
    }
    let bytes = store().remove(&args.name, &PullOptions::new())?;
    if args.json {
        return Output::new().json(&Removed { name: &args.name, bytes });
    }
    tell(&format!("removed {}: {}\n", args.name, size(bytes)));
    Ok(())
}

fn alias(args: &AliasArgs) -> Result<(), CliError> {
    let store = store();
    if let Some(alias) = &args.alias {
        return Ok(store.alias(alias, args.name.as_deref())?);
    }
    let aliases = store.aliases()?;
    let mut output = Output::new();
    if args.json {
        return output.json(&aliases);
    }
    if aliases.is_empty() {
        return Ok(());
    }
    let rows: Vec<_> = aliases.into_iter().map(|(alias, name)| vec![alias, name]).collect();
    output.line(&table(&rows))
}

/// Bytes in words: `1.18 GB`.
fn size(bytes: u64) -> String {
    const UNITS: [(&str, u64); 3] = [("GB", 1_000_000_000), ("MB", 1_000_000), ("kB", 1000)];
    let unit = UNITS.iter().find(|(_, unit)| bytes >= *unit);
    unit.map_or_else(
        || format!("{bytes} B"),
        |(name, unit)| format!("{}.{:02} {name}", bytes / unit, bytes % unit * 100 / unit),
    )
}

#[cfg(test)]
mod tests {
    use super::size;

    #[test]
    fn sizes_in_words() {
        assert_eq!(size(999), "999 B");
        assert_eq!(size(1_050), "1.05 kB");
        assert_eq!(size(1_187_654_321), "1.18 GB");
    }
}
