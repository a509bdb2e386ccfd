//! Parts that an engine starts from.

use std::{sync::Arc, time::Duration};

use futures::future::LocalBoxFuture;
use setun_clock::Clock;
use setun_model::{MaybeSend, Model};
use setun_text::{ChatTemplate, MaybeShared, SamplerOptions, Tokenizer};

use crate::{
    device::{DeviceKind, DeviceReport, HeadType, SelfTest},
    error::Error,
    memory_pressure::SharedMonitor,
    model_shape::ModelShape,
    options::GenerateOptions,
};

/// Models on their devices, and what belongs to all of them.
pub struct EngineParts {
    /// Name of the model.
    pub name: String,
    /// Architecture and sizes; none of a custom model.
    pub shape: Option<ModelShape>,
    /// How texts become tokens and back.
    pub tokenizer: Option<Arc<dyn Tokenizer>>,
    /// How conversations become texts.
    pub template: Option<Arc<ChatTemplate>>,
    /// The tokens that end a text.
    pub eos_tokens: Vec<u32>,
    /// Sampling options that are the model's own.
    pub sampling: SamplerOptions,
    /// Options that generations take where they are not given.
    pub defaults: GenerateOptions,
    /// Reports how short memory is, and how often it is asked at most.
    pub monitor: Option<(SharedMonitor, Duration)>,
    /// The clock of deadlines and waits; only tests have another than the system's.
    pub clock: Clock,
    /// Seconds that loading took.
    pub load_seconds: f64,
    /// Repairs and assumptions made while the model was read.
    pub warnings: Vec<String>,
    /// The devices that were looked at before those of the replicas.
    pub report: DeviceReport,
    /// Compares the devices with the definitions; none where there are no definitions.
    pub self_tester: Option<Box<dyn SelfTester>>,
    /// One or more, of equal models.
    pub replicas: Vec<Replica>,
}

/// A model on its device.
pub struct Replica {
    /// Logits for batches.
    pub model: Box<dyn Model>,
    /// What runs it.
    pub backend: DeviceKind,
    /// Its level, for example `avx2`; of a GPU its own name.
    pub level: String,
    /// Threads that run.
    pub threads: usize,
    /// How the head is kept.
    pub head: HeadType,
    /// Bytes of the weights, as they are kept.
    pub weight_bytes: usize,
    /// Why this device runs.
    pub report: DeviceReport,
    /// Most blocks of the cache; `usize::MAX` for no limit but that of the options.
    pub max_blocks: usize,
    /// How to load the model once more; none where its bytes are gone.
    pub reload: Option<Box<dyn ReloadModel>>,
    /// A smaller model of the same vocabulary, which proposes tokens.
    pub draft: Option<ReplicaDraft>,
}

/// A smaller model beside that of a [`Replica`].
pub struct ReplicaDraft {
    /// Logits for batches.
    pub model: Box<dyn Model>,
    /// How to load it once more; none where its bytes are gone.
    pub reload: Option<Box<dyn ReloadModel>>,
}

/// Loads a model once more after its device was lost.
pub trait ReloadModel: MaybeSend {
    /// The model, with nothing in its cache.
    fn reload(&mut self) -> LocalBoxFuture<'_, Result<Box<dyn Model>, Error>>;
}

/// Compares what an engine's devices compute with the definitions.
pub trait SelfTester: MaybeShared {
    /// Tests the devices of a report that run. Generations under way go on.
    fn test<'a>(
        &'a self,
        report: &'a DeviceReport,
        test: SelfTest,
    ) -> LocalBoxFuture<'a, Result<SelfTest, Error>>;
}
