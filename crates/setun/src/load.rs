//! Loading a model from wherever its bytes are.

use std::sync::Arc;

use setun_checkpoint::{
    Answer, Dtype, ModelConfig, Options, ReadRequest, Reader, Source, TensorInfo, Warning,
};
use setun_model::{Layout, WeightsBuilder};
use setun_ops::{
    WeightData, WeightId,
    weight::{ScaleKind, WeightKind},
};
use setun_text::{ChatTemplate, ChatTemplateFiles, HfTokenizer, SamplerOptions, Tokenizer};
use web_time::Instant;

use crate::{error::Error, model::Model};

/// Longer contexts are served up to here: tables for the positions are made beforehand.
const MAX_POSITIONS: usize = 1 << 17;

/// Columns that share a scale in the models whose headers leave that open.
const GROUP: usize = 128;

/// Loads a model without doing any IO: it says which bytes it wants next and is handed them.
///
/// ```no_run
/// # fn read(want: &setun::ReadRequest) -> Option<Vec<u8>> { None }
/// let mut loader = setun::Loader::new(setun::Source::Folder, "my model");
/// while let Some(want) = loader.next_read() {
///     let bytes: Option<Vec<u8>> = read(&want); // from a disk, a network, a test
///     loader.give(bytes.as_deref())?;
/// }
/// let model = loader.finish()?;
/// # Ok::<(), setun::Error>(())
/// ```
#[derive(Debug)]
pub struct Loader {
    name: String,
    reader: Reader,
    weights: Option<WeightsBuilder>,
    begun: Instant,
}

impl Loader {
    /// A loader for a folder or a file, with a name for the model to be reported by.
    #[must_use]
    pub fn new(source: Source, name: impl Into<String>) -> Self {
        Self::with_options(source, Options::default(), name)
    }

    /// The same, told what a file does not say of itself.
    #[must_use]
    pub fn with_options(source: Source, options: Options, name: impl Into<String>) -> Self {
        let reader = Reader::with_options(source, options);
        Self { name: name.into(), reader, weights: None, begun: Instant::now() }
    }

    /// The bytes that come next, or `None` when all are there. Ranges of one file ascend, so that one
    /// sequential download serves most of it, with these exceptions: after the last piece of a
    /// GGUF file's header, data begin where that ends, perhaps within the piece; an ONNX graph is
    /// walked through before its data are read; and where only data tell how matrices are scaled,
    /// as in most GGUF types, the first layer comes before all others.
    #[must_use]
    pub fn next_read(&self) -> Option<ReadRequest> {
        self.reader.next_read()
    }

    /// The bytes that were wanted; fewer where the file ends, `None` where there is no file.
    ///
    /// # Errors
    ///
    /// If a file is missing, damaged, or not of a model that can be run. The first headers
    /// are checked whole before any tensor is asked for.
    pub fn give(&mut self, bytes: Option<&[u8]>) -> Result<(), Error> {
        self.reader.give(bytes.map_or(Answer::Missing, Answer::Bytes))?;
        if self.weights.is_none()
            && let (Some(config), Some(tensors)) = (self.reader.config(), self.reader.tensors())
        {
            let positions = config.context_length.min(MAX_POSITIONS);
            let builder = WeightsBuilder::new(config, tensors, positions)?;
            self.weights = Some(builder);
        }
        if let Some(weights) = &mut self.weights {
            while let Some(tensor) = self.reader.take() {
                weights.add(tensor)?;
            }
        }
        Ok(())
    }

    /// What was mended or guessed so far, as a user should know.
    #[must_use]
    pub fn warnings(&self) -> &[Warning] {
        self.reader.warnings()
    }

    /// Bytes of all tensors, once the headers are known: for progress.
    #[must_use]
    pub fn total_bytes(&self) -> Option<u64> {
        let tensors = self.reader.tensors()?;
        Some(tensors.iter().map(|tensor| tensor.range.end - tensor.range.start).sum())
    }

    /// The model.
    ///
    /// # Errors
    ///
    /// If bytes are still wanted, or the tokenizer or the chat template cannot be read.
    pub fn finish(self) -> Result<Model, Error> {
        let about = self.about()?;
        self.finish_with(about)
    }

    /// Reads tokenizer and template, once the headers are known, and holds them against the
    /// configuration.
    ///
    /// # Errors
    ///
    /// If one cannot be read.
    pub fn texts(&self) -> Result<Texts, Error> {
        let about = self.about()?;
        let (mut warnings, vocab) = (vec![], about.config.vocab_size);
        let tokens = about.tokenizer.as_ref().map(|tokenizer| tokenizer.vocab_size());
        if tokens.is_some_and(|tokens| tokens > vocab) {
            let tokens = tokens.unwrap_or(0);
            warnings.push(format!("the tokenizer has {tokens} tokens, the model only {vocab}"));
        }
        let outside = |token: &&u32| **token as usize >= vocab;
        if let Some(token) = about.config.eos_tokens.iter().find(outside) {
            warnings.push(format!("token {token} ends a text, but the model has only {vocab}"));
        }
        Ok(Texts { tokens, has_template: about.template.is_some(), warnings })
    }

