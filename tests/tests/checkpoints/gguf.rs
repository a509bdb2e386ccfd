//! A model gives the same logits, bit for bit, whether it comes from a Hugging Face folder or from
//! a GGUF file of any type.

use std::collections::BTreeMap;

use setun::{
    Conversion, Device, DeviceOptions, Engine, Error, ErrorCode, Format, Model, Source,
    checkpoint::{
        Dtype, Files, GenerationDefaults, ModelConfig, Tensor, TensorData, files,
        gguf::write::{needs_scale_beside, plan},
        outline::{Content, Outline, OutlineKind, OutlineTensor},
        packed,
        write::{NewTensor, layout},
    },
    ops::{
        TernaryMatrix,
        ternary::{Scales, pack_row, row_bytes},
        weight::ScaleKind,
    },
};
use setun_tests::{
    fixture,
    run::{Runner, bits, devices, exact},
};

const LAYERS: usize = 2;
const VOCABULARY: usize = 48;

fn config(architecture: &str) -> String {
    let is_llama = architecture != "BitNetForCausalLM";
    format!(
        r#"{{"architectures": ["{architecture}"], "vocab_size": {VOCABULARY}, "hidden_size": 256,
            "intermediate_size": 512, "num_hidden_layers": {LAYERS}, "num_attention_heads": 4,
            "num_key_value_heads": 2, "head_dim": 64, "max_position_embeddings": 64,
            "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": {},
            "hidden_act": "{}", "bos_token_id": 1, "eos_token_id": 2, "quantization_config":
            {{"quant_method": "bitnet", "linear_class": "autobitlinear"}}}}"#,
        !is_llama,
        if is_llama { "silu" } else { "relu2" },
    )
}

/// Numbers that look random and are always the same.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) % limit
    }

    fn float(&mut self) -> f32 {
        f32::from(u16::try_from(self.below(2001)).expect("small")) / 1000.0 - 1.0
    }

    fn matrix(&mut self, rows: usize, columns: usize) -> TernaryMatrix {
        let mut packed = vec![0; rows * row_bytes(columns)];
        for packed in packed.chunks_exact_mut(row_bytes(columns)) {
            let codes: Vec<u8> =
                (0..columns).map(|_| u8::try_from(self.below(3)).expect("small")).collect();
            pack_row(&codes, packed);
        }
        // Some scales fit into f16, some do not.
        let scale = if self.below(2) == 0 { 0.015_625 } else { 0.017 };
        TernaryMatrix::new(rows, columns, packed, Scales::Tensor(scale)).expect("a matrix")
    }

    fn floats(&mut self, name: &str, shape: &[usize], around: f32) -> Content {
        let count = shape.iter().product();
        let values: Vec<f32> = (0..count).map(|_| around + 0.5 * self.float()).collect();
        let data = TensorData::F32(values.into());
        Content::Floats(Tensor::new(name, Dtype::F32, shape, data))
    }
}

/// All tensors of a model, by name.
fn contents(config: &ModelConfig) -> Vec<(String, Content)> {
    let mut numbers = Numbers(7);
    let (hidden, ffn, kv) = (config.hidden_size, config.ffn_size, config.kv_width());
    let mut all = vec![];
    let table = [config.vocab_size, hidden];
    let floats = |all: &mut Vec<_>, numbers: &mut Numbers, name: &str, shape: &[usize], at| {
        all.push((name.to_owned(), numbers.floats(name, shape, at)));
    };
    floats(&mut all, &mut numbers, "model.embed_tokens.weight", &table, 0.0);
    for layer in 0..config.layers.len() {
        let name = |part: &str| format!("model.layers.{layer}.{part}.weight");
        floats(&mut all, &mut numbers, &name("input_layernorm"), &[hidden], 1.0);
        for (part, rows, columns) in [
            ("self_attn.q_proj", hidden, hidden),
            ("self_attn.k_proj", kv, hidden),
            ("self_attn.v_proj", kv, hidden),
            ("self_attn.o_proj", hidden, hidden),
            ("mlp.gate_proj", ffn, hidden),
            ("mlp.up_proj", ffn, hidden),
            ("mlp.down_proj", hidden, ffn),
        ] {
            all.push((name(part), Content::Ternary(numbers.matrix(rows, columns))));
        }
        floats(&mut all, &mut numbers, &name("post_attention_layernorm"), &[hidden], 1.0);
        if config.head_norms {
            for part in ["self_attn.q_norm", "self_attn.k_norm"] {
                floats(&mut all, &mut numbers, &name(part), &[config.head_dim], 1.0);
            }
        }
        if config.sub_norms {
            floats(&mut all, &mut numbers, &name("self_attn.attn_sub_norm"), &[hidden], 1.0);
            floats(&mut all, &mut numbers, &name("mlp.ffn_sub_norm"), &[ffn], 1.0);
        }
    }
    floats(&mut all, &mut numbers, "model.norm.weight", &[hidden], 1.0);
    if !config.tied_head {
        floats(&mut all, &mut numbers, "lm_head.weight", &table, 0.0);
    }
    all
}

