//! `setun models verify`.

use serde::Serialize;
use setun::{
    checkpoint::Options,
    hub::{DamagedModel, FileCheck, PullOptions, StoredModel},
};

use super::list::damage;
use crate::{
    error::CliError,
    output::{Output, Progress, size, table},
    source::{ModelFiles, store},
};

/// Verify the files of a model, or of all models, against their hashes
///
/// Tokenizer and chat template are tried on a short text. The exit status is 1 if a file differs or a
/// model is damaged or unusable in another way.
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
    /// Whether all files have their hashes.
    good: bool,
    files: Vec<FileCheck>,
    /// Why it cannot be used, though its files are those that were pulled.
    problem: Option<String>,
    warnings: Vec<String>,
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
    if !what.is_empty() {
        return Err(CliError::Damaged { what });
    }
    let unusable = checked.iter().filter(|model| model.problem.is_some());
    let what: Vec<_> = unusable.map(|model| model.name.clone()).collect();
    if what.is_empty() { Ok(()) } else { Err(CliError::Unusable { what }) }
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
    let tried = if good { try_texts(&model) } else { Ok(vec![]) };
    let (problem, warnings) = match tried {
        Ok(warnings) => (None, warnings),
        Err(error) => (Some(error.to_string()), vec![]),
    };
    Ok(Checked { name, revision: model.manifest.revision, good, files, problem, warnings })
}

/// Opens the header and tries tokenizer and template, as a generation would; its warnings.
fn try_texts(model: &StoredModel) -> Result<Vec<String>, CliError> {
    // Of several files one has to be named, which is no fault of the model.
    let Ok(path) = model.path(None) else { return Ok(vec![]) };
    let files = ModelFiles::at(&path, model.id.to_string(), Options::default())?;
    Ok(files.header()?.try_texts()?)
}

fn print(checked: &[Checked], json: bool) -> Result<(), CliError> {
    let mut output = Output::new();
    if json {
        return output.json(&checked);
    }
    let rows: Vec<_> = checked.iter().flat_map(rows).collect();
    if rows.is_empty() { Ok(()) } else { output.line(&table(&rows)) }
}

/// A line for each file, and for what else is known of a model.
fn rows(model: &Checked) -> Vec<Vec<String>> {
    let of_file = |file: &FileCheck| {
        let verdict = file.problem.clone().unwrap_or_else(|| "good".into());
        vec![format!("{}/{}", model.name, file.file), size(file.bytes), verdict]
    };
    let warnings = model.warnings.iter().map(|warning| format!("warning: {warning}"));
    let of_model = |verdict| vec![model.name.clone(), String::new(), verdict];
    let more = model.problem.clone().into_iter().chain(warnings).map(of_model);
    model.files.iter().map(of_file).chain(more).collect()
}
