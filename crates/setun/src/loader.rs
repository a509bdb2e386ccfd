//! Checkpoint bytes as a header and weights, without IO.

#[cfg(not(target_family = "wasm"))]
use std::collections::BTreeSet;
use std::sync::Arc;

use setun_checkpoint::{
    Answer, Dtype, Options, ReadRequest, Reader, Source, TensorInfo, Warning, warning::listed,
};
use setun_model::{Weights, WeightsBuilder};
use setun_ops::{
    WeightData, WeightId,
    weight::{ScaleKind, WeightKind},
};
use setun_text::{ChatTemplate, ChatTemplateFiles, HfTokenizer, SamplerOptions};

use crate::{
    error::Error,
    header::{HeaderTokenizer, ModelHeader},
};

/// Longer contexts are served up to here: tables for the positions are made beforehand.
const MAX_POSITIONS: usize = 1 << 17;

/// Columns that share a scale in the models whose headers leave that open.
const GROUP: usize = 128;

/// Loads a model without doing any IO: it says which bytes it wants next and is handed them.
#[derive(Debug)]
pub(crate) struct Loader {
    name: String,
    reader: Reader,
    weights: Option<WeightsBuilder>,
    warnings: Vec<Warning>, // the reader's, and of tensors that are not used
}

impl Loader {
    /// Of a folder or a file, with a name for the model to be reported by.
    pub(crate) fn new(layout: Source, options: Options, name: String) -> Self {
        let reader = Reader::with_options(layout, options);
        Self { name, reader, weights: None, warnings: vec![] }
    }

    /// The bytes that come next, or `None` when all are there. Ranges of one file ascend, so that one
    /// sequential download serves most of it, with these exceptions: after the last piece of a
    /// GGUF file's header, data begin where that ends, perhaps within the piece; an ONNX graph is
    /// walked through before its data are read; and where only data say how matrices are scaled,
    /// as in most GGUF types, the first layer comes before all others.
    pub(crate) fn next_read(&self) -> Option<ReadRequest> {
        self.reader.next_read()
    }

    /// Takes the bytes that were requested; fewer where the file ends, `None` where there is no
    /// file. The first headers are checked whole before any tensor is requested.
    pub(crate) fn give(&mut self, bytes: Option<&[u8]>) -> Result<(), Error> {
        self.reader.give(bytes.map_or(Answer::Missing, Answer::Bytes))?;
        if self.weights.is_none()
            && let (Some(config), Some(tensors)) = (self.reader.config(), self.reader.tensors())
        {
            let positions = config.context_length.min(MAX_POSITIONS);
            let weights = WeightsBuilder::new(config, tensors, positions)?;
            self.warnings = self.reader.warnings().to_vec();
            self.warnings.extend(unused(&weights, tensors));
            self.weights = Some(weights);
        }
        if let Some(weights) = &mut self.weights {
            while let Some(tensor) = self.reader.take() {
                weights.add(tensor)?;
            }
        }
        Ok(())
    }

    /// What was mended or guessed so far, as a user should know.
    pub(crate) fn warnings(&self) -> &[Warning] {
        if self.weights.is_some() { &self.warnings } else { self.reader.warnings() }
    }

    /// Refuses files that are longer than their format says; see [`Reader::check_sizes`].
    pub(crate) fn check_sizes(
        &self,
        size_of: impl FnMut(&str) -> Option<u64>,
    ) -> Result<(), Error> {
        Ok(self.reader.check_sizes(size_of)?)
    }

    /// The files that tensors are read from, once the headers are read.
    #[cfg(not(target_family = "wasm"))]
    pub(crate) fn files(&self) -> BTreeSet<String> {
        let tensors = self.reader.tensors().unwrap_or_default();
        let files = tensors.iter().map(|info| info.file.to_string());
        files.chain(self.reader.sized_files()).collect()
    }

    /// Bytes of a file by its format, where that says so; see [`Reader::file_size`].
    pub(crate) fn file_size(&self, file: &str) -> Option<u64> {
        self.reader.file_size(file)
    }

    /// Whether the headers are read.
    pub(crate) fn has_headers(&self) -> bool {
        self.weights.is_some()
    }

    /// Whether it is known how each weight will be stored: by the headers, and where those do not
    /// say how matrices are scaled, by the first layer.
    pub(crate) fn is_settled(&self) -> bool {
        self.weights.as_ref().is_some_and(WeightsBuilder::is_settled)
    }