/// The model as Hugging Face's packed safetensors.
fn folder(config: &str, contents: &[(String, Content)]) -> Model {
    let mut tensors: Vec<(NewTensor, Vec<u8>)> = vec![];
    let mut add = |name: &str, dtype, shape: &[usize], bytes| {
        tensors.push((NewTensor { name: name.to_owned(), dtype, shape: shape.to_vec() }, bytes));
    };
    for (name, content) in contents {
        match content {
            Content::Floats(tensor) => add(name, Dtype::F32, &tensor.info.shape, bytes_of(tensor)),
            Content::Ternary(matrix) => {
                let packed = packed::pack(name, matrix).expect("packed rows");
                add(name, Dtype::U8, &[matrix.rows() / 4, matrix.columns()], packed);
                let Scales::Tensor(scale) = matrix.scales() else { unreachable!("one scale") };
                let bytes = scale.to_le_bytes().to_vec();
                add(&format!("{name}_scale"), Dtype::F32, &[1], bytes);
            }
        }
    }
    let new: Vec<_> = tensors.iter().map(|(new, _)| new.clone()).collect();
    let mut file = layout(files::WEIGHTS, &new, &BTreeMap::new()).expect("a layout").header;
    for (_, bytes) in tensors {
        file.extend(bytes);
    }
    let all = BTreeMap::from([(files::CONFIG, config.as_bytes()), (files::WEIGHTS, &file[..])]);
    Model::from_files(Source::Folder, "hf", &all).expect("a folder")
}

fn bytes_of(tensor: &Tensor) -> Vec<u8> {
    match &tensor.data {
        TensorData::F32(values) => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
        _ => unreachable!("all floats are f32"),
    }
}

/// The model as a GGUF file.
fn gguf(config: &ModelConfig, contents: &[(String, Content)], target: Dtype) -> Model {
    let tensor = |(name, content): &(String, Content)| match content {
        Content::Floats(tensor) => OutlineTensor {
            name: name.clone(),
            shape: tensor.info.shape.clone(),
            kind: OutlineKind::Floats(Dtype::F32),
        },
        Content::Ternary(matrix) => OutlineTensor {
            name: name.clone(),
            shape: vec![matrix.rows(), matrix.columns()],
            kind: OutlineKind::Ternary(ScaleKind::of(matrix.scales())),
        },
    };
    let tensors = contents.iter().map(tensor).collect();
    let outline = Outline { config: config.clone(), files: Files::default(), tensors };
    let beside = |name: &str| {
        let scale = |(found, content): &(String, Content)| match content {
            Content::Ternary(matrix) if found == name => Some(matrix.scale(0, 0)),
            _ => None,
        };
        contents.iter().find_map(scale).is_some_and(needs_scale_beside)
    };
    let plan = plan(&outline, target, beside).expect("a plan");
    let mut file = plan.header.clone();
    for (name, content) in contents {
        let mut put = |_, bytes: Vec<u8>| file.extend(bytes);
        plan.encode(name, content.clone(), &mut put).expect("a tensor");
    }
    Model::from_bytes("m.gguf", &file).expect("a GGUF file")
}

