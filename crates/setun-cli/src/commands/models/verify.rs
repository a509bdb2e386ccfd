//! `setun models verify`.

use serde::Serialize;
use setun::hub::{DamagedModel, FileCheck, PullOptions, StoredModel};

use super::list::damage;
use crate::{
    error::CliError,
    output::{Output, Progress, size, table},
    source::store,
};

/// Verify the files of a model, or of all models, against their hashes
///
/// The exit status is 1 if a file differs or a model is damaged in another way.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Name of the model [default: all models]
    name: Option<String>,

    /// Print a JSON array
    #[arg(long)]
    json: bool,
}

/// A model and its files.
#[derive(Serialize)]
struct Checked {
    name: String,
    revision: String,
    good: bool,
    files: Vec<FileCheck>,
}

/// See [`Args`].
pub(super) fn run(args: &Args) -> Result<(), CliError> {
    let (models, damaged) = models(args.name.as_deref())?;
    let mut progress = Progress::new();
    let mut checked = vec![];
    for model in models {
        checked.push(check(model, &mut progress)?);
    }
    drop(progress);
    print(&checked, args.json)?;
    let bad = checked.iter().filter(|model| !model.good).map(|model| model.name.clone());
    let what: Vec<_> = bad.chain(damaged.iter().map(damage)).collect();
    if what.is_empty() { Ok(()) } else { Err(CliError::Damaged { what }) }
}

/// What is to be read, and what is damaged so that it is not.
fn models(name: Option<&str>) -> Result<(Vec<StoredModel>, Vec<DamagedModel>), CliError> {
    let store = store();
    let Some(name) = name else {
        let survey = store.survey()?;
        return Ok((survey.models, survey.damaged));
    };
    match store.get(name) {
        Ok(model) => Ok((vec![model], vec![])),
        Err(error) => match store.damaged(name)? {
            damaged if damaged.is_empty() => Err(error.into()),
            damaged => Ok((vec![], damaged)),
        },
    }
}

fn check(model: StoredModel, progress: &mut Progress) -> Result<Checked, CliError> {
    let name = model.id.to_string();
    let files = model.verify(&PullOptions::default(), |file| {
        progress.show(|| format!("reading {} of {name}", file.name));
    })?;
    let good = files.iter().all(|file| file.good);
    Ok(Checked { name, revision: model.manifest.revision, good, files })
}

fn print(checked: &[Checked], json: bool) -> Result<(), CliError> {
    let mut output = Output::new();
    if json {
        return output.json(&checked);
    }
    let rows = checked.iter().flat_map(|model| {
        model.files.iter().map(|file| {
            let verdict = file.problem.clone().unwrap_or_else(|| "good".into());
            vec![format!("{}/{}", model.name, file.file), size(file.bytes), verdict]
        })
    });
    let rows: Vec<_> = rows.collect();
    if rows.is_empty() { Ok(()) } else { output.line(&table(&rows)) }
}
