//! Runs `BitNet` b1.58 language models: ternary weights, int8 activations, the same bits on
//! every processor and in WebAssembly.
//!
//! ```no_run
//! use setun::{Engine, Event, GenerateOptions, Model};
//!
//! fn main() -> Result<(), setun::Error> {
//!     let model = Model::open("models/bitnet-b1.58-2B-4T")?; // a folder or a file
//!     let engine = Engine::builder(model).build()?;
//!     for event in engine.generate("The Setun was", GenerateOptions::new().seed(1))?.blocking() {
//!         if let Event::Text(delta) = event? {
//!             print!("{}", delta.text);
//!         }
//!     }
//!     Ok(())
//! }
//! ```
//!
//! The feature `embedded-model` has a small model, `Model::embedded()`; `hub` opens pulled models by their
//! names, such as `bitnet-2b-4t`. A `main` that returns [`Error`] ends with its sentence.
//!
//! - [`Model`] is an opened checkpoint; [`Engine`] runs it, several generations at once;
//!   [`GenerationStream`] is a `futures::Stream` of [`Event`]s, and there are blocking ways.
//! - Dropping a stream ends its generation. An error in one leaves the engine usable.
//! - Nothing here needs an async runtime, a GPU or a network.

/// The snippet of the project's README runs.
#[cfg(all(doctest, feature = "embedded-model"))]
#[doc = include_str!("../../../README.md")]
struct Readme;

#[cfg(feature = "grammar")]
pub mod batch_file;
mod builder;
mod config;
mod convert;
mod custom_model;
mod device;
mod error;
mod header;
#[cfg(feature = "grammar")]
mod json_messages;
#[cfg(feature = "grammar")]
mod json_options;
mod load;
mod loader;
mod model;
mod reader;
mod row_seed;
#[cfg(not(target_family = "wasm"))]
mod shared;
mod source;
#[cfg(not(target_family = "wasm"))]
mod system_memory;
mod text_check;
#[cfg(not(target_family = "wasm"))]
mod weight_image;

pub use builder::EngineBuilder;
#[cfg(all(feature = "config", not(target_family = "wasm")))]
pub use config::read_toml;
pub use config::{DeviceConfig, EngineConfig};
pub use convert::{ContainerOptions, Conversion, Converted, Format, TableType};
pub use custom_model::CustomModel;
#[cfg(all(feature = "gpu", not(target_family = "wasm")))]
pub use device::gpu_limits;
pub use device::{
    ActivationGroup, CacheType, Device, DeviceInfo, DeviceOptions, LoadedModel, MemoryEstimate,
    devices,
};
pub use error::{Error, ErrorCode};
pub use header::ModelHeader;
#[cfg(feature = "grammar")]
pub use json_messages::messages_from_json;
#[cfg(feature = "grammar")]
pub use json_options::options_from_json;
pub use load::ModelInput;
#[cfg(not(target_family = "wasm"))]
pub use load::add_weight_image;
pub use model::Model;
pub use reader::ModelReader;
pub use row_seed::row_seed;
pub use setun_checkpoint::{self as checkpoint, ReadRequest, Source, Warning};
pub use setun_clock::Clock;
pub use setun_cpu::Level;
pub use setun_engine::{
    BackPressure, Beam, BeamGeneration, BeamOptions, BeamText, BeamTexts, CancelHandle,
    ChatCompletion, Classification, Completion, Constraint, ConstraintState, ContextStrategy,
    DeviceKind, DeviceReport, DeviceVerdict, Done, EarlyStopping, Embedding, Engine, EngineMetrics,
    EngineOptions, EngineProfile, Error as EngineError, Event, FinishReason, FullContext,
    GenerateOptions, GenerationStream, GpuApi, HeadType, Histogram, Inferencer, InferencerCache,
    InferencerOptions, Inferred, ListBound, MemoryMonitor, ModelShape, OperationTime, PhaseProfile,
    Pooling, Pressure, Prompt, PromptProgress, PromptTokens, Ragged, ReasoningEffort, Score,
    SelfTest, Session, SharedConstraint, SharedContextStrategy, SinksAndWindow, TextDelta,
    TimeHistogram, TimedStep, Timeline, Timings, TokenLogits, TokenLogprob, TruncateMiddle, Usage,
    Verdict, WeakEngine,
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
    SamplingStep, SharedFilter, Tool, ToolCall, ToolCallDelta, ToolChoice,
};
#[cfg(not(target_family = "wasm"))]
pub use shared::open_shared;
#[cfg(feature = "embedded-model")]
pub use source::EMBEDDED_MODEL;
pub use source::{EMBEDDED_NAME, ModelBytes, ModelFolder, ModelSource};
#[cfg(not(target_family = "wasm"))]
pub use source::{FoundModel, find_model, locate, other_than_file, read_file};
#[cfg(not(target_family = "wasm"))]
pub use system_memory::{SystemMemory, available_memory};
#[cfg(not(target_family = "wasm"))]
pub use weight_image::check_weight_image;
