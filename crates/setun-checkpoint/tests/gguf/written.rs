//! Files that this library writes: read back they are the same, in every type.

use std::collections::BTreeMap;

use setun_checkpoint::{
    CheckpointError, Dtype, ModelConfig, Tensor, TensorData, blocks,
    config::{Hadamard, LinearClass, RopeConfig, RopeScaling},
    gguf::write::{Plan, needs_scale_beside, plan},
    outline::{Content, Outline, OutlineKind, OutlineTensor},
};
use setun_ops::{
    TernaryMatrix,
    ternary::{Scales, pack_row, row_bytes},
    weight::ScaleKind,
};

use crate::{
    gguf::fixtures::{LINEARS, code, model, open},
    support::{Checkpoint, Folder},
};

const TARGETS: [Dtype; 7] = [
    Dtype::I2S,
    Dtype::Tq1_0,
    Dtype::Tq2_0,
    Dtype::Q2_0,
    Dtype::Q2_0Wide,
    Dtype::Pq2_0,
    Dtype::Ptq1_0,
];

/// A scale that f16 can hold, and one that it cannot.
const SCALES: [f32; 2] = [0.75, 0.3];

fn matrix(tensor: usize, rows: usize, columns: usize, scales: Scales) -> TernaryMatrix {
    let mut packed = vec![0; rows * row_bytes(columns)];
    for (row, packed) in packed.chunks_exact_mut(row_bytes(columns)).enumerate() {
        let codes: Vec<u8> =
            (0..columns).map(|column| code(tensor, row * columns + column)).collect();
        pack_row(&codes, packed);
    }
    TernaryMatrix::new(rows, columns, packed, scales).unwrap()
}

fn floats(name: &str, shape: &[usize], scale: f32) -> Tensor {
    let count = shape.iter().product();
    let values: Vec<f32> = (0..count)
        .map(|place: usize| f32::from(u16::try_from(place % 997).unwrap()) * scale)
        .collect();
    Tensor::new(name, Dtype::F32, shape, TensorData::F32(values.into()))
}

/// The configuration of a fixture, widened so that every type fits.
fn config(fixture: &str) -> ModelConfig {
    let config = model(fixture).config;
    let rope = RopeConfig { dimensions: 64, ..config.rope };
    ModelConfig {
        hidden_size: 256,
        ffn_size: 512,
        heads: 4,
        kv_heads: 2,
        head_dim: 64,
        rope,
        ..config
    }
}

/// All tensors of a model of one layer.
fn contents(config: &ModelConfig) -> Vec<(OutlineTensor, Content)> {
    let (hidden, ffn) = (config.hidden_size, config.ffn_size);
    let (queries, kv) = (config.query_width(), config.kv_width());
    let mut all = vec![];
    let mut add = |name: &str, content: Content| {
        let (shape, kind) = match &content {
            Content::Ternary(matrix) => {
                let kind = OutlineKind::Ternary(ScaleKind::of(matrix.scales()));
                (vec![matrix.rows(), matrix.columns()], kind)
            }
            Content::Floats(tensor) => {
                (tensor.info.shape.clone(), OutlineKind::Floats(tensor.info.dtype))
            }
        };
        all.push((OutlineTensor { name: name.to_owned(), shape, kind }, content));
    };
    let add_floats = |name: &str, shape: &[usize], add: &mut dyn FnMut(&str, Content)| {
        add(name, Content::Floats(floats(name, shape, 0.01)));
    };
    add_floats("model.embed_tokens.weight", &[config.vocab_size, hidden], &mut add);
    let layer = |part: &str| format!("model.layers.0.{part}");
    add_floats(&layer("input_layernorm.weight"), &[hidden], &mut add);
    let sizes = [
        (queries, hidden),
        (kv, hidden),
        (kv, hidden),
        (hidden, queries),
        (ffn, hidden),
        (ffn, hidden),
        (hidden, ffn),
    ];
    for (index, (linear, (rows, columns))) in LINEARS.into_iter().zip(sizes).enumerate() {
        let scales = Scales::Tensor(SCALES[index % 2]);
        let name = layer(&format!("{linear}.weight"));
        add(&name, Content::Ternary(matrix(index, rows, columns, scales)));
        if config.attention_bias {
            add_floats(&layer(&format!("{linear}.bias")), &[rows], &mut add);
        }
    }
    add_floats(&layer("post_attention_layernorm.weight"), &[hidden], &mut add);
    if config.sub_norms {
        add_floats(&layer("self_attn.attn_sub_norm.weight"), &[queries], &mut add);
        add_floats(&layer("mlp.ffn_sub_norm.weight"), &[ffn], &mut add);
    }
    if config.head_norms {
        add_floats(&layer("self_attn.q_norm.weight"), &[config.head_dim], &mut add);
        add_floats(&layer("self_attn.k_norm.weight"), &[config.head_dim], &mut add);
    }
    add_floats("model.norm.weight", &[hidden], &mut add);
    if !config.tied_head {
        add_floats("lm_head.weight", &[config.vocab_size, hidden], &mut add);
    }
    all
}

