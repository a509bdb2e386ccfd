//! `setun classify`: probabilities of labels as the continuation of a prompt.

use std::path::PathBuf;

use serde::Serialize;

use crate::{
    args::{PromptArgs, ReaderArgs, with_lines},
    error::CliError,
    output::{Output, titled},
};

/// Classify a prompt by labels that may continue it
///
/// Prints the probability of each label, given that one of them follows the prompt, the most
/// probable first. A label is scored with its spaces: most labels begin with one.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    prompt: PromptArgs,

    /// Label; repeatable
    #[arg(
        long,
        value_name = "TEXT",
        allow_hyphen_values = true,
        required_unless_present = "labels"
    )]
    label: Vec<String>,

    /// File with a label on each line; `-` is standard input
    #[arg(long, value_name = "FILE")]
    labels: Option<PathBuf>,

    #[command(flatten)]
    reader: ReaderArgs,
}

/// The result as a line of JSON, the labels in their own order.
#[derive(Serialize)]
struct Classified<'a> {
    best: &'a str,
    labels: Vec<Probable<'a>>,
}

#[derive(Serialize)]
struct Probable<'a> {
    label: &'a str,
    probability: f64,
    logprob: f64,
}

/// See [`Args`].
pub(crate) fn run(args: &Args) -> Result<(), CliError> {
    let texts = with_lines(&args.label, args.labels.as_deref())?;
    let prompt = args.prompt.read()?;
    let engine = args.reader.engine()?;
    let found = pollster::block_on(engine.classify(prompt, &texts))?;
    let labels = texts.iter().zip(found.probabilities.iter().zip(&found.scores));
    let labels = labels.map(|(label, (&probability, score))| {
        let logprob = score.logprob;
        Probable { label, probability, logprob }
    });
    let mut labels: Vec<_> = labels.collect();
    let mut output = Output::new();
    if args.reader.json {
        return output.json(&Classified { best: &texts[found.best], labels });
    }
    labels.sort_by(|one, other| other.probability.total_cmp(&one.probability));
    let rows = labels.iter().map(|label| {
        vec![
            format!("{:.4}", label.probability),
            format!("{:.4}", label.logprob),
            label.label.to_owned(),
        ]
    });
    output.line(&titled(["probability", "logprob", "label"], rows))
}
