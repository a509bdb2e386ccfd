//! Details, sizes, template and capabilities of a model in Ollama's API.

use serde::Serialize;
use serde_json::{Map, Value, json};
use setun::Engine;

/// The architecture of models that come from no checkpoint.
const CUSTOM: &str = "custom";

/// Quantization of every model's linear layers.
const QUANTIZATION: &str = "ternary";

/// Architecture and size. Of a model that was not loaded yet they are not known.
#[derive(Serialize)]
pub(super) struct Details {
    parent_model: &'static str,
    format: &'static str,
    family: String,
    families: Vec<String>,
    parameter_size: String,
    quantization_level: &'static str,
}

impl Details {
    pub(super) fn new(engine: Option<&Engine>) -> Self {
        let family = engine.map(architecture).unwrap_or_default();
        let shape = engine.and_then(Engine::model_shape);
        Self {
            parent_model: "",
            format: "setun",
            families: engine.map(|_| family.to_owned()).into_iter().collect(),
            family: family.to_owned(),
            parameter_size: shape.map(|shape| rounded(shape.parameters)).unwrap_or_default(),
            quantization_level: QUANTIZATION,
        }
    }
}

/// Sizes by the names that GGUF has for them.
pub(super) fn model_info(engine: &Engine) -> Value {
    let architecture = architecture(engine);
    let mut info = Map::new();
    info.insert("general.architecture".into(), json!(architecture));
    info.insert("general.basename".into(), json!(engine.model_name()));
    let mut size = |name: &str, value: usize| {
        info.insert(format!("{architecture}.{name}"), json!(value));
    };
    size("context_length", engine.context_length());
    size("vocab_size", engine.vocab_size());
    if let Some(shape) = engine.model_shape() {
        size("block_count", shape.layers);
        size("embedding_length", shape.hidden_size);
        size("feed_forward_length", shape.ffn_size);
        size("attention.head_count", shape.heads);
        size("attention.head_count_kv", shape.kv_heads);
        info.insert("general.parameter_count".into(), json!(shape.parameters));
    }
    info.into()
}

/// The chat template of conversations without tools.
pub(super) fn template(engine: &Engine) -> &str {
    let mut templates = engine.chat_templates();
    let default = engine.chat_templates().find(|(name, _)| *name == "default");
    default.or_else(|| templates.next()).map_or("", |(_, source)| source)
}

/// The context and the sampling that a request changes, one option a line.
pub(super) fn parameters(engine: &Engine) -> String {
    let sampling = engine.sampling_defaults();
    let parameters = [
        ("num_ctx", engine.context_length().to_string()),
        ("temperature", sampling.temperature.to_string()),
        ("top_k", sampling.top_k.to_string()),
        ("top_p", sampling.top_p.to_string()),
        ("min_p", sampling.min_p.to_string()),
        ("repeat_penalty", sampling.repetition_penalty.to_string()),
    ];
    parameters.map(|(name, value)| format!("{name:<30} {value}")).join("\n")
}

/// The capabilities of a model, in Ollama's names.
pub(super) fn capabilities(engine: &Engine) -> Vec<&'static str> {
    let tools = engine.has_chat_template().then_some("tools");
    let thinking = engine.thinks().then_some("thinking");
    ["completion", "embedding"].into_iter().chain(tools).chain(thinking).collect()
}

fn architecture(engine: &Engine) -> &str {
    engine.model_shape().map_or(CUSTOM, |shape| &shape.architecture)
}

/// A number of parameters as Ollama writes it: `2.4B`, `494.03M`, `7K`.
fn rounded(count: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "two decimals are shown")]
    let of = |unit: u64| count as f64 / unit as f64;
    let is_whole = |unit: u64| count.is_multiple_of(unit);
    match count {
        1_000_000_000.. if is_whole(1_000_000_000) => format!("{}B", count / 1_000_000_000),
        1_000_000_000.. => format!("{:.1}B", of(1_000_000_000)),
        1_000_000.. if is_whole(1_000_000) => format!("{}M", count / 1_000_000),
        1_000_000.. => format!("{:.2}M", of(1_000_000)),
        1_000.. => format!("{:.0}K", of(1_000)),
        _ => count.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::rounded;

    #[test]
    fn sizes_are_rounded_as_ollama_rounds_them() {
        for (count, expected) in [
            (0, "0"),
            (999, "999"),
            (7_500, "8K"),
            (1_000_000, "1M"),
            (494_032_768, "494.03M"),
            (2_412_820_480, "2.4B"),
            (8_000_000_000, "8B"),
            (8_030_261_248, "8.0B"),
        ] {
            assert_eq!(rounded(count), expected);
        }
    }
}
