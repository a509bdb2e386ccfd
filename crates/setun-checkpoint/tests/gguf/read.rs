//! GGUF files of each type and architecture, read.

use setun_checkpoint::{
    Dtype, I2sBlocks, Options, Tensor, TensorData, blocks,
    config::{QuantizationMode, RopeScaling},
    dense, files,
};
use setun_ops::{
    dense::DenseValues,
    op::Activation,
    ternary::{Scales, code_at, row_bytes},
};

use crate::{
    gguf::fixtures::{bytes, check_linears, folder, model, open, open_with},
    support::{Folder, fixture, tensors_of},
};

#[test]
fn every_type_has_its_weights() {
    for (name, dtype) in [
        ("i2_s.gguf", Dtype::I2S),
        ("tq1_0.gguf", Dtype::Tq1_0),
        ("tq2_0.gguf", Dtype::Tq2_0),
        ("tq2_0-scale.gguf", Dtype::Tq2_0),
        ("llama-q2_0.gguf", Dtype::Q2_0),
        ("llama-iq2_bn.gguf", Dtype::Iq2Bn),
        ("llama-iq1_bn.gguf", Dtype::Iq1Bn),
        ("llama-f16.gguf", Dtype::F16),
        ("bitnet-bf16.gguf", Dtype::Bf16),
    ] {
        let model = model(name);
        let down = model.tensor("model.layers.0.mlp.down_proj.weight");
        assert_eq!(down.info.dtype, dtype, "{name}");
        check_linears(&model);
    }
}

#[test]
fn narrow_i2_s_must_be_requested() {
    let name = "i2_s-narrow.gguf";
    let error = open(name, &folder(name)).unwrap_err();
    assert!(error.to_string().contains("I2_S [64, 64]"), "{error}");
    let options = Options { i2s: I2sBlocks::Narrow, ..Options::default() };
    check_linears(&open_with(name, options).unwrap());
}

#[test]
fn architectures_become_configurations() {
    let relu2 = ["i2_s.gguf", "tq2_0.gguf", "tq2_0-scale.gguf"];
    for name in ["i2_s.gguf", "tq1_0.gguf", "tq2_0.gguf", "tq2_0-scale.gguf", "bitnet-bf16.gguf"] {
        let config = model(name).config;
        assert_eq!(config.architecture, "BitNetForCausalLM");
        let expected =
            if relu2.contains(&name) { Activation::ReluSquared } else { Activation::Silu };
        assert_eq!(config.activation, expected, "{name}");
        assert!(config.sub_norms && config.tied_head, "{name}");
    }
    let config = model("i2_s.gguf").config;
    assert_eq!((config.vocab_size, config.hidden_size, config.ffn_size), (16, 128, 128));
    assert_eq!(
        (config.layers.len(), config.heads, config.kv_heads, config.head_dim),
        (1, 4, 2, 32)
    );
    assert_eq!((config.context_length, config.norm_eps), (64, 1e-5));
    assert_eq!((config.rope.theta, config.rope.scaling), (5e5, RopeScaling::Default));
    assert_eq!(config.quantization.mode, QuantizationMode::Offline);
    let config = model("llama-q2_0.gguf").config;
    assert_eq!((&*config.architecture, config.activation), ("LlamaForCausalLM", Activation::Silu));
    assert!(config.attention_bias && config.mlp_bias && !config.sub_norms && !config.tied_head);
    assert_eq!(model("llama-f16.gguf").config.quantization.mode, QuantizationMode::FakeQuantized);
}

#[test]
fn biases_of_queries_and_keys_are_in_order() {
    let model = model("llama-q2_0.gguf");
    for (name, rows) in [("q_proj", 128_u8), ("k_proj", 64), ("v_proj", 64), ("o_proj", 128)] {
        let bias = model.tensor(&format!("model.layers.0.self_attn.{name}.bias"));
        let expected: Vec<f32> = (0..rows).map(|row| f32::from(row) / 16.0).collect();
        assert_eq!(dense::vector(bias).unwrap(), expected, "{name}");
    }
}