    /// All but the weights, once the headers are read.
    pub(crate) fn header(&self) -> Result<ModelHeader, Error> {
        let (Some(weights), Some(config)) = (&self.weights, self.reader.config()) else {
            return Err(self.unfinished());
        };
        let tensors = self.reader.tensors().unwrap_or_default();
        Ok(ModelHeader {
            name: self.name.clone(),
            config: config.clone(),
            layout: weights.layout().clone(),
            kinds: self.kinds(weights),
            total_bytes: tensors.iter().map(TensorInfo::bytes).sum(),
            tokenizer: self.tokenizer()?,
            template: self.template()?,
            sampling: self.sampling(),
        })
    }

    /// The weights in memory, once all is read.
    pub(crate) fn finish(self) -> Result<Weights, Error> {
        match self.weights {
            Some(weights) if self.reader.next_read().is_none() => Ok(weights.finish()?),
            _ => Err(Error::Unfinished { model: self.name }),
        }
    }

    /// Weights that are whole; they are no longer kept here.
    pub(crate) fn take_ready(&mut self) -> Vec<(WeightId, WeightData)> {
        self.weights.as_mut().map(WeightsBuilder::take_ready).unwrap_or_default()
    }

    /// Fails with the name of what is missing, if it has not given all weights away.
    pub(crate) fn check_taken(&mut self) -> Result<(), Error> {
        match self.weights.take() {
            Some(weights) => Ok(weights.finish_taken().map(drop)?),
            None => Err(self.unfinished()),
        }
    }

    /// Kinds of the weights. Where the headers do not say how matrices are scaled, it is taken to be
    /// as in the families that are published so, until the first layer shows it: by groups of
    /// columns in floats, `Q2_0` and their kin, unless the configuration names shards.
    fn kinds(&self, weights: &WeightsBuilder) -> Vec<WeightKind> {
        let mut kinds = weights.kinds().to_vec();
        if !weights.is_settled() && self.are_groups_likely() {
            let ternary = kinds.iter_mut().filter(|kind| matches!(kind, WeightKind::Ternary(_)));
            ternary.for_each(|kind| *kind = WeightKind::Ternary(ScaleKind::ColumnGroups(GROUP)));
        }
        kinds
    }

    fn are_groups_likely(&self) -> bool {
        let Some(quantization) = self.reader.config().map(|config| &config.quantization) else {
            return false;
        };
        let mut tensors = self.reader.tensors().unwrap_or_default().iter();
        let in_data = tensors.find(|info| info.scale_is_in_data(quantization.mode));
        let is_grouped = |dtype| {
            use Dtype::{Bf16, F16, F32, Pq2_0, Ptq1_0, Q1_0, Q2_0, Q2_0Wide};
            matches!(dtype, F32 | F16 | Bf16 | Q1_0 | Q2_0 | Q2_0Wide | Pq2_0 | Ptq1_0)
        };
        in_data.is_some_and(|info| is_grouped(info.dtype)) && quantization.shards == 1
    }

    fn tokenizer(&self) -> Result<HeaderTokenizer, Error> {
        if let Some(error) = self.reader.tokenizer_error() {
            return Ok(Err(Arc::clone(error)));
        }
        let bytes = self.reader.files().get("tokenizer.json");
        let tokenizer = bytes.map(HfTokenizer::from_bytes).transpose()?;
        Ok(Ok(tokenizer.map(|tokenizer| Arc::new(tokenizer) as _)))
    }

    fn template(&self) -> Result<Option<Arc<ChatTemplate>>, Error> {
        let files = self.reader.files();
        let template = ChatTemplate::from_files(ChatTemplateFiles {
            tokenizer_config: files.get("tokenizer_config.json"),
            chat_template_jinja: files.get("chat_template.jinja"),
            chat_template_json: files.get("chat_template.json"),
        })?;
        Ok(template.map(Arc::new))
    }

    /// What `generation_config.json` says; greedy unless that samples.
    fn sampling(&self) -> SamplerOptions {
        let generation = self.reader.generation();
        let is_sampled = generation.do_sample.unwrap_or(false);
        SamplerOptions {
            temperature: if is_sampled { generation.temperature.unwrap_or(1.0) } else { 0.0 },
            top_k: generation.top_k.unwrap_or(0),
            top_p: generation.top_p.unwrap_or(1.0),
            min_p: generation.min_p.unwrap_or(0.0),
            repetition_penalty: generation.repetition_penalty.unwrap_or(1.0),
            ..SamplerOptions::default()
        }
    }

    fn unfinished(&self) -> Error {
        Error::Unfinished { model: self.name.clone() }
    }
}

/// The warning that a model does without some of its tensors; none if it uses all.
fn unused(weights: &WeightsBuilder, tensors: &[TensorInfo]) -> Option<Warning> {
    let unused = weights.unused();
    let first = tensors.iter().find(|info| Some(&info.name) == unused.first())?;
    let what = format!("tensors are not used: {}", listed(unused));
    Some(Warning { file: first.file.to_string(), what })
}
