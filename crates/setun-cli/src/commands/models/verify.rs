//! `setun models verify`.

use serde::Serialize;
use setun::hub::{FileCheck, PullOptions};

use crate::{
    error::CliError,
    output::{Output, Progress, size, table},
    source::store,
};

/// Verify the files of a model, or of all models, against their hashes
///
/// The exit status is 1 if a file differs.
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
    let store = store();
    let models = match &args.name {
        Some(name) => vec![store.get(name)?],
        None => store.list()?,
    };
    let mut progress = Progress::new();
    let mut checked = vec![];
    for model in models {
        let name = model.id.to_string();
        let files = model.verify(&PullOptions::default(), |file| {
            progress.show(|| format!("reading {} of {name}", file.name));
        })?;
        let good = files.iter().all(|file| file.good);
        checked.push(Checked { name, revision: model.manifest.revision, good, files });
    }
    drop(progress);
    print(&checked, args.json)?;
    match checked.iter().find(|model| !model.good) {
        Some(model) => Err(CliError::Damaged { model: model.name.clone() }),
        None => Ok(()),
    }
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
