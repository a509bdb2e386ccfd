//! Activation sparsity of a text, layer by layer: open gates, and nonzero inputs of `down`.

use std::{iter, path::Path};

use serde::Serialize;
use setun::{
    Device, DeviceKind, DeviceOptions, EngineError, Error, LoadedModel,
    forward::{
        Batch, LayerDensity, Model as Forward, Outputs, PagedCache, Profile, RequestedOutput,
    },
};

use crate::{
    args::DeviceArgs,
    error::CliError,
    input,
    output::{Progress, counted, table},
    source::ModelSource,
};

/// Tokens of a step. What is counted does not depend on it.
const CHUNK: usize = 64;

/// Shares that are not zero, layer by layer.
#[derive(Debug, Serialize)]
pub(super) struct DensityReport {
    backend: DeviceKind,
    level: String,
    tokens: usize,
    layers: Vec<Layer>,
}

/// Shares from 0 to 1.
#[derive(Debug, Serialize)]
struct Layer {
    /// None where the activation closes no gates.
    gates_open: Option<f64>,
    down_nonzero: Option<f64>,
}

/// Refuses a device that does not count.
pub(super) fn check(device: &DeviceArgs) -> Result<(), CliError> {
    if matches!(device.device()?, Device::Scalar | Device::Gpu(_)) {
        let level = device.backend();
        return Err(CliError::Usage(format!("--text: `{level}` does not count zeros")));
    }
    Ok(())
}

/// Runs the text of a file, or of standard input, through a model.
pub(super) fn measure(
    source: ModelSource,
    text: &Path,
    device: &DeviceArgs,
) -> Result<DensityReport, CliError> {
    let text = input::file(text)?;
    let model = source.load()?;
    let tokens = input::tokens(&model, &text)?;
    if tokens.is_empty() {
        let (found, expected) = ("empty".into(), "a text of one token or more".into());
        return Err(EngineError::BadOption { option: "text", found, expected }.into());
    }
    let (threads, backend) = (device.threads(), device.device()?);
    let options = DeviceOptions { device: backend, threads, ..DeviceOptions::default() };
    let LoadedModel { model, backend, level, .. } = model.load_onto(options)?;
    let layers = layers(model, &tokens)?;
    Ok(DensityReport {
        backend,
        level,
        tokens: tokens.len(),
        layers: layers.iter().map(Layer::of).collect(),
    })
}

/// Runs tokens through a model. More than a context are taken in pieces that know nothing of each
/// other.
fn layers(mut model: Box<dyn Forward>, tokens: &[u32]) -> Result<Vec<LayerDensity>, CliError> {
    model.set_profiled(true);
    let context = model.context_length();
    let blocks = context.div_ceil(model.block_positions());
    let (mut progress, mut done) = (Progress::new(), 0);
    let mut all = Profile::default();
    for piece in tokens.chunks(context) {
        let mut cache = PagedCache::new(model.block_positions(), blocks);
        let sequence = cache.create();
        for (index, chunk) in piece.chunks(CHUNK).enumerate() {
            progress.show(|| format!("{done} of {} tokens", tokens.len()));
            cache.extend(sequence, chunk.len()).map_err(Error::from)?;
            let mut batch = Batch::default();
            batch.push_run(sequence, index * CHUNK, chunk, RequestedOutput::Nothing);
            let mut outputs = Outputs::default();
            pollster::block_on(model.forward(&batch, &mut cache, &mut outputs))?;
            if let Some(step) = model.profile() {
                all.add(step);
            }
            done += chunk.len();
        }
    }
    Ok(all.layers)
}

impl Layer {
    fn of(density: &LayerDensity) -> Self {
        Self { gates_open: density.gates.share(), down_nonzero: density.down.share() }
    }
}

impl DensityReport {
    /// For people.
    pub(super) fn text(&self) -> String {
        let Self { backend, level, tokens, layers } = self;
        let percent = |share: Option<f64>| {
            share.map_or("-".to_owned(), |share| format!("{:.1} %", share * 100.0))
        };
        let row = |(index, layer): (usize, &Layer)| {
            vec![index.to_string(), percent(layer.gates_open), percent(layer.down_nonzero)]
        };
        let title = ["layer", "open gates", "nonzero inputs of down"];
        let rows: Vec<_> = iter::once(title.map(str::to_owned).to_vec())
            .chain(layers.iter().enumerate().map(row))
            .collect();
        format!("{} on {backend} ({level})\n{}", counted(*tokens, "token"), table(&rows))
    }
}
