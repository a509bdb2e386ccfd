//! Options of a device.

use setun_engine::{Error as EngineError, HeadType};
use setun_ops::CacheElement;
use setun_text::named_options;

use super::Device;
use crate::{error::Error, header::ModelHeader};

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

named_options!(CacheType { F32 = "f32", F16 = "f16", Int8 = "int8" });

/// Columns of activations that share a scale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActivationGroup {
    /// All of a row, as `BitNet` is trained.
    Row,
    /// 32.
    Columns32,
    /// 64.
    Columns64,
    /// 128.
    Columns128,
}

named_options!(ActivationGroup {
    Row = "row",
    Columns32 = "32",
    Columns64 = "64",
    Columns128 = "128",
});

impl ActivationGroup {
    /// Number of columns; none for a whole row.
    #[must_use]
    pub const fn columns(self) -> Option<usize> {
        match self {
            Self::Row => None,
            Self::Columns32 => Some(32),
            Self::Columns64 => Some(64),
            Self::Columns128 => Some(128),
        }
    }
}

/// What [`Model::load_onto`](crate::Model::load_onto) needs to know.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceOptions {
    /// Where to run.
    pub device: Device,
    /// Threads; the processor's own number by default.
    pub threads: Option<usize>,
    /// Element type of the KV cache.
    pub cache: CacheType,
    /// How the head is kept.
    pub head: HeadType,
    /// Columns of activations that share a scale; as many as the model says by default.
    pub activation_group: Option<ActivationGroup>,
    /// Whether [`Device::Auto`] may choose a software adapter: for tests.
    pub software: bool,
    /// File of an image of the weights; see [`EngineBuilder::weight_image`]. Not in WebAssembly.
    ///
    /// [`EngineBuilder::weight_image`]: crate::EngineBuilder::weight_image
    pub weight_image: Option<String>,
}

impl DeviceOptions {
    /// The same for one of several devices, whose processors share the threads.
    pub(crate) fn of_one(&self, device: &Device, all: &[Device]) -> Self {
        let processors = all.iter().filter(|device| !matches!(device, Device::Gpu(_))).count();
        let share = |threads: usize| (threads / processors.max(1)).max(1);
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        let threads = match self.threads {
            Some(0) => Some(0), // is refused later
            Some(threads) => Some(share(threads)),
            None => (processors > 1).then(|| share(cores())),
        };
        Self { device: device.clone(), threads, ..self.clone() }
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

impl ModelHeader {
    /// Applies the options that change how the model runs: its head and its activation group.
    ///
    /// # Errors
    ///
    /// If the model does not take one.
    pub(crate) fn apply(&mut self, options: &DeviceOptions) -> Result<(), Error> {
        self.apply_head(options.head);
        let Some(group) = options.activation_group else { return Ok(()) };
        if group.columns().is_some() && self.has_bias_before_scale() {
            let (option, found) = ("activation_group", group.to_string());
            let expected = "row: the model adds biases before it multiplies by its scales".into();
            return Err(EngineError::BadOption { option, found, expected }.into());
        }
        self.config.quantization.activation_group = group.columns();
        self.layout.activation_group = group.columns();
        Ok(())
    }
}
