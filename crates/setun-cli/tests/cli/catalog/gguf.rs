//! Headers of GGUF files with an entry's configuration.

use serde_json::Value;

use super::{
    files::Part,
    hybrid::{self, BLOCK},
    tensors::{Sizes, Tensor},
};

/// Alignment of a tensor's offset, and of the header.
const ALIGNMENT: u64 = 32;
const HEADER_ALIGNMENT: usize = 32;

/// Type of tensors in a GGUF file: its number, elements and bytes of a block.
struct Type {
    number: u32,
    block: (u64, u64),
}

const F32: Type = Type { number: 0, block: (1, 4) };
const F16: Type = Type { number: 1, block: (1, 2) };
const I2_S: Type = Type { number: 36, block: (4, 1) };
const BF16: Type = Type { number: 30, block: (1, 2) };
const PQ2_0: Type = Type { number: 142, block: (128, 34) };

/// Bytes after all codes of an `I2_S` tensor, which begin with its scale.
const I2_S_SCALE: u64 = 32;

/// The header of a file, and what follows it. `tokenizer` are fields of the header.
pub(super) fn file(
    config: &Value,
    tensors: &[Tensor],
    tokenizer: Vec<Vec<u8>>,
) -> (Vec<u8>, Vec<Part>) {
    let is_bitnet = config["architectures"][0] == "BitNetForCausalLM";
    let (architecture, ternary) = match config["architectures"][0].as_str() {
        Some("BitNetForCausalLM") => ("bitnet-b1.58", I2_S),
        Some("Qwen3_5ForCausalLM") => ("qwen35", PQ2_0),
        _ => ("qwen3", PQ2_0),
    };
    let is_rotated = config[BLOCK].is_u64();
    let tensors: Vec<_> = tensors.iter().filter(|t| !t.name.ends_with("_scale")).collect();
    let mut fields = fields(architecture, config);
    fields.extend(hybrid::fields(config, &tensors, |tensor| name(tensor, architecture)));
    fields.extend(tokenizer);
    let mut header = b"GGUF".to_vec();
    header.extend(3_u32.to_le_bytes());
    header.extend((tensors.len() as u64).to_le_bytes());
    header.extend((fields.len() as u64).to_le_bytes());
    header.extend(fields.concat());
    let (mut offset, mut parts) = (0_u64, Vec::<Part>::new());
    for tensor in tensors {
        let is_table = !is_bitnet || !tensor.name.contains("embed_tokens");
        let kind = match tensor.shape.len() {
            1 => &F32,
            _ if tensor.name.contains("conv1d") => &F32,
            _ if is_rotated && is_gate(&tensor.name) => &BF16,
            _ if is_table => &ternary,
            _ => &F16,
        };
        let rows = if tensor.dtype == "U8" { 4 } else { 1 };
        text(&mut header, &name(&tensor.name, architecture));
        header.extend((u32::try_from(tensor.shape.len()).expect("few")).to_le_bytes());
        for (index, size) in tensor.shape.iter().enumerate().rev() {
            header.extend((if index == 0 { size * rows } else { *size }).to_le_bytes());
        }
        header.extend(kind.number.to_le_bytes());
        header.extend(offset.to_le_bytes());
        let data = tensor.elements() * rows / kind.block.0 * kind.block.1;
        let bytes = if kind.number == I2_S.number { data + I2_S_SCALE } else { data };
        let is_plain = kind.number == F32.number;
        let pattern = if is_plain { tensor.f32_pattern() } else { pattern(kind) };
        parts.push(Part { range: offset..offset + bytes, pattern });
        offset = (offset + bytes).next_multiple_of(ALIGNMENT);
    }
    header.resize(header.len().next_multiple_of(HEADER_ALIGNMENT), 0);
    let start = header.len() as u64;
    for Part { range, .. } in &mut parts {
        *range = start + range.start..start + range.end;
    }
    (header, parts)
}

/// Bytes that a tensor repeats: codes in their range, and more than one scale.
fn pattern(kind: &Type) -> Vec<u8> {
    match kind.number {
        142 => [[0x00, 0x2c], [0x00, 0x2d]]
            .iter()
            .flat_map(|scale| scale.iter().copied().chain([0b00_01_10_01; 32]))
            .collect(),
        36 => vec![0b00_01_10_01],
        _ => vec![0x00, 0x38, 0x00, 0xb4, 0x00, 0x30],
    }
}

