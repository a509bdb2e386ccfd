//! Where a model can run, by name, and the one place that chooses.

use std::{fmt, str::FromStr};

use setun_cpu::{CpuBackend, CpuOptions, Level};
use setun_model::{Model as Forward, Transformer, TransformerOptions, Weights};
use setun_ops::{CacheElement, ScalarBackend};

use crate::{error::Error, model::Model};

/// Name of the definitions' own level.
const SCALAR: &str = "scalar";

/// Where to run. Forcing one that is not here is an error; nothing falls back in silence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Device {
    /// The best that is here.
    #[default]
    Auto,
    /// The best level of the processor.
    Cpu,
    /// The operations' definitions: one thread, and slow.
    Scalar,
    /// One level of the processor.
    Level(Level),
}

/// A device and level that is here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct DeviceInfo {
    /// `cpu`
    pub device: &'static str,
    /// `scalar`, `avx2`, …
    pub level: &'static str,
    /// Whether [`Device::Auto`] takes it.
    pub chosen: bool,
}

/// Element type of the KV cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CacheType {
    /// As computed.
    F32,
    /// Half the memory.
    #[default]
    F16,
    /// A quarter of the memory.
    Int8,
}

/// How the head is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum HeadType {
    /// Screened where that serves and pays, otherwise stored: screened on a level of the
    /// processor, if the table is of floats and has a mebibyte or more.
    #[default]
    Auto,
    /// As the checkpoint stores it.
    Stored,
    /// As the checkpoint stores it, with 7 bits of each element beside it, which tell the few
    /// rows of the table that greedy choices and those by `top_k` or `min_p` depend on. The
    /// choices are the same, and less memory is read for them; other options still take the
    /// stored table alone.
    Screened,
    /// Rounded to int8 rows: less memory to read, slightly other logits.
    Int8,
}

impl HeadType {
    /// The name in every interface: `auto`, `stored`, `screened`, `int8`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Stored => "stored",
            Self::Screened => "screened",
            Self::Int8 => "int8",
        }
    }
}

/// What [`Model::load_onto`] needs to know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceOptions {
    /// Where to run.
    pub device: Device,
    /// Threads; the processor's own number by default.
    pub threads: Option<usize>,
    /// Element type of the KV cache.
    pub cache: CacheType,
    /// How the head is kept.
    pub head: HeadType,
}

/// A model on its device.
pub struct LoadedModel {
    /// Logits for batches.
    pub model: Box<dyn Forward>,
    /// The device that runs.
    pub backend: &'static str,
    /// Its level.
    pub level: &'static str,
    /// Threads that run.
    pub threads: usize,
    /// How the head is kept: what [`HeadType::Auto`] came to.
    pub head: HeadType,
    /// Bytes of the weights, as they are kept.
    pub weight_bytes: usize,
}

/// All that is here, the best first.
#[must_use]
pub fn devices() -> Vec<DeviceInfo> {
    let levels = Level::available().into_iter().map(Level::name).chain([SCALAR]);
    let info = |(index, level)| DeviceInfo { device: "cpu", level, chosen: index == 0 };
    levels.enumerate().map(info).collect()
}

/// Bytes of a table from which on it is screened by default. The smallest one measured, of 2 MB,
/// gains by it (`docs/performance.md`); far smaller ones are no large part of a step.
const SCREEN_PAYS_BYTES: usize = 1 << 20;

/// How a head is kept with some options: what [`HeadType::Auto`] comes to.
pub(crate) fn head_type(weights: &Weights, options: &DeviceOptions) -> HeadType {
    let pays = level(options.device).is_some()
        && weights.float_head().is_some_and(|table| table.bytes() >= SCREEN_PAYS_BYTES);
    match options.head {
        HeadType::Auto if pays => HeadType::Screened,
        HeadType::Auto => HeadType::Stored,
        head => head,
    }
}

/// The level of a device; none for the definitions.
fn level(device: Device) -> Option<Level> {
    match device {
        Device::Scalar => None,
        Device::Level(level) => Some(level),
        Device::Auto | Device::Cpu => Level::available().first().copied(),
    }
}

/// Moves the model's weights to a device.
pub(crate) fn load_onto(model: Model, options: DeviceOptions) -> Result<LoadedModel, Error> {
    if let Some(threads) = options.threads.filter(|&threads| threads == 0 || threads > 1024) {
        return Err(Error::BadOption {
            option: "threads",
            found: threads.to_string(),
            expected: "1 to 1024".into(),
        });
    }
    let level = level(options.device);
    let head = head_type(&model.weights, &options);
    let mut weights = model.weights;
    if head == HeadType::Int8 {
        weights.head_to_int8().map_err(Error::from)?;
    }
    let transformer = TransformerOptions {
        cache_element: options.cache.into(),
        ranked: head == HeadType::Screened,
        ..TransformerOptions::default()
    };
    let Some(level) = level else {
        let model = Transformer::new(ScalarBackend, model.config, weights, transformer)?;
        return Ok(LoadedModel {
            weight_bytes: model.memory().weights(),
            model: Box::new(model),
            backend: "cpu",
            level: SCALAR,
            threads: 1,
            head,
        });
    };
    let backend = CpuBackend::new(CpuOptions { level: Some(level), threads: options.threads })
        .map_err(|error| unavailable(level.name(), error.to_string()))?;
    let threads = backend.threads();
    let model = Transformer::new(backend, model.config, weights, transformer)?;
    Ok(LoadedModel {
        weight_bytes: model.memory().weights(),
        model: Box::new(model),
        backend: "cpu",
        level: level.name(),
        threads,
        head,
    })
}

fn unavailable(wanted: &str, reason: String) -> Error {
    let names = devices().into_iter().map(|info| info.level);
    let available: Vec<_> = ["auto", "cpu"].into_iter().chain(names).collect();
    Error::BackendUnavailable { wanted: wanted.to_owned(), reason, available: available.join(", ") }
}

impl FromStr for Device {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        match name {
            "auto" => Ok(Self::Auto),
            "cpu" => Ok(Self::Cpu),
            SCALAR => Ok(Self::Scalar),
            _ => Level::available()
                .into_iter()
                .find(|level| level.name() == name)
                .map(Self::Level)
                .ok_or_else(|| unavailable(name, "this build or machine does not have it".into())),
        }
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Auto => "auto",
            Self::Cpu => "cpu",
            Self::Scalar => SCALAR,
            Self::Level(level) => level.name(),
        })
    }
}

impl From<CacheType> for CacheElement {
    fn from(cache: CacheType) -> Self {
        match cache {
            CacheType::F32 => Self::F32,
            CacheType::F16 => Self::F16,
            CacheType::Int8 => Self::Int8,
        }
    }
}
