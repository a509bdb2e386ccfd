//! Offer to pull a model that is not on this machine, or is damaged.

use std::io::{self, BufRead, IsTerminal};

use setun::{
    Error, FoundModel, find_model,
    hub::{CatalogEntry, Error as HubError, ModelStore, PullOptions, StoreSettings, catalog},
};

use crate::{
    error::CliError,
    output::{report, size},
    pull_progress::PullProgress,
};

/// The model that a name means. Somebody at a terminal is asked whether to pull one that is not
/// here or is damaged; otherwise the error says how to pull it.
pub(crate) fn find_or_pull(name: &str) -> Result<FoundModel, CliError> {
    let (problem, is_damaged) = match find_model(name) {
        Err(missing @ Error::UnknownModel { can_pull: true, .. }) => (missing, false),
        Err(damaged @ Error::Hub(HubError::Damaged { .. })) => (damaged, true),
        found => return Ok(found?),
    };
    let store = ModelStore::open(StoreSettings::from_env());
    let is_asked = io::stdin().is_terminal() && io::stderr().is_terminal();
    if !is_asked || store.settings().offline.is_some() {
        return Err(problem.into());
    }
    if is_damaged {
        report(&format!("{problem}\nPull what is wrong with it again? [y/N] "));
    } else {
        report(&question(name, &store.settings().endpoint));
    }
    if !is_yes(&mut io::stdin().lock())? {
        return Err(problem.into());
    }
    let progress = PullProgress::new();
    let pulled = store.pull(name, &PullOptions::default(), &|event| progress.show(event));
    progress.end();
    pulled?;
    Ok(find_model(name)?)
}

fn question(name: &str, endpoint: &str) -> String {
    let is_meant = |entry: &&CatalogEntry| entry.name == name || entry.source() == name;
    let what = match catalog().iter().find(is_meant) {
        Some(CatalogEntry { repository, licence, bytes, .. }) => {
            format!("{} from {repository} (licence {licence})", size(*bytes))
        }
        None if name.contains("://") => "it".to_owned(),
        None => format!("it from {endpoint}"),
    };
    format!("{name} is not here: pull {what}? [y/N] ")
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
    fn a_question_names_what_is_known() {
        let hub = "https://hub.example";
        let known = "pull 1.18 GB from microsoft/bitnet-b1.58-2B-4T (licence mit)? [y/N] ";
        for (name, expected) in [
            ("bitnet-2b-4t", known),
            ("microsoft/bitnet-b1.58-2B-4T", known),
            ("o/n", "pull it from https://hub.example? [y/N] "),
            ("https://h/m.gguf", "pull it? [y/N] "),
        ] {
            assert_eq!(question(name, hub), format!("{name} is not here: {expected}"));
        }
    }
}
