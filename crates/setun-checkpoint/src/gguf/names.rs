//! Names of tensors, from GGUF's to those of Hugging Face's folders and back.

/// Parts of a layer: GGUF's name, ours.
const LAYER: [(&str, &str); 13] = [
    ("attn_norm", "input_layernorm"),
    ("attn_q", "self_attn.q_proj"),
    ("attn_k", "self_attn.k_proj"),
    ("attn_v", "self_attn.v_proj"),
    ("attn_q_norm", "self_attn.q_norm"),
    ("attn_k_norm", "self_attn.k_norm"),
    ("attn_sub_norm", "self_attn.attn_sub_norm"),
    ("attn_output", "self_attn.o_proj"),
    ("ffn_norm", "post_attention_layernorm"),
    ("ffn_gate", "mlp.gate_proj"),
    ("ffn_up", "mlp.up_proj"),
    ("ffn_sub_norm", "mlp.ffn_sub_norm"),
    ("ffn_down", "mlp.down_proj"),
];

/// Parts of a layer of the architecture `qwen35`, besides these: GGUF's name, ours. `ssm_a` is −exp of what
/// transformers has as `A_log`, so it has another name.
const HYBRID: [(&str, &str); 8] = [
    ("post_attention_norm", "post_attention_layernorm"),
    ("attn_qkv", "linear_attn.in_proj_qkv"),
    ("attn_gate", "linear_attn.in_proj_z"),
    ("ssm_alpha", "linear_attn.in_proj_a"),
    ("ssm_beta", "linear_attn.in_proj_b"),
    ("ssm_conv1d", "linear_attn.conv1d"),
    ("ssm_norm", "linear_attn.norm"),
    ("ssm_out", "linear_attn.out_proj"),
];

/// Where the decays are stored as their logarithms, which the file does not hold.
const LOG_DECAY: &str = "linear_attn.A_log";

/// The same, with their ends.
const HYBRID_WHOLE: [(&str, &str); 2] =
    [("ssm_a", "linear_attn.decay"), ("ssm_dt.bias", "linear_attn.dt_bias")];

/// Tensors of the whole model.
const MODEL: [(&str, &str); 3] = [
    ("token_embd.weight", "model.embed_tokens.weight"),
    ("output_norm.weight", "model.norm.weight"),
    ("output.weight", "lm_head.weight"),
];

/// The ends of names. Both of the last two are seen; the first of them is written.
const ENDS: [(&str, &str); 4] = [
    (".weight", ".weight"),
    (".bias", ".bias"),
    (".scale", ".weight_scale"),
    ("_scale", ".weight_scale"),
];

/// Our name of a tensor, or its own where it has no use here.
pub(super) fn ours(name: &str, is_hybrid: bool) -> String {
    model(name).or_else(|| layer(name, is_hybrid)).unwrap_or_else(|| name.to_owned())
}

fn model(name: &str) -> Option<String> {
    MODEL.iter().find(|(found, _)| *found == name).map(|(_, ours)| (*ours).to_owned())
}

fn layer(name: &str, is_hybrid: bool) -> Option<String> {
    let (layer, part) = name.strip_prefix("blk.")?.split_once('.')?;
    is_number(layer).then_some(())?;
    let (more, whole) =
        if is_hybrid { (&HYBRID[..], &HYBRID_WHOLE[..]) } else { (&[][..], &[][..]) };
    if let Some((_, name)) = whole.iter().find(|(found, _)| *found == part) {
        return Some(format!("model.layers.{layer}.{name}"));
    }
    let of_end = |(end, ours): &(&str, &str)| {
        let part = part.strip_suffix(end)?;
        let (_, name) = more.iter().chain(&LAYER).find(|(found, _)| *found == part)?;
        Some(format!("model.layers.{layer}.{name}{ours}"))
    };
    ENDS.iter().find_map(of_end)
}

