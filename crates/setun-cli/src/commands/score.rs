//! `setun score`: log-probabilities of texts as continuations of a prompt.

use std::path::PathBuf;

use serde::Serialize;
use setun::{Score, TextDelta};

use crate::{
    args::{PromptArgs, ReaderArgs, with_lines},
    error::CliError,
    output::{Output, titled},
};

/// Score texts as continuations of a prompt
///
/// Prints the log-probability of each text, its mean over the tokens, and their number. A text is
/// scored in the tokens that it has together with the prompt. The prompt is computed once.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    prompt: PromptArgs,

    /// Text to score; repeatable
    #[arg(
        long,
        value_name = "TEXT",
        allow_hyphen_values = true,
        required_unless_present = "texts"
    )]
    text: Vec<String>,

    /// File with a text to score on each line; `-` is standard input
    #[arg(long, value_name = "FILE")]
    texts: Option<PathBuf>,

    #[command(flatten)]
    reader: ReaderArgs,
}

/// A score as a line of JSON.
#[derive(Serialize)]
struct Scored<'a> {
    text: &'a str,
    logprob: f64,
    mean_logprob: f64,
    tokens: &'a [TextDelta],
}

/// See [`Args`].
pub(crate) fn run(args: &Args) -> Result<(), CliError> {
    let texts = with_lines(&args.text, args.texts.as_deref())?;
    let prompt = args.prompt.read()?;
    let engine = args.reader.engine()?;
    let scores = pollster::block_on(engine.score(prompt, &texts))?;
    let mut output = Output::new();
    if args.reader.json {
        return texts.iter().zip(&scores).try_for_each(|(text, score)| {
            let (logprob, mean_logprob) = (score.logprob, score.mean_logprob());
            output.json(&Scored { text, logprob, mean_logprob, tokens: &score.tokens })
        });
    }
    let rows = texts.iter().zip(&scores).map(|(text, score)| row(text, score));
    output.line(&titled(["logprob", "mean", "tokens", "text"], rows))
}

fn row(text: &str, score: &Score) -> Vec<String> {
    vec![
        format!("{:.4}", score.logprob),
        format!("{:.4}", score.mean_logprob()),
        score.tokens.len().to_string(),
        text.to_owned(),
    ]
}