#[test]
fn gains_and_biases_may_be_blocks_of_integers() {
    let model = model("llama-vectors.gguf");
    check_linears(&model);
    let check = |name: &str, dtype: Dtype, length: u8, first: f32, step: f32, close: f32| {
        let tensor = model.tensor(name);
        let values = dense::vector(tensor).unwrap();
        assert_eq!(values.len(), usize::from(length) + 1, "{name}");
        for (place, value) in (0..=length).zip(values) {
            let expected = first + f32::from(place) * step;
            assert!((value - expected).abs() <= close, "{name} {place}: {value}");
        }
        let widened = if name.contains("q_proj") || name.contains("k_proj") {
            Dtype::F32 // as their elements were in another order
        } else {
            dtype
        };
        assert_eq!(tensor.info.dtype, widened, "{name}");
    };
    let layer = |name: &str| format!("model.layers.0.{name}");
    let (gain, bias) = (1.0 / 256.0, 1.0 / 16.0);
    check(&layer("input_layernorm.weight"), Dtype::Q8_0, 255, 1.0, gain, 0.01);
    check(&layer("post_attention_layernorm.weight"), Dtype::Q4_0, 255, 1.0, gain, 0.25);
    check("model.norm.weight", Dtype::Q6K, 255, 1.0, gain, 0.07);
    check(&layer("self_attn.q_proj.bias"), Dtype::Q8_0, 63, 0.0, bias, 0.02);
    check(&layer("self_attn.k_proj.bias"), Dtype::Q4_0, 31, 0.0, bias, 0.3);
    check(&layer("self_attn.v_proj.bias"), Dtype::F16, 31, 0.0, bias, 0.0);
    check(&layer("self_attn.o_proj.bias"), Dtype::Bf16, 255, 0.0, bias, 0.0);
    check(&layer("mlp.gate_proj.bias"), Dtype::Q8_0, 63, 0.0, bias, 0.02);
    check(&layer("mlp.down_proj.bias"), Dtype::Q6K, 255, 0.0, bias, 0.3);
}

#[test]
fn llama_3_is_read_from_its_divisors() {
    let model = model("llama-iq2_bn.gguf");
    let expected = RopeScaling::Llama3 {
        factor: 32.0,
        low_freq_factor: 1.0,
        high_freq_factor: 4.0,
        original_context: 8192,
    };
    assert_eq!(model.config.rope.scaling, expected);
    assert!(model.get("rope_freqs.weight").is_none(), "it has been used");
}

#[test]
fn qwen3_has_norms_of_heads_and_ternary_tables() {
    let model = model("qwen3-q2_0.gguf");
    assert_eq!((&*model.config.architecture, model.config.head_dim), ("Qwen3ForCausalLM", 64));
    check_linears(&model);
    assert!(model.get("model.layers.0.self_attn.q_norm.weight").is_some());
    let head = dense::table(model.tensor("lm_head.weight").clone()).unwrap();
    assert!(matches!(head.values(), DenseValues::Ternary(_)));
}

#[test]
fn tables_of_integers_are_widened() {
    for name in ["llama-iq2_bn.gguf", "llama-iq1_bn.gguf"] {
        let model = model(name);
        let table = dense::table(model.tensor("model.embed_tokens.weight").clone()).unwrap();
        let DenseValues::F32(values) = table.values() else { panic!("{name}") };
        let expected =
            |place: usize| f32::from(i8::try_from(place * 37 % 101).unwrap() - 50) / 32.0;
        for (place, value) in values.iter().enumerate() {
            let close = if name.contains("iq2") { 0.01 } else { 0.25 };
            assert!((value - expected(place)).abs() < close, "{name} {place}: {value}");
        }
    }
}

/// The blocks of `blocks.safetensors`, and what an independent decoder makes of them.
#[test]
fn blocks_are_what_another_decoder_says() {
    let file = bytes("blocks.safetensors");
    let tensors = tensors_of(&file);
    for (name, dtype) in [
        ("i2_s", Dtype::I2S),
        ("i2_s_narrow", Dtype::I2SNarrow),
        ("tq1_0", Dtype::Tq1_0),
        ("ptq1_0", Dtype::Ptq1_0),
        ("tq2_0", Dtype::Tq2_0),
        ("q2_0", Dtype::Q2_0),
        ("q2_0_wide", Dtype::Q2_0Wide),
        ("q2_0_wide", Dtype::Pq2_0), // the same bytes under another number
        ("iq2_bn", Dtype::Iq2Bn),
        ("iq1_bn", Dtype::Iq1Bn),
        ("q8_0", Dtype::Q8_0),
        ("q4_0", Dtype::Q4_0),
        ("q4_k", Dtype::Q4K),
        ("q6_k", Dtype::Q6K),
    ] {
        let expected = tensors.tensor(&format!("{name}.values")).unwrap();
        let values: Vec<f32> =
            expected.data().as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
        let stored = tensors.tensor(&format!("{name}.bytes")).unwrap().data().to_vec();
        let data = TensorData::Bytes(stored.into());
        let tensor = Tensor::new(name, dtype, expected.shape(), data);
        let found = if dtype.is_ternary() { ternary(&tensor) } else { floats(tensor) };
        assert_eq!(found, values, "{name}");
    }
}

