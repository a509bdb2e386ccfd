//! `setun models search`: public models by name, size and memory.

use std::io::{self, IsTerminal};

use serde::Serialize;
use setun::{
    available_memory,
    hub::{CatalogEntry, catalog, catalog::RecommendedSampling},
};

use crate::{
    error::CliError,
    output::{Output, report, size, titled},
    source::store,
};

/// List public models of the catalog, whose short names `pull`, `run` and others take
///
/// Each WORD must be in a model's name, title, family, repository, licence or chat template; `chat`
/// finds models with any chat template. Memory is the peak on a CPU with a context of at most 4096
/// tokens, compared with what is available here. Sampling is what the authors recommend, as options
/// of `setun run`. Nothing is downloaded.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Words to look for [default: all models]
    #[arg(value_name = "WORD")]
    words: Vec<String>,

    /// Print a JSON array
    #[arg(long)]
    json: bool,
}

/// Titles of the columns.
const TITLE: [&str; 10] = [
    "name",
    "parameters",
    "download",
    "memory",
    "here",
    "context",
    "licence",
    "chat template",
    "",
    "sampling",
];

/// An entry, and what is known of it on this machine.
#[derive(Serialize)]
struct Found {
    #[serde(flatten)]
    entry: &'static CatalogEntry,
    /// Whether it fits into the memory that is available; none where the system does not report it.
    #[serde(skip_serializing_if = "Option::is_none")]
    fits: Option<bool>,
    /// Whether it is in the store.
    pulled: bool,
}

/// See [`Args`].
pub(super) fn run(args: &Args) -> Result<(), CliError> {
    let (store, memory) = (store(), available_memory());
    let entries = catalog().iter().filter(|entry| entry.matches(&args.words));
    let found: Vec<Found> = entries
        .map(|entry| Found {
            entry,
            fits: memory.map(|memory| entry.memory <= memory),
            pulled: store.resolve(&entry.source()).is_ok(),
        })
        .collect();
    let mut output = Output::new();
    if args.json {
        return output.json(&found);
    }
    if found.is_empty() {
        if io::stderr().is_terminal() {
            report("no model has all these words; without words, all are listed\n");
        }
        return Ok(());
    }
    output.line(&titled(TITLE, found.iter().map(row)))?;
    if let Some(memory) = memory
        && io::stdout().is_terminal()
    {
        report(&format!("{} of memory are available here\n", size(memory)));
    }
    Ok(())
}

fn row(Found { entry, fits, pulled }: &Found) -> Vec<String> {
    let here = match fits {
        Some(true) => "fits",
        Some(false) => "too large",
        None => "",
    };
    vec![
        entry.name.clone(),
        millions(entry.parameters),
        size(entry.bytes),
        size(entry.memory),
        here.to_owned(),
        entry.context_length.map_or(String::new(), |length| length.to_string()),
        entry.licence.clone(),
        entry.chat_template.clone().unwrap_or_default(),
        if *pulled { "pulled" } else { "" }.to_owned(),
        entry.sampling.map(options).unwrap_or_default(),
    ]
}

/// Recommended sampling as options of a run: `--temperature 0.6 --top-p 0.9`.
fn options(sampling: RecommendedSampling) -> String {
    let RecommendedSampling { temperature, top_p, top_k, .. } = sampling;
    let given = [
        temperature.map(|value| format!("--temperature {value}")),
        top_p.map(|value| format!("--top-p {value}")),
        top_k.map(|value| format!("--top-k {value}")),
    ];
    given.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// A number of parameters as models are named: `99 M`, `2.4 B`.
fn millions(parameters: u64) -> String {
    const TENTH_OF_BILLION: u64 = 100_000_000;
    if parameters < 10 * TENTH_OF_BILLION {
        return format!("{} M", parameters / 1_000_000);
    }
    let tenths = (parameters + TENTH_OF_BILLION / 2) / TENTH_OF_BILLION;
    format!("{}.{} B", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::millions;

    #[test]
    fn parameters_are_rounded() {
        let cases = [(99_745_792, "99 M"), (2_412_820_480, "2.4 B"), (1_971_000_000, "2.0 B")];
        for (parameters, text) in cases {
            assert_eq!(millions(parameters), text);
        }
    }
}
