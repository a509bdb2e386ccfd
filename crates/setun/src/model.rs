//! An opened model: its weights in host memory, and what comes with them.

#[cfg(not(target_family = "wasm"))]
use std::path::Path;
use std::{collections::BTreeMap, sync::Arc};

use setun_checkpoint::{ModelConfig, Source};
#[cfg(not(target_family = "wasm"))]
use setun_engine::{Inferencer, InferencerOptions};
use setun_model::Weights;
use setun_text::{ChatTemplate, SamplerOptions, Tokenizer};

#[cfg(not(target_family = "wasm"))]
use crate::device::{LoadedModel, load_onto};
#[cfg(not(target_family = "wasm"))]
use crate::reader::ModelReader;
use crate::{
    bytes::{Origin, slice},
    device::{DeviceOptions, HeadType, head_type},
    error::Error,
    load::{About, Loader},
};

/// The story model that comes with this crate, as one file.
#[cfg(feature = "embedded-model")]
pub const EMBEDDED_MODEL: &[u8] = include_bytes!("../embedded/stories.safetensors");

/// Name of the embedded model.
pub const EMBEDDED_NAME: &str = "setun-stories";

/// An opened model. Give it to [`Engine::builder`](crate::Engine::builder).
pub struct Model {
    pub(crate) about: About,
    pub(crate) weights: Weights,
    /// Where it was read from, if it can be read from there again.
    pub(crate) origin: Option<Origin>,
}

impl Model {
    /// Opens a folder in Hugging Face's layout, or one `.safetensors` file.
    ///
    /// # Errors
    ///
    /// If there is no model, or it is damaged or of a kind that cannot be run.
    #[cfg(not(target_family = "wasm"))]
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        pollster::block_on(ModelReader::open(path)?.read())
    }

    /// Reads one `.safetensors` file that carries its configuration and tokenizer in its
    /// metadata, as the embedded model does.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    pub fn from_bytes(name: impl Into<String>, bytes: &[u8]) -> Result<Self, Error> {
        let name = name.into();
        let files = BTreeMap::from([(name.as_str(), bytes)]);
        Self::from_files(Source::File(name.clone()), name.clone(), &files)
    }

    /// Reads the files of a folder, or a file and those beside it, from memory.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    pub fn from_files(
        source: Source,
        name: impl Into<String>,
        files: &BTreeMap<&str, &[u8]>,
    ) -> Result<Self, Error> {
        let mut loader = Loader::new(source, name);
        while let Some(want) = loader.next_read() {
            let bytes = files.get(want.file.as_str()).map(|bytes| slice(bytes, want.range));
            loader.give(bytes)?;
        }
        loader.finish()
    }

    /// The story model that comes with this crate.
    ///
    /// # Errors
    ///
    /// None that a user can cause.
    #[cfg(feature = "embedded-model")]
    pub fn embedded() -> Result<Self, Error> {
        let mut model = Self::from_bytes(EMBEDDED_NAME, EMBEDDED_MODEL)?;
        model.origin = Some(crate::reader::embedded_origin());
        Ok(model)
    }

    /// Moves the weights to a device, for use without an engine.
    ///
    /// # Errors
    ///
    /// If the device is not here, or has not enough memory.
    #[cfg(not(target_family = "wasm"))]
    pub fn load_onto(self, options: DeviceOptions) -> Result<LoadedModel, Error> {
        pollster::block_on(load_onto(self.into(), options)).map(|loaded| loaded.placed)
    }

    /// Moves the weights to a device, for batches of token ids. Its end tokens end rows.
    ///
    /// # Errors
    ///
    /// If the device is not here, or has not enough memory.
    #[cfg(not(target_family = "wasm"))]
    pub fn into_inferencer(self, device: DeviceOptions) -> Result<Inferencer, Error> {
        let eos_tokens = self.config().eos_tokens.clone();
        let options = InferencerOptions { eos_tokens, ..InferencerOptions::default() };
        Ok(Inferencer::new(self.load_onto(device)?.model, options))
    }

    /// How its head is kept with some options: what [`HeadType::Auto`] comes to.
    #[must_use]
    pub fn head_type(&self, options: &DeviceOptions) -> HeadType {
        head_type(&self.weights.layout, &self.weights.kinds(), options)
    }

    /// The name it is reported by.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.about.name
    }

    /// The configuration.
    #[must_use]
    pub fn config(&self) -> &ModelConfig {
        &self.about.config
    }

    /// The weights.
    #[must_use]
    pub fn weights(&self) -> &Weights {
        &self.weights
    }

    /// The tokenizer, where there is one.
    #[must_use]
    pub fn tokenizer(&self) -> Option<&Arc<dyn Tokenizer>> {
        self.about.tokenizer.as_ref()
    }

    /// The chat template, where there is one.
    #[must_use]
    pub fn chat_template(&self) -> Option<&ChatTemplate> {
        self.about.template.as_deref()
    }

    /// What sampling does unless told otherwise.
    #[must_use]
    pub fn sampling_defaults(&self) -> &SamplerOptions {
        &self.about.defaults
    }

    /// Seconds that loading took.
    #[must_use]
    pub fn load_seconds(&self) -> f64 {
        self.about.load_seconds
    }
}
