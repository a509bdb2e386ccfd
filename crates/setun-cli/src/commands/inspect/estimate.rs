//! Memory estimate from a model's headers or shape.

use serde::Serialize;

use super::Args;
use crate::{
    error::CliError,
    output::{Output, size, titled},
    source::ModelFiles,
    synth::Synthetic,
};

/// Bytes.
#[derive(Debug, Serialize)]
struct Report {
    model: String,
    /// Positions of a whole context.
    context: u64,
    /// As the device keeps them, with what is kept beside them.
    weights: u64,
    /// The KV cache of a whole context.
    cache: u64,
    /// The KV cache of one position.
    position_cache: u64,
    /// The recurrent state of one sequence.
    state: u64,
    /// The buffers of steps, once the largest has run.
    steps: u64,
    /// Most at once, the largest weight twice while it is loaded.
    total: u64,
}

/// Reads headers alone, and prints what follows from them.
pub(super) fn run(args: &Args) -> Result<(), CliError> {
    let source = match args.shape {
        Some(shape) => {
            args.file.check_absent(shape.shape().name)?;
            ModelFiles::synthetic(Synthetic::new(&shape.shape(), 0, None)?)
        }
        None => ModelFiles::find(args.model.as_deref(), args.file.into())?,
    };
    let reader = source.open()?;
    let estimate = reader.header().estimate(args.device.options(&args.memory())?)?;
    let report = Report {
        model: reader.name().to_owned(),
        context: estimate.context,
        weights: estimate.weights,
        cache: estimate.cache,
        position_cache: estimate.position_cache,
        state: estimate.state,
        steps: estimate.steps,
        total: estimate.total(),
    };
    let mut output = Output::new();
    if args.json { output.json(&report) } else { output.line(&report.text()) }
}

impl Report {
    fn text(&self) -> String {
        let title = ["model", "weights", "KV cache", "a token", "state", "step buffers", "peak"];
        let model = format!("{}, context {}", self.model, self.context);
        let state = if self.state == 0 { "–".to_owned() } else { size(self.state) };
        let [weights, cache] = [self.weights, self.cache].map(size);
        let [position, steps, total] = [self.position_cache, self.steps, self.total].map(size);
        titled(title, [vec![model, weights, cache, position, state, steps, total]])
    }
}