    /// The model, where all but the weights is known.
    pub(crate) fn finish_with(self, mut about: About) -> Result<Model, Error> {
        about.load_seconds = self.seconds();
        let Some(weights) = self.weights.filter(|_| self.reader.next_read().is_none()) else {
            return Err(Error::Unfinished { model: self.name });
        };
        Ok(Model { about, weights: weights.finish()?, origin: None })
    }

    /// The weights on their way, once it is known how each will be stored: by the headers, and
    /// where those do not say how matrices are scaled, by the first layer.
    pub(crate) fn weights(&self) -> Option<&WeightsBuilder> {
        self.weights.as_ref().filter(|weights| weights.is_settled())
    }

    /// Whether all is there that [`outline`](Self::outline) needs.
    pub(crate) fn has_headers(&self) -> bool {
        self.weights.is_some()
    }

    /// How each weight will be stored, by the headers alone. Where those do not say how matrices are
    /// scaled, it is taken to be as in the families that are published so: by groups of columns in
    /// floats and `Q2_0`, unless the configuration tells of shards.
    pub(crate) fn outline(&self) -> Option<(Layout, Vec<WeightKind>)> {
        let weights = self.weights.as_ref()?;
        let mut kinds = weights.kinds().to_vec();
        let quantization = &self.reader.config()?.quantization;
        let in_data = |info: &&TensorInfo| info.scale_is_in_data(quantization.mode);
        let dtype = self.reader.tensors()?.iter().find(in_data).map(|info| info.dtype);
        let grouped = match dtype {
            Some(Dtype::F32 | Dtype::F16 | Dtype::Bf16 | Dtype::Q2_0 | Dtype::Q2_0Wide) => {
                quantization.shards == 1
            }
            _ => false,
        };
        if grouped && !weights.is_settled() {
            let ternary = kinds.iter_mut().filter(|kind| matches!(kind, WeightKind::Ternary(_)));
            ternary.for_each(|kind| *kind = WeightKind::Ternary(ScaleKind::ColumnGroups(GROUP)));
        }
        Some((weights.layout().clone(), kinds))
    }

    /// Weights that are whole; they are no longer kept here.
    pub(crate) fn take_ready(&mut self) -> Vec<(WeightId, WeightData)> {
        self.weights.as_mut().map(WeightsBuilder::take_ready).unwrap_or_default()
    }

    /// Fails with the name of what is missing, if it has not given all weights away.
    pub(crate) fn check_taken(&mut self) -> Result<(), Error> {
        match self.weights.take() {
            Some(weights) => Ok(weights.finish_taken().map(drop)?),
            None => Err(Error::Unfinished { model: self.name.clone() }),
        }
    }

    /// Seconds since it began.
    pub(crate) fn seconds(&self) -> f64 {
        self.begun.elapsed().as_secs_f64()
    }

    /// All but the weights.
    pub(crate) fn about(&self) -> Result<About, Error> {
        let files = self.reader.files();
        let tokenizer = files.get("tokenizer.json").map(HfTokenizer::from_bytes).transpose()?;
        let template = ChatTemplate::from_files(ChatTemplateFiles {
            tokenizer_config: files.get("tokenizer_config.json"),
            chat_template_jinja: files.get("chat_template.jinja"),
            chat_template_json: files.get("chat_template.json"),
        })?;
        let generation = self.reader.generation();
        let sampling = generation.do_sample.unwrap_or(false);
        let temperature = if sampling { generation.temperature.unwrap_or(1.0) } else { 0.0 };
        let defaults = SamplerOptions {
            temperature,
            top_k: generation.top_k.unwrap_or(0),
            top_p: generation.top_p.unwrap_or(1.0),
            min_p: generation.min_p.unwrap_or(0.0),
            repetition_penalty: generation.repetition_penalty.unwrap_or(1.0),
            ..SamplerOptions::default()
        };
        let Some(config) = self.reader.config().cloned() else {
            return Err(Error::Unfinished { model: self.name.clone() });
        };
        Ok(About {
            name: self.name.clone(),
            config,
            tokenizer: tokenizer.map(|tokenizer| Arc::new(tokenizer) as _),
            template: template.map(Arc::new),
            defaults,
            load_seconds: self.seconds(),
        })
    }
}

/// What [`Loader::texts`] found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Texts {
    /// Tokens of the tokenizer, if there is one.
    pub tokens: Option<usize>,
    /// Whether there is a chat template.
    pub has_template: bool,
    /// What does not fit the configuration.
    pub warnings: Vec<String>,
}

/// A model but for its weights.
#[derive(Clone)]
pub(crate) struct About {
    pub(crate) name: String,
    pub(crate) config: ModelConfig,
    pub(crate) tokenizer: Option<Arc<dyn Tokenizer>>,
    pub(crate) template: Option<Arc<ChatTemplate>>,
    pub(crate) defaults: SamplerOptions,
    pub(crate) load_seconds: f64,
}
