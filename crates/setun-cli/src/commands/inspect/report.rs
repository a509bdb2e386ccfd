//! Report of `setun inspect`.

use serde::Serialize;
use serde_json::{Map, Value};
use setun::{
    checkpoint::{
        CheckpointError, Files, ModelConfig, Reader, TensorInfo,
        config::QuantizationMode,
        files::{CHAT_TEMPLATE_JINJA, CHAT_TEMPLATE_JSON, TOKENIZER, TOKENIZER_CONFIG},
        write::config_json,
    },
    forward::{Layout, WeightsBuilder},
    ops::WeightSpec,
    text::{ChatTemplate, ChatTemplateFiles, HfTokenizer, TextError, Tokenizer, without_mark},
};

use super::{density::DensityReport, plan::PlanReport};
use crate::output::{counted, size, table};

/// All that is known of a checkpoint.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    name: String,
    /// In the names of `config.json`, with every default filled in.
    config: Map<String, Value>,
    kind: Option<Kind>,
    parameters: Option<Parameters>,
    tensor_bytes: u64,
    bits_per_weight: Option<f64>,
    tokenizer: Option<TokenizerReport>,
    chat_template: bool,
    tensors: Vec<TensorReport>,
    warnings: Vec<String>,
    /// Why it cannot be run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) problem: Option<String>,
    /// The operations of a step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) plan: Option<PlanReport>,
    /// What a text leaves open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) densities: Option<DensityReport>,
}

/// What `config.json` says by its architecture, or by saying nothing.
#[derive(Clone, Copy, Debug, Serialize)]
struct Kind {
    sub_norms: bool,
    head_norms: bool,
    weights: &'static str,
}

/// Numbers of parameters. A tied head counts as embedding.
#[derive(Clone, Copy, Debug, Default, Serialize)]
struct Parameters {
    ternary: u64,
    embedding: u64,
    head: u64,
    norms_and_biases: u64,
    total: u64,
}

#[derive(Debug, Serialize)]
struct TokenizerReport {
    kind: String,
    vocab_size: usize,
}

#[derive(Debug, Serialize)]
struct TensorReport {
    name: String,
    dtype: String,
    shape: Vec<usize>,
    bytes: u64,
    file: String,
}

impl Report {
    /// Gathers what the headers and small files say; `weights` only if it can be run.
    pub(super) fn new(
        name: &str,
        reader: &Reader,
        weights: Option<&WeightsBuilder>,
    ) -> Result<Self, CheckpointError> {
        let tensors = reader.tensors().unwrap_or_default();
        let parameters = weights.map(|weights| Parameters::of(weights.layout()));
        let tensor_bytes = tensors.iter().map(TensorInfo::bytes).sum();
        let unused = weights.map_or(&[][..], WeightsBuilder::unused);
        let mut warnings: Vec<_> = reader.warnings().iter().map(ToString::to_string).collect();
        warnings.extend(unused.iter().map(|name| format!("tensor `{name}` has no use")));
        let mut note = |error: TextError| warnings.push(error.to_string());
        let tokenizer = tokenizer(reader.files()).unwrap_or_else(|error| {
            note(error);
            None
        });
        let chat_template = has_chat_template(reader.files()).unwrap_or_else(|error| {
            note(error);
            false
        });
        Ok(Self {
            name: name.to_owned(),
            config: reader.config().map(config_map).transpose()?.unwrap_or_default(),
            kind: reader.config().map(Kind::of),
            parameters,
            tensor_bytes,
            bits_per_weight: parameters.map(|p| bits(tensor_bytes, p.total)),
            tokenizer,
            chat_template,
            tensors: tensors.iter().map(TensorReport::of).collect(),
            warnings,
            problem: None,
            plan: None,
            densities: None,
        })
    }

