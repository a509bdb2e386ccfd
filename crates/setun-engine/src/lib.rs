//! The engine: continuous batching of generations over one model.
//!
//! A scheduler owns the model and steps a list of sequences, whose tokens come as streams of events.
//! The crate knows the traits [`Model`](setun_model::Model) and [`Tokenizer`](setun_text::Tokenizer)
//! alone: [`Engine::start`] takes models that are on their devices, and the crate `setun` opens them.

mod beams;
mod command;
mod constraint;
mod context;
mod device;
mod engine;
mod engine_info;
mod error;
mod event;
mod event_queue;
#[cfg(test)]
mod fake_model;
mod histogram;
mod inferencer;
mod memory_pressure;
mod metrics;
mod model_shape;
mod options;
mod parts;
mod pooling;
mod profile;
#[cfg(test)]
mod ranking_model;
mod request_slots;
mod saved_session;
mod scheduler;
mod sequence;
mod speculation;
mod stream;
mod sync;
mod telemetry;
mod thinking;
mod timeline;

pub use beams::{Beam, BeamOptions, BeamText, EarlyStopping};
pub use constraint::{Constraint, ConstraintState, SharedConstraint};
pub use context::{
    ContextStrategy, FullContext, SharedContextStrategy, SinksAndWindow, TruncateMiddle,
};
pub use device::{DeviceKind, DeviceReport, DeviceVerdict, GpuApi, HeadType, SelfTest, Verdict};
pub use engine::{
    BeamGeneration, BeamTexts, ChatCompletion, Classification, Embedding, Engine,
    IntoEngineBuilder, Score, Session, WeakEngine,
};
pub use error::{Error, ErrorCode, write_chain};
pub use event::{
    Done, Event, FinishReason, PromptProgress, PromptTokens, TextDelta, Timings, TokenLogprob,
    Usage,
};
pub use histogram::{Histogram, TimeHistogram};
pub use inferencer::{
    Inferencer, InferencerCache, InferencerOptions, Inferred, Ragged, TokenLogits,
};
pub use memory_pressure::{MemoryMonitor, Pressure, SharedMonitor};
pub use metrics::{EngineMetrics, OperationTime};
pub use model_shape::ModelShape;
pub use options::{
    BackPressure, EngineOptions, GenerateOptions, ListBound, Prompt, ReasoningEffort,
};
pub use parts::{EngineParts, ReloadModel, Replica, ReplicaDraft, SelfTester};
pub use pooling::Pooling;
pub use profile::{EngineProfile, PhaseProfile};
pub use stream::{CancelHandle, Completion, GenerationStream};
pub use timeline::{TimedStep, Timeline};