fn outline(fixture: &str, config: ModelConfig) -> (Outline, Vec<(OutlineTensor, Content)>) {
    let all = contents(&config);
    let tensors = all.iter().map(|(tensor, _)| tensor.clone()).collect();
    (Outline { config, files: model(fixture).files, tensors }, all)
}

fn write(plan: &Plan, contents: &[(OutlineTensor, Content)]) -> Vec<u8> {
    let mut file = plan.header.clone();
    for (place, (tensor, content)) in plan.places.iter().zip(contents) {
        assert_eq!((&place.name, place.range.start), (&tensor.name, file.len() as u64));
        let mut put = |offset, bytes: Vec<u8>| {
            assert_eq!(offset, file.len() as u64, "{}", tensor.name);
            file.extend(bytes);
        };
        plan.encode(&tensor.name, content.clone(), &mut put).unwrap();
        assert_eq!(place.range.end, file.len() as u64, "{}", tensor.name);
    }
    file
}

/// In place of a file to which nothing must be written.
fn no_file(_: u64, _: Vec<u8>) {
    panic!("a refused tensor is not written");
}

fn read(file: Vec<u8>) -> Checkpoint {
    open("m.gguf", &Folder::from([("m.gguf".to_owned(), file)])).unwrap()
}

fn written(fixture: &str, config: ModelConfig, target: Dtype) -> Vec<u8> {
    let (outline, contents) = outline(fixture, config);
    let beside = |name: &str| {
        let scale = |(tensor, content): &(OutlineTensor, Content)| match content {
            Content::Ternary(matrix) if tensor.name == name => Some(matrix.scale(0, 0)),
            _ => None,
        };
        contents.iter().find_map(scale).is_some_and(needs_scale_beside)
    };
    write(&plan(&outline, target, beside).unwrap(), &contents)
}

fn check(fixture: &str, config: &ModelConfig, target: Dtype) {
    let file = written(fixture, config.clone(), target);
    assert_eq!(file, written(fixture, config.clone(), target), "the same bytes");
    let found = read(file);
    assert_eq!(&found.config, config, "{fixture} {target}");
    for (tensor, content) in contents(config) {
        let stored = found.tensor(&tensor.name);
        match content {
            Content::Ternary(matrix) => {
                assert_eq!(stored.info.dtype, target, "{}", tensor.name);
                let (codes, scales) = blocks::unpack(stored).unwrap();
                assert_eq!(&codes[..], matrix.codes(), "{} {target}", tensor.name);
                let beside = found.get(&tensor.name.replace(".weight", ".weight_scale"));
                let own = match (scales, beside) {
                    (scales, None) => scales,
                    (Scales::Tensor(own), Some(beside)) => {
                        Scales::Tensor(own * setun_checkpoint::dense::scale(beside).unwrap())
                    }
                    (scales, Some(_)) => panic!("{scales:?}"),
                };
                assert_eq!(&own, matrix.scales(), "{}", tensor.name);
            }
            Content::Floats(expected) => assert_eq!(stored.data, expected.data, "{}", tensor.name),
        }
    }
}

#[test]
fn what_is_written_is_read_in_every_type() {
    for target in TARGETS {
        check("i2_s.gguf", &config("i2_s.gguf"), target);
        check("tq1_0.gguf", &config("tq1_0.gguf"), target);
        check("llama-q2_0.gguf", &config("llama-q2_0.gguf"), target);
        check("llama-iq2_bn.gguf", &config("llama-iq2_bn.gguf"), target);
        check("qwen3-q2_0.gguf", &config("qwen3-q2_0.gguf"), target);
    }
}

#[test]
fn what_standard_keys_cannot_say_is_kept() {
    let mut config = config("llama-iq2_bn.gguf");
    config.eos_tokens = vec![2, 1, 3];
    config.rope.theta = 1e6 + 0.1;
    config.rope.scaling = RopeScaling::Llama3 {
        factor: 8.0,
        low_freq_factor: 1.1,
        high_freq_factor: 3.0,
        original_context: 77,
    };
    check("llama-iq2_bn.gguf", &config, Dtype::I2S);
    config.rope.scaling = RopeScaling::Yarn {
        factor: 4.0,
        beta_fast: 31.0,
        beta_slow: 2.0,
        original_context: 77,
        attention_factor: None,
    };
    check("llama-iq2_bn.gguf", &config, Dtype::I2S);
}

