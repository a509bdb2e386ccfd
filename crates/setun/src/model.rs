//! A model whose weights are in host memory.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use setun_checkpoint::{ModelConfig, Options, Source, Warning};
use setun_model::Weights;
use setun_text::{ChatTemplate, SamplerOptions, Tokenizer};
use web_time::Instant;

use crate::{
    error::Error,
    header::ModelHeader,
    loader::Loader,
    source::{ModelSource, slice},
};

/// An opened model. Give it to [`Engine::builder`](crate::Engine::builder).
pub struct Model {
    pub(crate) header: ModelHeader,
    pub(crate) weights: Weights,
    /// Where it was read from, if it can be read from there again.
    pub(crate) source: Option<ModelSource>,
    pub(crate) load_time: Duration,
    pub(crate) warnings: Vec<Warning>,
}

impl Model {
    /// Reads one file that carries its configuration and tokenizer in its metadata, as the
    /// embedded model does.
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
        layout: Source,
        name: impl Into<String>,
        files: &BTreeMap<&str, &[u8]>,
    ) -> Result<Self, Error> {
        let begun = Instant::now();
        let mut loader = Loader::new(layout, Options::default(), name.into());
        while let Some(want) = loader.next_read() {
            let bytes = files.get(want.file.as_str()).map(|bytes| slice(bytes, want.range));
            loader.give(bytes)?;
        }
        Self::from_loader(loader.header()?, loader, None, begun)
    }

    /// The story model that comes with this crate.
    ///
    /// # Errors
    ///
    /// None that a user can cause.
    #[cfg(feature = "embedded-model")]
    pub fn embedded() -> Result<Self, Error> {
        let model = Self::from_bytes(crate::EMBEDDED_NAME, crate::EMBEDDED_MODEL)?;
        Ok(Self { source: Some(ModelSource::embedded()), ..model })
    }

    pub(crate) fn from_loader(
        header: ModelHeader,
        loader: Loader,
        source: Option<ModelSource>,
        begun: Instant,
    ) -> Result<Self, Error> {
        let warnings = loader.warnings().to_vec();
        let weights = loader.finish()?;
        Ok(Self { header, weights, source, load_time: begun.elapsed(), warnings })
    }

    /// The name it is reported by.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.header.name
    }

    /// All that is known without the weights.
    #[must_use]
    pub fn header(&self) -> &ModelHeader {
        &self.header
    }

    /// The configuration.
    #[must_use]
    pub fn config(&self) -> &ModelConfig {
        &self.header.config
    }

    /// The weights.
    #[must_use]
    pub fn weights(&self) -> &Weights {
        &self.weights
    }

    /// The tokenizer, if the model has one.
    ///
    /// # Errors
    ///
    /// If it has one that cannot be used here.
    pub fn tokenizer(&self) -> Result<Option<&Arc<dyn Tokenizer>>, Error> {
        self.header.tokenizer()
    }

    /// The chat template, if the model has one.
    #[must_use]
    pub fn chat_template(&self) -> Option<&ChatTemplate> {
        self.header.chat_template()
    }

    /// The model's own defaults of sampling.
    #[must_use]
    pub fn sampling_defaults(&self) -> &SamplerOptions {
        &self.header.sampling
    }

    /// Repairs and assumptions made while the model was read.
    #[must_use]
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// Seconds that loading took.
    #[must_use]
    pub fn load_seconds(&self) -> f64 {
        self.load_time.as_secs_f64()
    }
}
