//! `setun models`: the local model store.

mod list;
mod pull;
mod search;
mod verify;

use std::path::PathBuf;

use clap::Subcommand;
use serde::Serialize;
use setun::hub::{PullEvent, PullOptions};

use crate::{
    error::CliError,
    output::{Output, report, size, table},
    source::store,
};

/// Pull, list and remove models
///
/// A NAME is a short name that `search` lists; a hub repository `owner/name` or `hf:owner/name`, with
/// optional `@revision` and `:file`; the URL of a file or folder; or an alias. Models are stored in
/// `SETUN_HOME`, by default in the system's data folder.
/// `HF_ENDPOINT`, `HF_TOKEN` and `HF_HUB_OFFLINE` are respected.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Search(search::Args),
    List(list::Args),
    Pull(pull::Args),
    Path(PathArgs),
    Rm(RemoveArgs),
    Verify(verify::Args),
    Alias(AliasArgs),
}

/// Print the path of a model
#[derive(Debug, clap::Args)]
struct PathArgs {
    /// Name of the model
    name: String,

    /// Print a JSON object
    #[arg(long)]
    json: bool,
}

/// Remove a model: all revisions, or the named one
#[derive(Debug, clap::Args)]
struct RemoveArgs {
    /// Name of the model
    name: String,

    /// Print a JSON object
    #[arg(long)]
    json: bool,
}

/// Set or remove an alias of a name; without arguments, list the aliases
#[derive(Debug, clap::Args)]
struct AliasArgs {
    /// Alias: one word
    #[arg(requires = "what")]
    alias: Option<String>,

    /// Name that it stands for
    #[arg(group = "what")]
    name: Option<String>,

    /// Remove the alias
    #[arg(long, group = "what", requires = "alias")]
    remove: bool,

    /// Print a JSON object
    #[arg(long, conflicts_with = "alias")]
    json: bool,
}

/// See [`Args`].
pub(crate) fn run(args: &Args) -> Result<(), CliError> {
    match &args.command {
        Command::Search(args) => search::run(args),
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
    let store = store();
    let dangling = store.dangling_aliases().unwrap_or_default();
    let bytes = store.remove(&args.name, &PullOptions::default(), &|event| {
        if let PullEvent::WaitingForLock { .. } = event {
            report("another process pulls or removes this model: waiting\n");
        }
    })?;
    for (alias, target) in store.dangling_aliases().unwrap_or_default() {
        if !dangling.iter().any(|(known, _)| *known == alias) {
            report(&format!("the alias `{alias}` stands for nothing now: {target} was removed\n"));
        }
    }
    if args.json {
        return Output::new().json(&Removed { name: &args.name, bytes });
    }
    report(&format!("removed {}: {}\n", args.name, size(bytes)));
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
