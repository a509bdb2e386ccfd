//! The parts of a configuration.

use serde::{Deserialize, Serialize};
use setun_engine::{BackPressure, EngineOptions, HeadType};

use crate::{device::CacheType, source::DEFAULT_PREFETCH};

/// Which requests run together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BatchConfig {
    /// Generations that run at once on each device: the largest batch, 1 or more. Default: 64.
    pub streams: usize,
    /// Requests that wait at once for each device, 1 or more; one more is refused. Default: 1024.
    pub queue: usize,
    /// Time that an idle engine waits for more requests after the first, so that they begin
    /// together; up to an hour. Default: 0.
    pub wait_seconds: f64,
}

impl Default for BatchConfig {
    fn default() -> Self {
        let EngineOptions { streams, queue, .. } = EngineOptions::default();
        Self { streams, queue, wait_seconds: 0.0 }
    }
}

/// How many positions there are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ContextConfig {
    /// Most positions of a sequence, prompt and answer; 1 or more, and no more than the model has.
    /// Default: those of the model.
    pub length: Option<usize>,
    /// Whole contexts that the cache may grow to, 1 or more. Default: 8.
    pub contexts: usize,
    /// Positions that are kept for prompts that begin as others did; 0 for none. Default: one
    /// context.
    pub prefix_positions: Option<usize>,
}

impl Default for ContextConfig {
    fn default() -> Self {
        Self { length: None, contexts: EngineOptions::default().contexts, prefix_positions: None }
    }
}

/// Where it runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DeviceConfig {
    /// Devices or levels by name, as `setun devices` lists them, `auto`, `each:` or `split:`. The
    /// first that holds the model is taken; those that the build or the machine lacks are passed
    /// over. Default: `["auto"]`.
    pub backends: Vec<String>,
    /// Threads, 1 to 1024. Default: chosen for the processor.
    pub threads: Option<usize>,
    /// The share of main memory, above 0 and up to 1, that weights and cache may take. It is
    /// refused on GPUs, and where the system does not tell how much there is. Default: no limit.
    pub memory_fraction: Option<f64>,
}

impl Default for DeviceConfig {
    fn default() -> Self {
        Self { backends: vec!["auto".into()], threads: None, memory_fraction: None }
    }
}

/// How the model is kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MemoryConfig {
    /// Element type of the KV cache: `f32`, `f16` or `int8`. Default: `f16`.
    pub cache: CacheType,
    /// How the head is kept: `auto`, `stored`, `screened` or `int8`. Default: `auto`.
    pub head: HeadType,
    /// The share of main memory, or of what a control group may have, above 0 and below 1, under
    /// which memory is given back ([`SystemMemory`](crate::SystemMemory)); asked once a second. It
    /// is refused where the system does not tell. Default: none.
    pub min_available: Option<f64>,
    /// Bytes of a model's file that are read before they are wanted, up to 2³⁰; 0 for none. Default: 0.
    pub prefetch_bytes: usize,
}

impl Default for MemoryConfig {
    fn default() -> Self {
        Self {
            cache: CacheType::default(),
            head: HeadType::default(),
            min_available: None,
            prefetch_bytes: DEFAULT_PREFETCH,
        }
    }
}

/// What each stream gets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StreamsConfig {
    /// Events that wait for the consumer, 1 or more. Default: 64.
    pub buffer: usize,
    /// Policy for a generation whose buffer is full: `pause` or `end`. Default: `pause`.
    pub back_pressure: BackPressure,
}

impl Default for StreamsConfig {
    fn default() -> Self {
        let EngineOptions { buffer, back_pressure, .. } = EngineOptions::default();
        Self { buffer, back_pressure }
    }
}

/// What is timed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MonitoringConfig {
    /// Time each operation from the start, for
    /// [`Engine::end_profile`](crate::Engine::end_profile). Default: false.
    pub profile: bool,
    /// And keep the steps, for a chart ([`Timeline`](crate::Timeline)). Default: false.
    pub timeline: bool,
}
