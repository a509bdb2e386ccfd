//! Runs `BitNet` b1.58 language models: ternary weights, int8 activations, the same bits on
//! every processor and in WebAssembly.
//!
//! ```no_run
//! use setun::{Engine, Event, GenerateOptions, Model};
//!
//! let engine = Engine::builder(Model::open("bitnet-b1.58-2B-4T")?).build()?;
//! for event in engine.generate("The Setun was", GenerateOptions::new().seed(1))?.blocking() {
//!     if let Event::Text(delta) = event? {
//!         print!("{}", delta.text);
//!     }
//! }
//! # Ok::<(), setun::Error>(())
//! ```
//!
//! - [`Model`] is an opened checkpoint; [`Engine`] runs it, several generations at once;
//!   [`GenerationStream`] is a `futures::Stream` of [`Event`]s, and there are blocking ways.
//! - Dropping a stream ends its generation. An error in one leaves the engine usable.
//! - Nothing here needs an async runtime, a GPU or a network.

#[cfg(not(target_family = "wasm"))]
mod ahead;
mod beams;
mod bytes;
#[cfg(all(feature = "config", not(target_family = "wasm")))]
mod config;
mod context;
mod convert;
mod device;
mod embedding;
mod engine;
mod error;
mod event;
mod files;
mod form;
mod histogram;
mod inferencer;
mod input;
mod load;
#[cfg(not(target_family = "wasm"))]
mod locate;
mod metrics;
mod model;
#[cfg_attr(not(feature = "observe"), path = "unobserved.rs")]
mod observe;
mod options;
mod own_model;
mod owner;
mod pressure;
mod profile;
mod reader;
#[cfg(test)]
mod remembering;
mod sequence;
mod session;
pub mod speculate;
mod stream;
mod ticket;
mod timeline;

pub use beams::{Beam, BeamGeneration, BeamOptions, BeamText, BeamTexts, EarlyStopping};
pub use bytes::ModelBytes;
#[cfg(all(feature = "config", not(target_family = "wasm")))]
pub use config::{
    BatchConfig, ContextConfig, DeviceConfig, EngineConfig, GenerationConfig, MemoryConfig,
    MonitoringConfig, StreamsConfig,
};
pub use context::{
    ContextStrategy, FullContext, SharedContextStrategy, SinksAndWindow, TruncateMiddle,
};
pub use convert::{ContainerOptions, Conversion, Converted, Format, TableType};
pub use device::{
    CacheType, Device, DeviceInfo, DeviceOptions, DeviceReport, DeviceVerdict, GpuApi, HeadType,
    LoadedModel, MemoryEstimate, SelfTest, Verdict, devices,
};
pub use embedding::{Embedding, Pooling};
pub use engine::{ChatCompletion, Classification, Engine, EngineBuilder, Score};
pub use error::{Error, ErrorCode};
pub use event::{Done, Event, FinishReason, PromptTokens, TextDelta, Timings, TokenLogprob, Usage};
pub use files::Files;
pub use form::{Form, FormState, SharedForm};
pub use histogram::{Histogram, TimeHistogram};
pub use inferencer::{
    Inferencer, InferencerCache, InferencerOptions, Inferred, Padding, Ragged, TokenLogits,
};
pub use input::ModelInput;
pub use load::{Loader, Texts};
#[cfg(not(target_family = "wasm"))]
pub use locate::locate;
pub use metrics::EngineMetrics;
#[cfg(feature = "embedded-model")]
pub use model::EMBEDDED_MODEL;
pub use model::{EMBEDDED_NAME, Model};
pub use options::{GenerateOptions, Prompt};
pub use own_model::OwnModel;
#[cfg(not(target_family = "wasm"))]
pub use pressure::SystemMemory;
pub use pressure::{MemoryWatch, Pressure};
pub use profile::{EngineProfile, PhaseProfile};
pub use reader::ModelReader;
pub use session::Session;
pub use setun_checkpoint::{self as checkpoint, ReadRequest, Source, Warning};
pub use setun_cpu::Level;
#[cfg(feature = "gpu")]
pub use setun_gpu as gpu;
#[cfg(feature = "grammar")]
pub use setun_grammar::{self as grammar, GrammarSpec};
#[cfg(all(feature = "hub", not(target_family = "wasm")))]
pub use setun_hub as hub;
pub use setun_model::{self as forward};
pub use setun_ops as ops;
pub use setun_text::{
    self as text, ContentFilter, LogitsProcessor, Message, PromptTemplate, SamplerOptions,
    SamplingStep, SharedFilter,
};
pub use stream::{BackPressure, CancelHandle, Completion, GenerationStream};
pub use timeline::{TimedStep, Timeline};