    /// For people.
    pub(super) fn text(&self) -> String {
        let entry = |name: &str, value: String| vec![name.to_owned(), value];
        let mut rows = vec![entry("model", self.name.clone())];
        rows.extend(self.config.iter().map(|(name, value)| entry(name, value.to_string())));
        if let Some(kind) = &self.kind {
            let norms = [("sub-norms", kind.sub_norms), ("norms of heads", kind.head_norms)];
            rows.extend(
                norms.map(|(name, has)| entry(name, if has { "yes" } else { "none" }.into())),
            );
            rows.push(entry("weights", kind.weights.into()));
        }
        if let Some(p) = &self.parameters {
            rows.push(entry(
                "parameters",
                format!(
                    "{}: {} ternary, {} in the embedding, {} in the head, {} in norms and biases",
                    p.total, p.ternary, p.embedding, p.head, p.norms_and_biases,
                ),
            ));
        }
        rows.push(entry("tensors", counted(self.tensors.len(), "tensor")));
        rows.push(entry("size of tensors", size(self.tensor_bytes)));
        if let Some(bits) = self.bits_per_weight {
            rows.push(entry("bits per weight", format!("{bits:.2}")));
        }
        rows.push(entry(
            "tokenizer",
            match &self.tokenizer {
                Some(tokenizer) => format!("{}, {} tokens", tokenizer.kind, tokenizer.vocab_size),
                None => "none".into(),
            },
        ));
        let template = if self.chat_template { "yes" } else { "none" };
        rows.push(entry("chat template", template.into()));
        let mut parts = vec![table(&rows)];
        if self.plan.is_none() && self.densities.is_none() {
            let tensors: Vec<_> = self.tensors.iter().map(TensorReport::row).collect();
            parts.push(table(&tensors));
        }
        if let Some(plan) = &self.plan {
            parts.push(plan.text());
        }
        if let Some(densities) = &self.densities {
            parts.push(densities.text());
        }
        if !self.warnings.is_empty() {
            let lines = self.warnings.iter().map(|warning| format!("warning: {warning}"));
            parts.push(lines.collect::<Vec<_>>().join("\n"));
        }
        parts.join("\n\n")
    }
}

impl Kind {
    fn of(config: &ModelConfig) -> Self {
        Self {
            sub_norms: config.sub_norms,
            head_norms: config.head_norms,
            weights: match config.quantization.mode {
                QuantizationMode::Offline => "ternary, with scales",
                QuantizationMode::Online => "master weights, quantized at load",
                QuantizationMode::FakeQuantized => "floats that are ternary already",
                QuantizationMode::Affine { .. } => "2-bit codes of MLX",
            },
        }
    }
}

impl Parameters {
    fn of(layout: &Layout) -> Self {
        let mut counts = Self { total: layout.parameters(), ..Self::default() };
        for (index, spec) in layout.specs.iter().enumerate() {
            let (count, elements) = match *spec {
                WeightSpec::Ternary { rows, columns, .. } => (&mut counts.ternary, rows * columns),
                WeightSpec::Dense { rows, columns } => {
                    let is_embedding = index == layout.embedding.0 as usize;
                    let count = if is_embedding { &mut counts.embedding } else { &mut counts.head };
                    (count, rows * columns)
                }
                WeightSpec::Vector { len } => (&mut counts.norms_and_biases, len),
                WeightSpec::Rope { .. } => continue, // computed, not stored
            };
            *count += elements as u64;
        }
        counts
    }
}

impl TensorReport {
    fn of(info: &TensorInfo) -> Self {
        Self {
            name: info.name.clone(),
            dtype: info.dtype.to_string(),
            shape: info.shape.clone(),
            bytes: info.bytes(),
            file: info.file.to_string(),
        }
    }

    fn row(&self) -> Vec<String> {
        vec![self.name.clone(), self.dtype.clone(), format!("{:?}", self.shape)]
    }
}

fn config_map(config: &ModelConfig) -> Result<Map<String, Value>, CheckpointError> {
    let text = config_json(config)?;
    let map: Option<Map<_, _>> = serde_json::from_str(&text).ok();
    Ok(map.unwrap_or_default().into_iter().filter(|(_, value)| !value.is_null()).collect())
}

fn tokenizer(files: &Files) -> Result<Option<TokenizerReport>, TextError> {
    let Some(bytes) = files.get(TOKENIZER) else { return Ok(None) };
    let vocab_size = HfTokenizer::from_bytes(bytes)?.vocab_size();
    let json: Value = serde_json::from_slice(without_mark(bytes)).unwrap_or_default();
    let kind = json["model"]["type"].as_str().unwrap_or("of a kind that is not named");
    Ok(Some(TokenizerReport { kind: kind.to_owned(), vocab_size }))
}

fn has_chat_template(files: &Files) -> Result<bool, TextError> {
    let template = ChatTemplate::from_files(ChatTemplateFiles {
        tokenizer_config: files.get(TOKENIZER_CONFIG),
        chat_template_jinja: files.get(CHAT_TEMPLATE_JINJA),
        chat_template_json: files.get(CHAT_TEMPLATE_JSON),
    })?;
    Ok(template.is_some())
}

#[expect(clippy::cast_precision_loss, reason = "a ratio for people")]
fn bits(bytes: u64, weights: u64) -> f64 {
    8.0 * bytes as f64 / weights.max(1) as f64
}
