//! `setun inspect`: what is in a checkpoint, from its headers alone.

mod plan;
mod report;

use setun::{
    checkpoint::{Answer, Reader},
    forward::WeightsBuilder,
};

use crate::{error::CliError, output::Output, source::ModelSource};

use report::Report;

/// Show a model's configuration and tensors
///
/// Only headers are read. A model that cannot be run is shown as far as it can be read, and
/// the exit status is 1.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A .safetensors file, or a folder in Hugging Face's layout
    model: String,

    /// Print one JSON object instead
    #[arg(long)]
    json: bool,

    /// Also list the operations of a step of one token, and their buffers
    #[arg(long)]
    plan: bool,
}

/// See [`Args`].
pub(crate) fn run(args: &Args) -> Result<(), CliError> {
    let source = ModelSource::find(Some(&args.model))?;
    let name = source.name().to_owned();
    let reader = read_headers(source)?;
    let weights = match (reader.config(), reader.tensors()) {
        (Some(config), Some(tensors)) => {
            Some(WeightsBuilder::new(config, tensors, config.context_length))
        }
        _ => None,
    };
    let (weights, problem) = match weights.transpose() {
        Ok(weights) => (weights, None),
        Err(problem) => (None, Some(problem)),
    };
    let mut report = Report::new(&name, &reader, weights.as_ref())?;
    report.problem = problem.as_ref().map(ToString::to_string);
    if args.plan
        && let (Some(weights), Some(config)) = (&weights, reader.config())
    {
        report.plan = Some(plan::describe(weights.layout(), config)?);
    }
    let mut output = Output::new();
    if args.json {
        output.json(&report)?;
    } else {
        output.line(&report.text())?;
    }
    problem.map_or(Ok(()), |problem| Err(problem.into()))
}

/// Reads all that comes before the tensors' data.
fn read_headers(mut source: ModelSource) -> Result<Reader, CliError> {
    let mut reader = Reader::new(source.source());
    let mut bytes = vec![];
    while reader.tensors().is_none() {
        let Some(want) = reader.want() else { break };
        let found = source.read(&want, &mut bytes)?;
        reader.give(if found { Answer::Bytes(&bytes) } else { Answer::Missing })?;
    }
    Ok(reader)
}