/// GGUF's name of a tensor of ours, if it has one.
pub(super) fn theirs(name: &str, is_hybrid: bool) -> Option<String> {
    if let Some((found, _)) = MODEL.iter().find(|(_, ours)| *ours == name) {
        return Some((*found).to_owned());
    }
    let (layer, part) = name.strip_prefix("model.layers.")?.split_once('.')?;
    is_number(layer).then_some(())?;
    let more = if is_hybrid { &HYBRID[..] } else { &[] };
    if is_hybrid {
        let part = if part == LOG_DECAY { HYBRID_WHOLE[0].1 } else { part };
        if let Some((name, _)) = HYBRID_WHOLE.iter().find(|(_, found)| *found == part) {
            return Some(format!("blk.{layer}.{name}"));
        }
    }
    let of_end = |(end, ours): &(&str, &str)| {
        let part = part.strip_suffix(ours)?;
        let (name, _) = more.iter().chain(&LAYER).find(|(_, found)| *found == part)?;
        Some(format!("blk.{layer}.{name}{end}"))
    };
    ENDS.iter().find_map(of_end)
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_digit())
}

/// Whether a tensor of ours is of queries (true) or keys (false), whose rows another `RoPE` pairs.
pub(super) fn is_queries(name: &str) -> Option<bool> {
    let is = |part: &str| {
        name.ends_with(&format!(".self_attn.{part}.weight"))
            || name.ends_with(&format!(".self_attn.{part}.bias"))
    };
    if is("q_proj") {
        return Some(true);
    }
    is("k_proj").then_some(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_there_and_back() {
        for (name, expected) in [
            ("token_embd.weight", "model.embed_tokens.weight"),
            ("output.weight", "lm_head.weight"),
            ("blk.0.attn_q.weight", "model.layers.0.self_attn.q_proj.weight"),
            ("blk.12.attn_q_norm.weight", "model.layers.12.self_attn.q_norm.weight"),
            ("blk.3.ffn_sub_norm.weight", "model.layers.3.mlp.ffn_sub_norm.weight"),
            ("blk.3.attn_k.bias", "model.layers.3.self_attn.k_proj.bias"),
            ("blk.3.ffn_down.scale", "model.layers.3.mlp.down_proj.weight_scale"),
        ] {
            assert_eq!(ours(name, false), expected);
            assert_eq!(theirs(expected, false).as_deref(), Some(name));
        }
        assert_eq!(
            ours("blk.3.ffn_down_scale", false),
            "model.layers.3.mlp.down_proj.weight_scale"
        );
        for unknown in ["blk.x.attn_q.weight", "blk.1.attn_qkv.weight", "rope_freqs.weight"] {
            assert_eq!(ours(unknown, false), unknown);
        }
        assert_eq!(theirs("model.layers.0.mlp.gate_proj.rms_norm.weight", false), None);
        assert_eq!(theirs("model.layers.0.linear_attn.dt_bias", false), None);
    }

    #[test]
    fn a_hybrid_has_more_names() {
        for (name, expected) in [
            ("blk.1.attn_qkv.weight", "model.layers.1.linear_attn.in_proj_qkv.weight"),
            ("blk.1.ssm_out.scale", "model.layers.1.linear_attn.out_proj.weight_scale"),
            ("blk.0.ssm_a", "model.layers.0.linear_attn.decay"),
            ("blk.0.ssm_dt.bias", "model.layers.0.linear_attn.dt_bias"),
            ("blk.7.post_attention_norm.weight", "model.layers.7.post_attention_layernorm.weight"),
            ("blk.7.attn_norm.weight", "model.layers.7.input_layernorm.weight"),
        ] {
            assert_eq!(ours(name, true), expected);
            assert_eq!(theirs(expected, true).as_deref(), Some(name));
        }
        let log = theirs("model.layers.3.linear_attn.A_log", true);
        assert_eq!(log.as_deref(), Some("blk.3.ssm_a"));
        assert_eq!(ours("blk.2.nextn.enorm.weight", true), "blk.2.nextn.enorm.weight");
    }

    #[test]
    fn queries_and_keys_are_recognised() {
        assert_eq!(is_queries("model.layers.0.self_attn.q_proj.weight"), Some(true));
        assert_eq!(is_queries("model.layers.0.self_attn.k_proj.bias"), Some(false));
        assert_eq!(is_queries("model.layers.0.self_attn.q_norm.weight"), None);
        assert_eq!(is_queries("model.layers.0.self_attn.q_proj.weight_scale"), None);
    }
}
