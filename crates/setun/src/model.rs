//! An opened model: its weights in host memory, and what comes with them.

use std::{collections::BTreeMap, ops::Range, path::Path, sync::Arc};

use setun_checkpoint::{ModelConfig, Source};
use setun_model::Weights;
use setun_text::{ChatTemplate, SamplerOptions, Tokenizer};

#[cfg(not(target_family = "wasm"))]
use crate::device::{LoadedModel, load_onto};
use crate::{
    device::{DeviceOptions, HeadType, head_type},
    error::Error,
    files::Files,
    load::Loader,
};

/// The story model that comes with this crate, as one file.
#[cfg(feature = "embedded-model")]
pub const EMBEDDED_MODEL: &[u8] = include_bytes!("../embedded/stories.safetensors");

/// Name of the embedded model.
pub const EMBEDDED_NAME: &str = "setun-stories";

/// An opened model. Give it to [`Engine::builder`](crate::Engine::builder).
pub struct Model {
    pub(crate) name: String,
    pub(crate) config: ModelConfig,
    pub(crate) weights: Weights,
    pub(crate) tokenizer: Option<Arc<dyn Tokenizer>>,
    pub(crate) template: Option<Arc<ChatTemplate>>,
    pub(crate) defaults: SamplerOptions,
    pub(crate) load_seconds: f64,
}

impl Model {
    /// Opens a folder in Hugging Face's layout, or one `.safetensors` file.
    ///
    /// # Errors
    ///
    /// If there is no model, or it is damaged or of a kind that cannot be run.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        let (folder, source) = locate(path)?;
        let mut loader = Loader::new(source, name);
        let (mut files, mut bytes) = (Files::new(folder), vec![]);
        while let Some(want) = loader.want() {
            let found = files.read(&want, &mut bytes)?;
            loader.give(found.then_some(bytes.as_slice()))?;
        }
        loader.finish()
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
        while let Some(want) = loader.want() {
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
        Self::from_bytes(EMBEDDED_NAME, EMBEDDED_MODEL)
    }

    /// Moves the weights to a device, for use without an engine.
    ///
    /// # Errors
    ///
    /// If the device is not here, or has not enough memory.
    #[cfg(not(target_family = "wasm"))]
    pub fn load_onto(self, options: DeviceOptions) -> Result<LoadedModel, Error> {
        pollster::block_on(load_onto(self, options))
    }

    /// How its head is kept with some options: what [`HeadType::Auto`] comes to.
    #[must_use]
    pub fn head_type(&self, options: &DeviceOptions) -> HeadType {
        head_type(&self.weights, options)
    }

    /// The name it is reported by.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The configuration.
    #[must_use]
    pub fn config(&self) -> &ModelConfig {
        &self.config
    }

    /// The weights.
    #[must_use]
    pub fn weights(&self) -> &Weights {
        &self.weights
    }

    /// The tokenizer, where there is one.
    #[must_use]
    pub fn tokenizer(&self) -> Option<&Arc<dyn Tokenizer>> {
        self.tokenizer.as_ref()
    }

    /// The chat template, where there is one.
    #[must_use]
    pub fn chat_template(&self) -> Option<&ChatTemplate> {
        self.template.as_deref()
    }

    /// What sampling does unless told otherwise.
    #[must_use]
    pub fn sampling_defaults(&self) -> &SamplerOptions {
        &self.defaults
    }

    /// Seconds that loading took.
    #[must_use]
    pub fn load_seconds(&self) -> f64 {
        self.load_seconds
    }
}

fn locate(path: &Path) -> Result<(&Path, Source), Error> {
    let metadata = path.metadata().map_err(|source| Error::Io { path: path.into(), source })?;
    if metadata.is_dir() {
        return Ok((path, Source::Folder));
    }
    let no_model = |found: String| Error::NoModel {
        path: path.into(),
        expected: "a folder with config.json and model.safetensors, or a .safetensors file",
        found,
    };
    match (path.extension().and_then(|e| e.to_str()), path.file_name().and_then(|n| n.to_str())) {
        (Some("safetensors"), Some(name)) => {
            Ok((path.parent().unwrap_or(Path::new("")), Source::File(name.to_owned())))
        }
        (Some(extension), _) => Err(no_model(format!("a .{extension} file"))),
        (None, _) => Err(no_model("a file without extension".into())),
    }
}

fn slice(bytes: &[u8], range: Option<Range<u64>>) -> &[u8] {
    let at = |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
    range.map_or(bytes, |range| &bytes[at(range.start)..at(range.end)])
}
