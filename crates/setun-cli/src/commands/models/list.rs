//! `setun models list`: stored models and unfinished pulls.

use std::{
    collections::BTreeMap,
    io::{self, IsTerminal},
    path::PathBuf,
};

use serde::Serialize;
use setun::hub::{DamagedModel, DiscoveredModel, DiskUsage, StoredModel, discover};

use crate::{
    error::CliError,
    output::{Output, report, size, table},
    source::store,
};

/// Digits of a commit that are shown.
const SHORT: usize = 12;

/// List stored models
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// List models in a folder in place of the store
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,

    /// List models in the cache of Hugging Face's tools
    #[arg(long, conflicts_with = "folder")]
    hub_cache: bool,

    /// List unfinished pulls and their size on disk
    #[arg(long, conflicts_with_all = ["folder", "hub_cache"])]
    unfinished: bool,

    /// Print a JSON array
    #[arg(long)]
    json: bool,
}

/// A model of the store, as JSON shows it.
#[derive(Serialize)]
struct Listed {
    name: String,
    revision: String,
    path: PathBuf,
    source: String,
    licence: Option<String>,
    pulled: String,
    bytes: u64,
    files: Vec<String>,
    aliases: Vec<String>,
}

/// See [`Args`].
pub(super) fn run(args: &Args) -> Result<(), CliError> {
    let store = store();
    let mut output = Output::new();
    if let Some(folder) = &args.folder {
        return found(&discover(folder), args.json, &mut output);
    }
    if args.hub_cache {
        return found(&store.discover_hub_cache(), args.json, &mut output);
    }
    if args.unfinished {
        let uses = store.disk_usage()?.into_iter().filter(|used| !used.complete).collect();
        return unfinished(uses, args.json, &mut output);
    }
    let aliases = store.aliases().unwrap_or_default(); // the survey has the reason
    let survey = store.survey()?;
    let models = survey.models.into_iter();
    let listed: Vec<_> = models.map(|model| listed(model, &aliases)).collect();
    if args.json {
        output.json(&listed)?;
    } else {
        print(&listed, &mut output)?;
    }
    for (alias, target) in store.dangling_aliases().unwrap_or_default() {
        report(&format!("the alias `{alias}` stands for `{target}`, which is not in the store\n"));
    }
    let what: Vec<_> = survey.damaged.iter().map(damage).collect();
    if what.is_empty() { Ok(()) } else { Err(CliError::Damaged { what }) }
}

fn print(listed: &[Listed], output: &mut Output) -> Result<(), CliError> {
    let rows = listed.iter().map(|model| {
        let revision = model.revision.chars().take(SHORT).collect();
        let aliases = model.aliases.join(", ");
        vec![model.name.clone(), revision, size(model.bytes), model.pulled.clone(), aliases]
    });
    show(rows.collect(), &["model", "revision", "size", "pulled", "aliases"], output)
}

/// What is damaged, and how.
pub(super) fn damage(damaged: &DamagedModel) -> String {
    let DamagedModel { model, path, reason, .. } = damaged;
    let name = model.clone().unwrap_or_else(|| path.display().to_string());
    format!("{name} ({reason})")
}

fn listed(model: StoredModel, aliases: &BTreeMap<String, String>) -> Listed {
    let short = format!("{}/{}", model.id.owner, model.id.name);
    let names = [model.id.to_string(), short, model.manifest.source.clone()];
    let own = aliases.iter().filter(|(_, target)| names.contains(target));
    let aliases = own.map(|(alias, _)| alias.clone()).collect();
    let bytes = model.manifest.bytes();
    let path = model.path(None).unwrap_or_else(|_| model.folder.clone());
    let manifest = model.manifest;
    Listed {
        name: model.id.to_string(),
        revision: manifest.revision,
        path,
        source: manifest.source,
        licence: manifest.licence,
        pulled: manifest.pulled,
        bytes,
        files: manifest.files.into_iter().map(|file| file.name).collect(),
        aliases,
    }
}

fn found(models: &[DiscoveredModel], json: bool, output: &mut Output) -> Result<(), CliError> {
    if json {
        return output.json(&models);
    }
    let row = |model: &DiscoveredModel| {
        vec![model.name.clone(), size(model.bytes), model.path.display().to_string()]
    };
    show(models.iter().map(row).collect(), &["model", "size", "path"], output)
}

fn unfinished(uses: Vec<DiskUsage>, json: bool, output: &mut Output) -> Result<(), CliError> {
    if json {
        return output.json(&uses);
    }
    let row = |used: DiskUsage| {
        vec![used.model, used.revision.chars().take(SHORT).collect(), size(used.bytes)]
    };
    show(uses.into_iter().map(row).collect(), &["model", "revision", "size"], output)
}

fn show(rows: Vec<Vec<String>>, heads: &[&str], output: &mut Output) -> Result<(), CliError> {
    if rows.is_empty() {
        if io::stderr().is_terminal() {
            report("no models; `setun models pull NAME` downloads one\n");
        }
        return Ok(());
    }
    let mut all = vec![heads.iter().map(ToString::to_string).collect()];
    all.extend(rows);
    output.line(&table(&all))
}
