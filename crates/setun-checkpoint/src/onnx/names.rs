//! Names of an exported graph, as those of Hugging Face's folders.
//!
//! Exporters name operations by the modules they come from, with slashes
//! (`/model/layers.0/attn/q_proj/MatMul`), and initialisers with dots or underscores
//! (`model.layers.0.attn.q_proj.MatMul.weight_Q2`, `model_layers_0_attn_q_proj_MatMul_weight_quant`).

/// A linear layer of a decoder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Linear {
    /// The head.
    Head,
    /// One of a layer's, for example `model.layers.0.self_attn.q_proj`.
    One(String),
    /// Queries, keys and values of a layer, one after the other.
    Qkv(usize),
}

/// The linear layers of a layer, as exporters and as Hugging Face name them.
const PROJECTIONS: [(&str, &str); 11] = [
    ("attn.q_proj", "self_attn.q_proj"),
    ("attn.k_proj", "self_attn.k_proj"),
    ("attn.v_proj", "self_attn.v_proj"),
    ("attn.o_proj", "self_attn.o_proj"),
    ("self_attn.q_proj", "self_attn.q_proj"),
    ("self_attn.k_proj", "self_attn.k_proj"),
    ("self_attn.v_proj", "self_attn.v_proj"),
    ("self_attn.o_proj", "self_attn.o_proj"),
    ("mlp.gate_proj", "mlp.gate_proj"),
    ("mlp.up_proj", "mlp.up_proj"),
    ("mlp.down_proj", "mlp.down_proj"),
];

const QKV: [&str; 2] = ["attn.qkv_proj", "self_attn.qkv_proj"];

/// Vectors of a layer other than biases.
const NORMS: [&str; 8] = [
    "input_layernorm",
    "post_attention_layernorm",
    "self_attn.attn_sub_norm",
    "self_attn.inner_attn_ln",
    "self_attn.q_norm",
    "self_attn.k_norm",
    "mlp.ffn_sub_norm",
    "mlp.ffn_layernorm",
];

/// The linear layer that a node or the initialiser of a weight is named after.
pub(super) fn linear(name: &str) -> Option<Linear> {
    let dotted = dotted(name);
    if let Some(operation) = dotted.strip_prefix("lm_head.") {
        return is_operation(operation).then_some(Linear::Head);
    }
    let (layer, rest) = layer(&dotted)?;
    let named = |module: &str| {
        rest.strip_prefix(module)?.strip_prefix('.').filter(|rest| is_operation(rest))
    };
    if QKV.into_iter().any(|module| named(module).is_some()) {
        return Some(Linear::Qkv(layer));
    }
    let found = PROJECTIONS.iter().find(|(module, _)| named(module).is_some());
    found.map(|(_, canonical)| Linear::One(format!("model.layers.{layer}.{canonical}")))
}

/// The name of a norm's gain in a model of this many layers, from that of its initialiser.
pub(super) fn norm(name: &str, layers: usize) -> Option<String> {
    norm_module(dotted(name).strip_suffix(".weight")?, layers)
}

/// The same from the name of the operation that takes it.
pub(super) fn norm_of_node(name: &str, layers: usize) -> Option<String> {
    norm_module(dotted(name).rsplit_once('.')?.0, layers)
}

fn norm_module(module: &str, layers: usize) -> Option<String> {
    const FINAL: &str = "model.norm.weight";
    if module == "model.norm" {
        return Some(FINAL.to_owned());
    }
    let (layer, rest) = layer(module)?;
    if rest == "final_norm_layernorm" && layer == layers {
        return Some(FINAL.to_owned());
    }
    let rest = rest.strip_suffix(".layernorm").unwrap_or(rest);
    let attention = rest.strip_prefix("attn.").map(|rest| format!("self_attn.{rest}"));
    let rest = attention.as_deref().unwrap_or(rest);
    let of_linear = rest.strip_suffix(".rms_norm");
    let is_linear = PROJECTIONS.iter().any(|(_, canonical)| Some(*canonical) == of_linear);
    let known = NORMS.contains(&rest) || is_linear;
    known.then(|| format!("model.layers.{layer}.{rest}.weight"))
}

/// Number of the layer, and what follows it.
fn layer(dotted: &str) -> Option<(usize, &str)> {
    let (number, rest) = dotted.strip_prefix("model.layers.")?.split_once('.')?;
    Some((number.parse().ok()?, rest))
}

