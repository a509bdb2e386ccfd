//! `setun embed`: texts as vectors.

use std::path::PathBuf;

use clap::ValueEnum;
use serde::Serialize;
use setun::Pooling;

use crate::{
    args::{ReaderArgs, with_lines},
    error::CliError,
    input,
    output::Output,
};

/// Embed texts
///
/// Prints one line for each text: the values of its vector, separated by spaces. Vectors have the
/// length 1, so that their products are cosines.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Text; repeatable [default: standard input, without its last line break]
    #[arg(value_name = "TEXT")]
    text: Vec<String>,

    /// File with a text on each line; `-` is standard input
    #[arg(long, value_name = "FILE")]
    texts: Option<PathBuf>,

    /// Which hidden states make the vector
    #[arg(long, value_enum, value_name = "HOW", default_value_t = How::Last)]
    pooling: How,

    /// Keep the lengths of the vectors
    #[arg(long)]
    no_normalize: bool,

    #[command(flatten)]
    reader: ReaderArgs,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum How {
    /// That of the last token
    Last,
    /// The mean over all tokens
    Mean,
}

/// A vector as a line of JSON.
#[derive(Serialize)]
struct Embedded {
    index: usize,
    tokens: usize,
    embedding: Vec<f32>,
}

/// See [`Args`].
pub(crate) fn run(args: &Args) -> Result<(), CliError> {
    let mut texts = with_lines(&args.text, args.texts.as_deref())?;
    if args.text.is_empty() && args.texts.is_none() {
        texts.push(input::prompt()?);
    }
    let engine = args.reader.engine()?;
    let pooling = match args.pooling {
        How::Last => Pooling::Last,
        How::Mean => Pooling::Mean,
    };
    let found = pollster::block_on(engine.embed(texts, pooling, !args.no_normalize));
    let mut output = Output::new();
    for (index, embedding) in found.into_iter().enumerate() {
        let embedding = embedding.or_else(|error| output.fail(error))?;
        let (tokens, embedding) = (embedding.tokens, embedding.values);
        if args.reader.json {
            output.json(&Embedded { index, tokens, embedding })?;
        } else {
            let values: Vec<_> = embedding.iter().map(f32::to_string).collect();
            output.line(&values.join(" "))?;
        }
    }
    Ok(())
}