fn fields(architecture: &str, config: &Value) -> Vec<Vec<u8>> {
    let sizes = Sizes::of(config);
    let of = |key: &str| format!("{architecture}.{key}");
    let number = |key: &str, value: u64| field(&of(key), 4, &small(value).to_le_bytes());
    #[expect(clippy::cast_possible_truncation, reason = "as the format has it")]
    let float = |key: &str, value: f64| field(&of(key), 6, &(value as f32).to_le_bytes());
    let mut name = vec![];
    text(&mut name, architecture);
    let mut fields = vec![
        field("general.architecture", 8, &name),
        number("vocab_size", sizes.vocab),
        number("context_length", config["max_position_embeddings"].as_u64().expect("a context")),
        number("embedding_length", sizes.hidden),
        number("block_count", sizes.layers),
        number("feed_forward_length", sizes.ffn),
        number("attention.head_count", sizes.heads),
        number("attention.head_count_kv", sizes.kv_heads),
        number("attention.key_length", sizes.head_dim),
        number("attention.value_length", sizes.head_dim),
        number("rope.dimension_count", hybrid::rotated(config, sizes.head_dim)),
        float("rope.freq_base", config["rope_theta"].as_f64().expect("a base")),
        float("attention.layer_norm_rms_epsilon", config["rms_norm_eps"].as_f64().expect("eps")),
    ];
    let scaling = &config["rope_scaling"];
    if let Some(factor) = scaling["factor"].as_f64() {
        let original = scaling["original_max_position_embeddings"].as_u64().expect("a context");
        let mut kind = vec![];
        text(&mut kind, scaling["rope_type"].as_str().expect("a type"));
        fields.push(field(&of("rope.scaling.type"), 8, &kind));
        fields.push(float("rope.scaling.factor", factor));
        fields.push(number("rope.scaling.original_context_length", original));
    }
    fields
}

/// A field of the header.
pub(super) fn field(key: &str, kind: u32, value: &[u8]) -> Vec<u8> {
    let mut bytes = vec![];
    text(&mut bytes, key);
    bytes.extend(kind.to_le_bytes());
    bytes.extend_from_slice(value);
    bytes
}

/// A text with its length before it.
pub(super) fn text(out: &mut Vec<u8>, text: &str) {
    out.extend((text.len() as u64).to_le_bytes());
    out.extend_from_slice(text.as_bytes());
}

fn small(value: u64) -> u32 {
    u32::try_from(value).expect("a small number")
}

/// Whether it is one of the matrices that give `b` and `a` of a delta net.
fn is_gate(name: &str) -> bool {
    name.contains("in_proj_a") || name.contains("in_proj_b")
}

/// A tensor's name in GGUF.
fn name(name: &str, architecture: &str) -> String {
    let name = name.replace("model.layers.", "blk.");
    let name = match architecture {
        "qwen35" => name.replace("post_attention_layernorm", "post_attention_norm"),
        _ => name,
    };
    let parts = [
        ("model.embed_tokens", "token_embd"),
        ("model.norm", "output_norm"),
        ("lm_head", "output"),
        ("input_layernorm", "attn_norm"),
        ("post_attention_layernorm", "ffn_norm"),
        ("self_attn.attn_sub_norm", "attn_sub_norm"),
        ("mlp.ffn_sub_norm", "ffn_sub_norm"),
        ("linear_attn.in_proj_qkv", "attn_qkv"),
        ("linear_attn.in_proj_z", "attn_gate"),
        ("linear_attn.in_proj_b", "ssm_beta"),
        ("linear_attn.in_proj_a", "ssm_alpha"),
        ("linear_attn.conv1d", "ssm_conv1d"),
        ("linear_attn.dt_bias", "ssm_dt.bias"),
        ("linear_attn.A_log", "ssm_a"),
        ("linear_attn.norm", "ssm_norm"),
        ("linear_attn.out_proj", "ssm_out"),
        ("self_attn.q_norm", "attn_q_norm"),
        ("self_attn.k_norm", "attn_k_norm"),
        ("self_attn.q_proj", "attn_q"),
        ("self_attn.k_proj", "attn_k"),
        ("self_attn.v_proj", "attn_v"),
        ("self_attn.o_proj", "attn_output"),
        ("mlp.gate_proj", "ffn_gate"),
        ("mlp.up_proj", "ffn_up"),
        ("mlp.down_proj", "ffn_down"),
    ];
    parts.iter().fold(name, |name, (from, to)| name.replace(from, to))
}
