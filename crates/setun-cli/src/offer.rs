//! Offer to pull a model of the catalog that is not in the store.

use std::{
    io::{self, BufRead, IsTerminal},
    path::PathBuf,
};

use setun::hub::{self, CatalogEntry, ModelStore, PullOptions, catalog};

use crate::{
    error::CliError,
    output::{report, size},
    pull_progress::PullProgress,
};

/// The path of a model that the store lacks. Somebody at a terminal is asked whether to pull it, if
/// the catalog has the name; otherwise `missing` is the error, which says how to pull it. None for a
/// name that is like none of the catalog, and may be a path.
pub(crate) fn missing_model(
    name: &str,
    store: &ModelStore,
    missing: hub::Error,
) -> Result<Option<PathBuf>, CliError> {
    let is_meant = |entry: &&CatalogEntry| entry.name == name || entry.source() == name;
    let Some(entry) = hub::catalog().iter().find(is_meant) else {
        return if catalog::suggest(name).is_some() { Err(missing.into()) } else { Ok(None) };
    };
    let is_asked = io::stdin().is_terminal() && io::stderr().is_terminal();
    if !is_asked || store.settings().offline.is_some() {
        return Err(missing.into());
    }
    report(&question(entry));
    if !is_yes(&mut io::stdin().lock())? {
        return Err(missing.into());
    }
    let progress = PullProgress::new();
    let pulled = store.pull(name, &PullOptions::default(), &|event| progress.show(event));
    progress.end();
    pulled?;
    Ok(Some(store.resolve(name)?))
}

fn question(entry: &CatalogEntry) -> String {
    let CatalogEntry { name, repository, licence, .. } = entry;
    let bytes = size(entry.bytes);
    format!("{name} is not here: pull {bytes} from {repository} (licence {licence})? [y/N] ")
}

/// Whether a line is a yes; its end, and anything else, is a no.
fn is_yes(input: &mut impl BufRead) -> Result<bool, CliError> {
    let mut line = String::new();
    input.read_line(&mut line).map_err(CliError::Input)?;
    Ok(["y", "yes"].contains(&line.trim().to_lowercase().as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_yes_is_a_yes() {
        for (line, expected) in [
            ("y\n", true),
            (" YES \r\n", true),
            ("", false),
            ("\n", false),
            ("n\n", false),
            ("yellow\n", false),
        ] {
            assert_eq!(is_yes(&mut line.as_bytes()).expect("a line"), expected, "{line:?}");
        }
    }

    #[test]
    fn a_question_names_bytes_repository_and_licence() {
        let question = question(catalog::find("bitnet-2b-4t").expect("an entry"));
        let expected = "bitnet-2b-4t is not here: pull 1.18 GB from microsoft/bitnet-b1.58-2B-4T \
                        (licence mit)? [y/N] ";
        assert_eq!(question, expected);
    }
}