fn floats(tensor: Tensor) -> Vec<f32> {
    let table = dense::table(tensor).unwrap();
    let DenseValues::F32(values) = table.values() else { panic!("not widened") };
    values.to_vec()
}

fn ternary(tensor: &Tensor) -> Vec<f32> {
    let (rows, columns) = tensor.info.expect_matrix().unwrap();
    let (codes, scales) = blocks::unpack(tensor).unwrap();
    let wide = row_bytes(columns);
    let value = |place: usize| {
        let (row, column) = (place / columns, place % columns);
        let scale = match &scales {
            Scales::Tensor(scale) => *scale,
            Scales::Rows(values) => values[row],
            Scales::ColumnGroups { columns: group, values } => {
                values[row * columns.div_ceil(*group) + column / group]
            }
        };
        (f32::from(code_at(&codes[row * wide..], column)) - 1.0) * scale
    };
    (0..rows * columns).map(value).collect()
}

#[test]
fn any_part_of_several_names_them_all() {
    let name = |part: usize| format!("split-{part:05}-of-00003.gguf");
    let whole: Folder = (1..=3).map(|part| (name(part), bytes(&name(part)))).collect();
    for part in 1..=3 {
        let model = open(&name(part), &whole).unwrap();
        check_linears(&model);
        assert_eq!(model.config.ffn_size, 128);
    }
    let mut missing = whole.clone();
    missing.remove(&name(3));
    let error = open(&name(1), &missing).unwrap_err();
    assert_eq!(error.to_string(), "split-00003-of-00003.gguf is missing");
    let mut swapped = whole.clone();
    swapped.insert(name(2), whole[&name(3)].clone());
    let error = open(&name(1), &swapped).unwrap_err();
    assert!(error.to_string().contains("`split.no` is 2, expected 1"), "{error}");
    let renamed = Folder::from([("a.gguf".to_owned(), whole[&name(1)].clone())]);
    let error = open("a.gguf", &renamed).unwrap_err();
    assert!(error.to_string().contains("`split.count` is 3, expected 1"), "{error}");
}

#[test]
fn the_tokenizer_comes_along() {
    let model = model("i2_s.gguf");
    for name in [files::CONFIG, files::GENERATION_CONFIG, files::TOKENIZER, files::TOKENIZER_CONFIG]
    {
        assert!(model.files.get(name).is_some(), "{name}");
    }
    assert_eq!(model.config.bos_token, Some(0));
    assert_eq!(model.config.eos_tokens, [1, 2], "`<|eot_id|>` ends a text, too");
    let warnings = model.warnings.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
    assert!(warnings.contains("i2_s.gguf: the file has no tokenizer.ggml.pre"), "{warnings}");
    assert!(warnings.contains("<|eot_id|>"), "{warnings}");
}

/// Bits of `Q1_0`, read one by one: 1 is the scale of its 128 columns, 0 minus that.
#[test]
fn binary_weights_are_ternary_without_a_zero() {
    let file = fixture("families/qwen3-binary").remove("q1_0.gguf").unwrap();
    let folder = Folder::from([("m.gguf".to_owned(), file.clone())]);
    let model = open("m.gguf", &folder).unwrap();
    assert_eq!(model.config.quantization.activation_group, Some(128));
    let binary = |tensor: &&Tensor| tensor.info.dtype == Dtype::Q1_0;
    assert_eq!(model.tensors.iter().filter(binary).count(), 15);
    for tensor in model.tensors.iter().filter(binary) {
        let at = |place: u64| usize::try_from(place).unwrap();
        let stored = &file[at(tensor.info.range.start)..at(tensor.info.range.end)];
        let values = stored.chunks(18).flat_map(|block| {
            let scale = half::f16::from_le_bytes([block[0], block[1]]).to_f32();
            let is_set = |place: usize| block[2 + place / 8] & (1 << (place % 8)) != 0;
            (0..128).map(move |place| if is_set(place) { scale } else { -scale })
        });
        assert!(ternary(tensor) == values.collect::<Vec<_>>(), "{}", tensor.info.name);
    }
    // A table keeps a scale for each group, and a head that is one is ternary.
    let table = dense::table(model.tensor("model.embed_tokens.weight").clone()).unwrap();
    assert!(matches!(table.values(), DenseValues::Ternary(_)));
}
