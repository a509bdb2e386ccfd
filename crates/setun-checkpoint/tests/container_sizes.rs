//! Sizes of `.setun` files.

use crate::support::{Checkpoint, golden, read};
use setun_checkpoint::{
    Dtype, Source,
    container::write::{Options, TableType, plan},
    outline::{Outline, OutlineKind, OutlineTensor},
};
use setun_ops::weight::ScaleKind;

/// bitnet-b1.58-2B-4T, of which only names and shapes are needed.
fn large_outline() -> Outline {
    let Checkpoint { config, files, .. } =
        read(Source::Folder, &golden("bitnet-h64/packed")).unwrap();
    let mut tensors = vec![];
    let mut add = |name: &str, shape: &[usize], kind| {
        let (name, shape) = (name.to_owned(), shape.to_vec());
        tensors.push(OutlineTensor { name, shape, kind });
    };
    let floats = OutlineKind::Floats(Dtype::Bf16);
    add("model.embed_tokens.weight", &[128_256, 2560], floats);
    for layer in 0..30 {
        let name = |part: &str| format!("model.layers.{layer}.{part}.weight");
        add(&name("input_layernorm"), &[2560], floats);
        for (part, rows, columns) in [
            ("self_attn.q_proj", 2560, 2560),
            ("self_attn.k_proj", 640, 2560),
            ("self_attn.v_proj", 640, 2560),
            ("self_attn.o_proj", 2560, 2560),
            ("mlp.gate_proj", 6912, 2560),
            ("mlp.up_proj", 6912, 2560),
            ("mlp.down_proj", 2560, 6912),
        ] {
            let kind = OutlineKind::Ternary(ScaleKind::Tensor);
            add(&name(part), &[rows, columns], kind);
        }
        add(&name("self_attn.attn_sub_norm"), &[2560], floats);
        add(&name("post_attention_layernorm"), &[2560], floats);
        add(&name("mlp.ffn_sub_norm"), &[6912], floats);
    }
    add("model.norm.weight", &[2560], floats);
    Outline { config, files, tensors }
}

/// Without a tokenizer, of which a published one has 9 MB more, or less where it is compressed.
#[test]
fn a_model_of_two_billion_weights_is_small() {
    let outline = large_outline();
    for (head, limit, content) in [
        (TableType::Int8, 750_000_000, 416_855_040 + 128_256 * (2560 + 4)),
        (TableType::Stored, 1_080_000_000, 416_855_040 + 128_256 * 2560 * 2),
    ] {
        let options = Options { head, ..Options::default() };
        let plan = plan("m.setun", &outline, &options).unwrap();
        let [bytes] = plan.bytes()[..] else { panic!("one file") };
        assert!(bytes < limit, "{bytes}");
        assert!(
            (content..content + 1_100_000).contains(&bytes),
            "{bytes}, codes and table {content}"
        );
    }
}