/// Whether it is the operation of a linear layer, or a tensor of it: not one of an adapter beside.
fn is_operation(name: &str) -> bool {
    const STARTS: [&str; 4] = ["MatMul", "Gemm", "weight", "qweight"];
    let mut parts = name.split('.');
    let starts = |part: &str| STARTS.iter().any(|start| part.starts_with(start));
    parts.next().is_some_and(starts) && parts.all(starts)
}

/// A name with dots between its parts.
fn dotted(name: &str) -> String {
    let underscored = name.strip_prefix("model_layers_").and_then(layer_of_underscores);
    if let Some(dotted) = underscored {
        return dotted;
    }
    if let Some(operation) = name.strip_prefix("lm_head_MatMul_") {
        return format!("lm_head.MatMul.{operation}");
    }
    name.trim_start_matches('/').replace('/', ".")
}

/// `0_attn_q_proj_MatMul_weight_quant`.
fn layer_of_underscores(name: &str) -> Option<String> {
    let (layer, rest) = name.split_once('_')?;
    let (module, operation) = rest.split_once("_MatMul_")?;
    let (part, projection) = match module.strip_prefix("self_attn_") {
        Some(projection) => ("self_attn", projection),
        None => module.split_once('_')?,
    };
    Some(format!("model.layers.{layer}.{part}.{projection}.MatMul.{operation}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linear_layers() {
        let one = |name: &str| Some(Linear::One(format!("model.layers.{name}")));
        for name in [
            "/model/layers.3/attn/q_proj/MatMul",
            "/model/layers.3/attn/q_proj/MatMul_Quant",
            "/model/layers.3/attn/q_proj/MatMul_Q2",
            "/model/layers.3/attn/q_proj/MatMulNBits",
            "/model/layers.3/self_attn/q_proj/MatMul",
            "/model/layers.3/self_attn/q_proj/Gemm",
            "model.layers.3.attn.q_proj.MatMul.weight_Q2",
            "model.layers.3.attn.q_proj.MatMul.weight_Q2G32",
            "model.layers.3.attn.q_proj.MatMulNBits.qweight",
            "model.layers.3.self_attn.q_proj.weight",
            "model_layers_3_attn_q_proj_MatMul_weight_quant",
        ] {
            assert_eq!(linear(name), one("3.self_attn.q_proj"), "{name}");
        }
        assert_eq!(linear("/model/layers.12/mlp/down_proj/MatMul"), one("12.mlp.down_proj"));
        assert_eq!(linear("/model/layers.1/attn/qkv_proj/MatMulNBits"), Some(Linear::Qkv(1)));
        assert_eq!(linear("/lm_head/MatMul_Quant"), Some(Linear::Head));
        assert_eq!(linear("lm_head_MatMul_weight_quant"), Some(Linear::Head));
        for name in [
            "/model/layers.3/attn/q_proj/lora_A/MatMul",
            "/model/layers.3/attn/q_proj/lora/MatMul",
            "/model/layers.3/self_attn/MatMul",
            "/model/layers.3/mlp/gate_up_proj/MatMul",
            "/model/layers.x/attn/q_proj/MatMul",
            "/model/layers.3/cross_attn/q_proj/MatMul",
            "/encoder/layers.3/attn/q_proj/MatMul",
            "/lm_head/Mul",
            "onnx::MatMul_123",
            "",
        ] {
            assert_eq!(linear(name), None, "{name}");
        }
    }

    #[test]
    fn norms() {
        let named = |name: &str| norm(name, 2);
        let same = "model.layers.1.self_attn.attn_sub_norm.weight";
        assert_eq!(named(same).as_deref(), Some(same));
        let found = named("model.layers.1.attn.q_norm.layernorm.weight");
        assert_eq!(found.as_deref(), Some("model.layers.1.self_attn.q_norm.weight"));
        let found = named("model.layers.2.final_norm_layernorm.weight");
        assert_eq!(found.as_deref(), Some("model.norm.weight"));
        assert_eq!(named("model.layers.1.final_norm_layernorm.weight"), None);
        assert_eq!(named("model.layers.1.other_norm.weight"), None);
        let of_node = norm_of_node("/model/layers.0/input_layernorm/SkipLayerNorm", 2);
        assert_eq!(of_node.as_deref(), Some("model.layers.0.input_layernorm.weight"));
        let found = named("model.layers.0.mlp.up_proj.rms_norm.weight");
        assert_eq!(found.as_deref(), Some("model.layers.0.mlp.up_proj.rms_norm.weight"));
    }
}
