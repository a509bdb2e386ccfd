//! `setun inspect`: configuration, tensors, memory estimate and plan of a checkpoint.

mod density;
mod estimate;
mod plan;
mod report;

use std::path::PathBuf;

use setun::{
    CacheType,
    checkpoint::{Answer, Reader},
    forward::WeightsBuilder,
};

use crate::{
    args::{ActivationArgs, DeviceArgs, FileArgs, MemoryArgs, value},
    error::CliError,
    output::Output,
    source::ModelFiles,
    synth::ShapeName,
};

use report::Report;

/// Show a model's configuration, tensors, memory estimate or plan
///
/// Only headers are read, except with --text, which runs the model on a device. A model that cannot
/// be run is shown as far as it can be read; the exit status is then 1.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A file (.safetensors, .gguf, .onnx, .setun), a folder in Hugging Face's layout, or the name of a
    /// pulled model [default: the embedded model]
    model: Option<String>,

    #[command(flatten)]
    file: FileArgs,

    /// Print one JSON object
    #[arg(long)]
    json: bool,

    /// Estimate the memory that the model needs on a device, without reading weights
    #[arg(long, conflicts_with_all = ["plan", "text"])]
    estimate: bool,

    /// Model shape to estimate, in place of a model
    #[arg(long, value_enum, conflicts_with = "model", requires = "estimate")]
    shape: Option<ShapeName>,

    /// Element type of the KV cache for the estimate [default: f16]
    #[arg(long, requires = "estimate", value_parser = value::<CacheType>("cache_type"))]
    kv: Option<CacheType>,

    /// List the operations and buffers of a step of one token in place of the tensors
    #[arg(long)]
    plan: bool,

    /// Run the text of a file, or of standard input (`-`), and show in place of the tensors the shares
    /// of open gates and of nonzero inputs of `down` in each layer
    #[arg(long, value_name = "FILE")]
    text: Option<PathBuf>,

    #[command(flatten)]
    device: DeviceArgs,

    #[command(flatten)]
    activations: ActivationArgs,
}

impl Args {
    fn memory(&self) -> MemoryArgs {
        MemoryArgs { kv: self.kv, activations: self.activations, ..MemoryArgs::default() }
    }

    /// Refuses options of a device that nothing would run on.
    fn check_device(&self) -> Result<(), CliError> {
        let DeviceArgs { backend, threads } = &self.device;
        let flags = [
            ("--backend", backend.is_some()),
            ("--threads", threads.is_some()),
            ("--activation-group", self.activations.is_given()),
        ];
        match flags.into_iter().find(|&(_, is_given)| is_given && self.text.is_none()) {
            Some((flag, _)) => Err(CliError::Usage(format!("{flag} needs --text or --estimate"))),
            None => Ok(()),
        }
    }
}

/// See [`Args`].
pub(crate) fn run(args: &Args) -> Result<(), CliError> {
    if args.estimate {
        return estimate::run(args);
    }
    args.check_device()?;
    if args.text.is_some() {
        density::check(&args.device)?;
    }
    let source = ModelFiles::find(args.model.as_deref(), args.file.into())?;
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
    if let (Some(text), None) = (&args.text, &problem) {
        let source = ModelFiles::find(args.model.as_deref(), args.file.into())?;
        report.densities =
            Some(density::measure(source, text, args.device.options(&args.memory())?)?);
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
fn read_headers(mut source: ModelFiles) -> Result<Reader, CliError> {
    let mut reader = Reader::with_options(source.layout(), source.options());
    let mut bytes = vec![];
    while reader.tensors().is_none() {
        let Some(want) = reader.next_read() else { break };
        let found = source.read(&want, &mut bytes)?;
        reader.give(if found { Answer::Bytes(&bytes) } else { Answer::Missing })?;
    }
    Ok(reader)
}
