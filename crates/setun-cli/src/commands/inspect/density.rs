//! Activation sparsity of a text, layer by layer: open gates, and nonzero inputs of `down`.

use std::path::Path;

use serde::Serialize;
use setun::{
    Device, DeviceKind, DeviceOptions, EngineError, LoadedModel,
    forward::{LayerDensity, Model as Forward, Profile, RequestedOutput},
};

use crate::{
    args::DeviceArgs,
    error::CliError,
    input,
    output::{Progress, counted, titled},
    source::ModelFiles,
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
    source: ModelFiles,
    text: &Path,
    options: DeviceOptions,
) -> Result<DensityReport, CliError> {
    let text = input::file(text)?;
    let model = source.load()?;
    let tokens = input::tokens(&model, &text)?;
    if tokens.is_empty() {
        let (found, expected) = ("empty".into(), "a text of one token or more".into());
        return Err(EngineError::BadOption { option: "--text", found, expected }.into());
    }
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
    let (mut progress, mut all) = (Progress::new(), Profile::default());
    for piece in tokens.chunks(model.context_length()) {
        input::for_each_chunk(&mut *model, piece, CHUNK, &RequestedOutput::Nothing, |model, _| {
            if let Some(step) = model.profile() {
                all.add(step);
            }
            progress.show(|| format!("{} of {} tokens", all.rows, tokens.len()));
            Ok(())
        })?;
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
        let layers = titled(title, layers.iter().enumerate().map(row));
        format!("{} on {backend} ({level})\n{layers}", counted(*tokens, "token"))
    }
}