fn logits(model: Model, device: &Device) -> Vec<Vec<u32>> {
    let tokens: Vec<u32> = (0..24).map(|token| token * 7 % 48).collect();
    bits(&Runner::new(model, exact(device)).logits(&tokens, 24))
}

#[test]
fn every_container_gives_the_same_bits() {
    for architecture in ["BitNetForCausalLM", "LlamaForCausalLM", "Qwen3ForCausalLM"] {
        let text = config(architecture);
        let config = ModelConfig::parse(text.as_bytes(), &GenerationDefaults::default());
        let config = config.expect("a configuration");
        let contents = contents(&config);
        for device in devices() {
            let expected = logits(folder(&text, &contents), &device);
            assert!(expected.iter().flatten().any(|bits| *bits != expected[0][0]), "not all equal");
            for target in [Dtype::I2S, Dtype::Tq1_0, Dtype::Tq2_0] {
                let found = logits(gguf(&config, &contents, target), &device);
                assert!(found == expected, "{architecture} as {target} on {device}");
            }
        }
    }
}

/// Types that are only read, and tables in blocks, run on every device.
#[test]
fn files_of_another_writer_run() {
    for name in [
        "i2_s",
        "tq1_0",
        "tq2_0",
        "tq2_0-scale",
        "llama-q2_0",
        "llama-iq2_bn",
        "llama-iq1_bn",
        "llama-f16",
        "bitnet-bf16",
        "qwen3-q2_0",
    ] {
        let name = format!("{name}.gguf");
        let bytes = std::fs::read(fixture("gguf").join(&name)).expect("a fixture");
        let mut first = None;
        for device in devices() {
            let model = Model::from_bytes(name.clone(), &bytes).expect("a model");
            assert!(model.weights().unused.is_empty(), "{name}: {:?}", model.weights().unused);
            assert!(model.tokenizer().expect("a good one").is_some(), "{name}");
            let rows = Runner::new(model, exact(&device)).logits(&[0, 4, 5, 6, 7], 5);
            assert!(rows.iter().flatten().all(|logit| logit.is_finite()), "{name} on {device}");
            let found = bits(&rows);
            assert_eq!(first.get_or_insert_with(|| found.clone()), &found, "{name} on {device}");
        }
    }
}

/// Token ids need no tokenizer: one that cannot be used is an error only where it is needed.
#[test]
fn a_vocabulary_without_merges_is_no_obstacle_to_token_ids() {
    let whole = std::fs::read(fixture("gguf/tq2_0.gguf")).expect("a fixture");
    let (key, other) = (b"tokenizer.ggml.merges", b"tokenizer.ggml.merger");
    let place = whole.windows(key.len()).position(|bytes| bytes == key).expect("merges");
    let mut file = whole.clone();
    file[place..place + key.len()].copy_from_slice(other);

    let open = |bytes: &[u8]| Model::from_bytes("m.gguf", bytes).expect("a model");
    let rows = |bytes: &[u8]| {
        let mut runner = Runner::new(open(bytes), DeviceOptions::default());
        bits(&runner.logits(&[0, 4, 5, 6, 7], 5))
    };
    assert_eq!(rows(&file), rows(&whole));
    let refused = [
        open(&file).tokenizer().map(drop).expect_err("no merges"),
        Engine::builder(open(&file)).build().map(drop).expect_err("no merges"),
    ];
    for error in refused {
        assert_eq!(error.code(), ErrorCode::BadCheckpoint);
        assert!(error.to_string().contains("`tokenizer.ggml.merges` is missing"), "{error}");
    }
    let name = "m.gguf".to_owned();
    let mut conversion = Conversion::new(Source::File(name), "m", Format::Hf, "");
    let error = loop {
        let Some(want) = conversion.next_read() else { panic!("it was converted") };
        let range = want.range.unwrap_or(0..u64::MAX);
        let at = |at: u64| usize::try_from(at).map_or(file.len(), |at| at.min(file.len()));
        let bytes = &file[at(range.start)..at(range.end)];
        if let Err(error) = conversion.give(Some(bytes), |_| Ok::<_, Error>(())) {
            break error;
        }
    };
    assert!(error.to_string().contains("merges"), "the tokenizer would be lost: {error}");
}
