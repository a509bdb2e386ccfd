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
mod builder;
mod bytes;
#[cfg(all(feature = "config", not(target_family = "wasm")))]
mod config;
mod convert;
mod custom_model;
mod device;
mod error;
mod files;
mod input;
mod load;
#[cfg(not(target_family = "wasm"))]
mod locate;
mod model;
mod reader;
#[cfg(not(target_family = "wasm"))]
mod shared;
#[cfg(not(target_family = "wasm"))]
mod system_memory;

pub use builder::EngineBuilder;
pub use bytes::ModelBytes;
#[cfg(all(feature = "config", not(target_family = "wasm")))]
pub use config::{
    BatchConfig, ContextConfig, DeviceConfig, EngineConfig, MemoryConfig, MonitoringConfig,
    StreamsConfig,
};
pub use convert::{ContainerOptions, Conversion, Converted, Format, TableType};
pub use custom_model::CustomModel;
pub use device::{
    CacheType, Device, DeviceInfo, DeviceOptions, GpuApi, LoadedModel, MemoryEstimate, devices,
};
pub use error::{Error, ErrorCode};
pub use files::Files;
pub use input::ModelInput;
pub use load::{Loader, Texts};
#[cfg(not(target_family = "wasm"))]
pub use locate::locate;
#[cfg(feature = "embedded-model")]
pub use model::EMBEDDED_MODEL;
pub use model::{EMBEDDED_NAME, Model};
pub use reader::ModelReader;
pub use setun_checkpoint::{self as checkpoint, ReadRequest, Source, Warning};
pub use setun_cpu::Level;
pub use setun_engine::{
    BackPressure, Beam, BeamGeneration, BeamOptions, BeamText, BeamTexts, CancelHandle,
    ChatCompletion, Classification, Completion, Constraint, ConstraintState, ContextStrategy,
    DeviceReport, DeviceVerdict, Done, EarlyStopping, Embedding, Engine, EngineMetrics,
    EngineProfile, Error as EngineError, Event, FinishReason, FullContext, GenerateOptions,
    GenerationStream, HeadType, Histogram, Inferencer, InferencerCache, InferencerOptions,
    Inferred, MemoryMonitor, OPTIONS, Padding, PhaseProfile, Pooling, Pressure, Prompt,
    PromptTokens, Ragged, Score, SelfTest, Session, SharedConstraint, SharedContextStrategy,
    SinksAndWindow, TextDelta, TimeHistogram, TimedStep, Timeline, Timings, TokenLogits,
    TokenLogprob, TruncateMiddle, Usage, Verdict, WeakEngine, speculation,
};
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
#[cfg(not(target_family = "wasm"))]
pub use shared::open_shared;
#[cfg(not(target_family = "wasm"))]
pub use system_memory::SystemMemory;