#[test]
fn scales_by_row_and_group_are_kept_where_blocks_have_them() {
    let config = config("i2_s.gguf");
    let (outline, contents) = outline("i2_s.gguf", config);
    let name = "model.layers.0.mlp.down_proj.weight";
    let rows = (0..256_u16).map(|row| f32::from(row + 1) / 16.0).collect();
    let groups = (0..512_u16).map(|group| f32::from(group + 1) / 16.0).collect();
    let scaled = [Scales::Rows(rows), Scales::ColumnGroups { columns: 256, values: groups }];
    for scales in scaled {
        let new = matrix(6, 256, 512, scales.clone());
        let (mut outline, mut contents) = (outline.clone(), contents.clone());
        let place = outline.tensors.iter().position(|tensor| tensor.name == name).unwrap();
        outline.tensors[place].kind = OutlineKind::Ternary(ScaleKind::of(&scales));
        contents[place] = (outline.tensors[place].clone(), Content::Ternary(new.clone()));
        for target in [Dtype::Tq1_0, Dtype::Tq2_0] {
            let found = read(write(&plan(&outline, target, |_| true).unwrap(), &contents));
            let (codes, found) = blocks::unpack(found.tensor(name)).unwrap();
            assert_eq!((&codes[..], &found), (new.codes(), &scales), "{target}");
        }
        let planned = plan(&outline, Dtype::I2S, |_| true).unwrap();
        let error = planned.encode(name, Content::Ternary(new), &mut no_file).unwrap_err();
        assert!(error.to_string().contains("I2_S cannot hold the scales"), "{error}");
    }
}

#[test]
fn ternary_tables_are_written_in_types_that_have_their_groups() {
    let name = "model.embed_tokens.weight";
    let (mut outline, mut contents) = outline("i2_s.gguf", config("i2_s.gguf"));
    let (rows, columns) = (outline.config.vocab_size, 256);
    let values = (0..2 * rows).map(|group| 0.25 + f32::from(group % 5 == 0)).collect();
    let scales = Scales::ColumnGroups { columns: 128, values };
    let table = matrix(9, rows, columns, scales.clone());
    let kind = OutlineKind::Table { scales: ScaleKind::of(&scales), floats: Dtype::F16 };
    outline.tensors[0] = OutlineTensor { name: name.to_owned(), shape: vec![rows, columns], kind };
    contents[0] = (outline.tensors[0].clone(), Content::Ternary(table.clone()));
    for target in TARGETS {
        let found = read(write(&plan(&outline, target, |_| true).unwrap(), &contents));
        let stored = found.tensor(name).clone();
        let is_kept = !matches!(target, Dtype::I2S | Dtype::Tq1_0 | Dtype::Tq2_0);
        let expected = if is_kept { target } else { Dtype::F16 };
        assert_eq!(stored.info.dtype, expected);
        let found = setun_checkpoint::dense::table(stored).unwrap();
        let mut row = vec![0.0; columns];
        for at in 0..rows {
            found.widen_row(at, &mut row);
            let weight = |column| f32::from(code(9, at * columns + column)) - 1.0;
            let expected = (0..columns).map(|column| weight(column) * table.scale(at, column));
            assert!(row.iter().copied().eq(expected), "{target}, row {at}");
        }
    }
}

#[test]
fn what_gguf_cannot_hold_is_refused() {
    let refused = |change: &dyn Fn(&mut ModelConfig)| {
        let mut config = config("llama-q2_0.gguf");
        change(&mut config);
        let (outline, _) = outline("llama-q2_0.gguf", config);
        plan(&outline, Dtype::I2S, |_| false).unwrap_err().to_string()
    };
    let norms = refused(&|config| config.quantization.linear_norm_eps = Some(1e-6));
    assert!(norms.contains("use_rms_norm"), "{norms}");
    let biases = refused(&|config| config.quantization.linear_class = LinearClass::AutoBitLinear);
    assert!(biases.contains("before the scale"), "{biases}");
    for (layer, embedding, expected) in [
        ("lm_head", false, "as the embedding or as the head"),
        ("lm_head", true, "of the table alone"),
        ("model.layers.0.linear_attn.in_proj_a", false, "linear_attn.in_proj_a`"),
    ] {
        let rotated = refused(&|config| {
            let (layers, signs) = ([layer.to_owned()].into(), BTreeMap::new());
            config.tied_head = true;
            config.hadamard = Some(Hadamard { block: 64, signs, layers, embedding });
        });
        assert!(rotated.contains(expected), "{rotated}");
    }
    let columns = refused(&|config| config.ffn_size = 96);
    assert!(columns.contains("I2_S, whose blocks do not fit"), "{columns}");

    let (outline, contents) = outline("i2_s.gguf", config("i2_s.gguf"));
    let error = plan(&outline, Dtype::Q8_0, |_| false).unwrap_err();
    assert!(matches!(error, CheckpointError::Unwritable { .. }), "{error}");
    let planned = plan(&outline, Dtype::Tq2_0, |_| false).unwrap();
    let inexact = &contents.iter().find(|(tensor, _)| tensor.name.contains("k_proj")).unwrap();
    let error = planned.encode(&inexact.0.name, inexact.1.clone(), &mut no_file).unwrap_err();
    assert!(error.to_string().contains("without rounding"), "{error}");
    let error = planned.encode("model.norm.weight", inexact.1.clone(), &mut no_file).unwrap_err();
    assert!(matches!(error, CheckpointError::Shape { .. }), "{error}");
}
