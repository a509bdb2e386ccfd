//! Custom models.

use std::sync::Arc;

use setun_model::Model as Forward;
use setun_text::{ChatTemplate, SamplerOptions, Tokenizer};

use setun_clock::Clock;
use setun_engine::{DeviceKind, DeviceReport, EngineParts, GenerateOptions, HeadType, Replica};

/// A custom model, for an [`Engine`](crate::Engine::builder): anything that gives logits for
/// batches of tokens. It runs where it likes; [`Engine::backend`](crate::Engine::backend) is
/// [`DeviceKind::Custom`], and the builder's device, threads and types are not used.
pub struct CustomModel {
    model: Box<dyn Forward>,
    name: String,
    tokenizer: Option<Arc<dyn Tokenizer>>,
    template: Option<Arc<ChatTemplate>>,
    eos_tokens: Vec<u32>,
    sampling: SamplerOptions,
}

impl CustomModel {
    /// Without a tokenizer, end tokens and a chat template; greedy.
    pub fn new(name: impl Into<String>, model: impl Forward + 'static) -> Self {
        Self::boxed(name, Box::new(model))
    }

    /// [`new`](Self::new) with a model that is on its device, as
    /// [`Model::load_onto`](crate::Model::load_onto) gives it.
    pub fn boxed(name: impl Into<String>, model: Box<dyn Forward>) -> Self {
        Self {
            model,
            name: name.into(),
            tokenizer: None,
            template: None,
            eos_tokens: vec![],
            sampling: SamplerOptions::default(),
        }
    }

    /// How texts become tokens and back.
    #[must_use]
    pub fn tokenizer(mut self, tokenizer: impl Tokenizer + 'static) -> Self {
        self.tokenizer = Some(Arc::new(tokenizer));
        self
    }

    /// How conversations become texts.
    #[must_use]
    pub fn template(mut self, template: ChatTemplate) -> Self {
        self.template = Some(Arc::new(template));
        self
    }

    /// The tokens that end a text.
    #[must_use]
    pub fn eos_tokens(mut self, tokens: impl Into<Vec<u32>>) -> Self {
        self.eos_tokens = tokens.into();
        self
    }

    /// Default options of sampling.
    #[must_use]
    pub fn sampling(mut self, defaults: SamplerOptions) -> Self {
        self.sampling = defaults;
        self
    }

    /// As if it had been loaded.
    pub(crate) fn into_parts(self) -> EngineParts {
        let replica = Replica {
            weight_bytes: self.model.memory().weights(),
            model: self.model,
            backend: DeviceKind::Custom,
            level: "custom".into(),
            threads: 1,
            head: HeadType::Stored,
            report: DeviceReport::default(),
            max_blocks: usize::MAX,
            reload: None,
            draft: None,
        };
        EngineParts {
            name: self.name,
            shape: None,
            tokenizer: self.tokenizer,
            template: self.template,
            eos_tokens: self.eos_tokens,
            sampling: self.sampling,
            defaults: GenerateOptions::default(),
            monitor: None,
            clock: Clock::system(),
            load_seconds: 0.0,
            warnings: vec![],
            report: DeviceReport::default(),
            self_tester: None,
            replicas: vec![replica],
        }
    }
}
