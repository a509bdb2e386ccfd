//! Keys of a GGUF file with delta nets, and with rotated inputs.

use serde_json::Value;

use super::{
    gguf::field,
    tensors::{NetSizes, Sizes, Tensor},
    vocabulary::{BOOL, I32, STRING, U32, array, string},
};

/// The field of the configurations here that says that inputs are rotated: the columns of a block.
/// The published files say so in their metadata.
pub(super) const BLOCK: &str = "hadamard_block";

/// Columns of a head that are rotated by position.
pub(super) fn rotated(config: &Value, head_dim: u64) -> u64 {
    if config["partial_rotary_factor"] == 0.25 { head_dim / 4 } else { head_dim }
}

/// The fields that other models lack. `name` is a tensor's in the file.
pub(super) fn fields(
    config: &Value,
    tensors: &[&Tensor],
    name: impl Fn(&str) -> String,
) -> Vec<Vec<u8>> {
    let sizes = Sizes::of(config);
    let Some(net) = sizes.net else { return vec![] };
    let NetSizes { key_heads, value_heads, head, kernel, interval } = net;
    let numbers = [
        ("full_attention_interval", interval),
        ("ssm.conv_kernel", kernel),
        ("ssm.state_size", head),
        ("ssm.group_count", key_heads),
        ("ssm.time_step_rank", value_heads),
        ("ssm.inner_size", net.value_width()),
    ];
    let mut fields: Vec<_> =
        numbers.map(|(key, value)| number(&format!("qwen35.{key}"), value)).into();
    if let Some(block) = config[BLOCK].as_u64() {
        let widths = [sizes.hidden, net.value_width(), sizes.ffn, sizes.heads * sizes.head_dim];
        let names = tensors.iter().filter(|tensor| is_rotated(tensor)).map(|t| name(&t.name));
        fields.extend(rotation(block, &widths, &names.collect::<Vec<_>>()));
    }
    fields
}

fn number(key: &str, value: u64) -> Vec<u8> {
    field(key, U32, &u32::try_from(value).expect("a small number").to_le_bytes())
}

/// All matrices but the table and those that give `b` and `a`.
fn is_rotated(tensor: &Tensor) -> bool {
    let others = ["embed_tokens", "in_proj_a", "in_proj_b", "conv1d"];
    tensor.shape.len() == 2 && !others.iter().any(|other| tensor.name.contains(other))
}

fn rotation(block: u64, widths: &[u64], names: &[String]) -> Vec<Vec<u8>> {
    let key = |end: &str| format!("prism.hadamard.{end}");
    let said = |end: &str, value: &str| field(&key(end), STRING, &string(value));
    let mut widths = widths.to_vec();
    widths.sort_unstable();
    widths.dedup();
    let integer = |value: i64| i32::try_from(value).expect("a small number").to_le_bytes().to_vec();
    let signs = (0..widths.iter().sum::<u64>()).map(|at| if at % 3 == 0 { -1 } else { 1 });
    let signs: Vec<_> = signs.map(integer).collect();
    let widths: Vec<_> = widths.iter().map(|width| integer((*width).cast_signed())).collect();
    vec![
        number(&key("version"), 1),
        number(&key("block_size"), block),
        said("transform", "normalized-sylvester-walsh-hadamard"),
        said("axis", "input-last-dimension"),
        said("sign_mode", "explicit"),
        array(&key("sign_widths"), I32, widths.into_iter()),
        array(&key("sign_values"), I32, signs.into_iter()),
        array(&key("weight_names"), STRING, names.iter().map(|name| string(name))),
        array(&key("inverse_weight_names"), STRING, [string("token_embd.weight")].into_iter()),
        field(&key("gdn_v_grouped"), BOOL, &[1]),
    ]
}
