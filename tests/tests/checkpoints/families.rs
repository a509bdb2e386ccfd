//! Families that quantize in their own ways, against the float64 evaluation of
//! `fixtures/families/make.py`, on every level of the processor.

use std::{collections::BTreeMap, fs};

use half::f16;
use safetensors::{Dtype, SafeTensors, tensor::TensorView};
use setun::{Conversion, DeviceOptions, ErrorCode, Format, HeadType, Model, Source};
use setun_tests::{
    fixture,
    golden::{Tensors, max_difference},
    run::{Runner, bits, devices, exact},
};

/// No int8 code is near a rounding tie.
const STRICT: f32 = 1e-4;

const MODELS: [&str; 6] = [
    "bitnet-1bitllm",
    "qwen3-packed",
    "qwen3-groups",
    "qwen3-mlx",
    "qwen3-outliers",
    "trilm-shards",
];

/// The files of a model in memory.
type Folder = BTreeMap<String, Vec<u8>>;

#[test]
fn logits() {
    for model in MODELS {
        let folder = fixture("families").join(model);
        let golden = Tensors::read(&folder.join("golden.safetensors"));
        let (ids, expected) = (golden.ids("ids"), golden.floats("logits").expect("logits"));
        for device in devices() {
            let opened = Model::open(&folder).expect("a model");
            assert_eq!(opened.weights().unused, [""; 0], "{model}: every tensor has a use");
            let mut runner = Runner::new(opened, exact(&device));
            let rows = runner.logits(&ids, ids.len());
            let difference = max_difference(&rows.concat(), &expected);
            assert!(difference <= STRICT, "{model} on {device}: {difference}");
            let pieces = runner.logits(&ids, 5);
            assert_eq!(bits(&pieces), bits(&rows), "{model} on {device}, cut into pieces");
        }
    }
}

/// Mean divergence of the tokens' shares from those of float activations, in nats.
fn divergence(float: &[f32], found: &[f32], vocab: usize) -> f64 {
    let log_shares = |row: &[f32]| -> Vec<f64> {
        let most = row.iter().fold(f64::MIN, |most, &x| most.max(f64::from(x)));
        let sum: f64 = row.iter().map(|&x| (f64::from(x) - most).exp()).sum();
        row.iter().map(|&x| f64::from(x) - most - sum.ln()).collect()
    };
    let of_row = |(a, b): (&[f32], &[f32])| -> f64 {
        let pairs = log_shares(a).into_iter().zip(log_shares(b));
        pairs.map(|(a, b)| a.exp() * (a - b)).sum()
    };
    let rows: Vec<f64> = float.chunks(vocab).zip(found.chunks(vocab)).map(of_row).collect();
    rows.iter().sum::<f64>() / f64::from(u32::try_from(rows.len()).expect("a short prompt"))
}

/// Where some channels stand out, a scale for each 128 columns of activations is nearer to floats than
/// one for each row, as much as in the reference.
#[test]
fn activations_by_groups_are_nearer_to_floats() {
    let folder = fixture("families/qwen3-outliers");
    let golden = Tensors::read(&folder.join("golden.safetensors"));
    let floats = |name: &str| golden.floats(name).expect("logits");
    let (ids, float) = (golden.ids("ids"), floats("float"));
    let vocab = float.len() / ids.len();
    let by_row = divergence(&float, &floats("by_row"), vocab);
    let by_group = divergence(&float, &floats("logits"), vocab);
    for device in devices() {
        let mut runner = Runner::new(Model::open(&folder).expect("a model"), exact(&device));
        let found = divergence(&float, &runner.logits(&ids, ids.len()).concat(), vocab);
        assert!(found <= 1.001 * by_group, "{device}: {found}, reference {by_group}");
        assert!(2.0 * found <= by_row, "{device}: {found}, by row {by_row}");
    }
}

/// The files of a model, one of its texts replaced.
fn edited(model: &str, file: &str, from: &str, to: &str) -> Result<Model, setun::Error> {
    let mut files = folder(model);
    let bytes = files.get_mut(file).expect("a file");
    let mut at = 0;
    while let Some(found) = bytes[at..].windows(from.len()).position(|w| w == from.as_bytes()) {
        at += found;
        bytes.splice(at..at + from.len(), to.bytes());
        at += to.len();
    }
    assert_ne!(at, 0, "{model}: no {from} in {file}");
    open(&files)
}

fn folder(model: &str) -> Folder {
    let folder = fixture("families").join(model);
    let read = |name: &str| (name.to_owned(), fs::read(folder.join(name)).expect("a fixture"));
    ["config.json", "model.safetensors"].map(read).into()
}

fn open(files: &Folder) -> Result<Model, setun::Error> {
    let files = files.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice())).collect();
    Model::from_files(Source::Folder, "a model", &files)
}

/// The first byte of a tensor in a file whose header is small.
fn start(bytes: &[u8], tensor: &str) -> usize {
    let length = usize::from(u16::from_le_bytes([bytes[0], bytes[1]]));
    let header: serde_json::Value = serde_json::from_slice(&bytes[8..8 + length]).expect("JSON");
    let start = header[tensor]["data_offsets"][0].as_u64().expect("an offset");
    8 + length + usize::try_from(start).expect("a small file")
}

fn assert_fails(opened: Result<Model, setun::Error>, code: ErrorCode, says: &[&str]) {
    let error = opened.err().unwrap_or_else(|| panic!("opened, expected {says:?}"));
    let message = error.to_string();
    assert_eq!(error.code(), code, "{message}");
    for part in says {
        assert!(message.contains(part), "`{message}` does not say `{part}`");
    }
}

/// Both spellings occur under one architecture, so the tensors decide the family.
#[test]
fn a_missing_sub_norm_is_named_in_both_spellings() {
    for (from, to) in [("inner_attn_ln", "inner_attn_xx"), ("ffn_layernorm", "ffn_layerxxxx")] {
        let opened = edited("bitnet-1bitllm", "model.safetensors", from, to);
        let names: [&str; 2] = if from == "inner_attn_ln" {
            ["self_attn.inner_attn_ln.weight", "self_attn.attn_sub_norm.weight"]
        } else {
            ["mlp.ffn_layernorm.weight", "mlp.ffn_sub_norm.weight"]
        };
        assert_fails(opened, ErrorCode::BadCheckpoint, &names);
    }
}

#[test]
fn a_missing_norm_of_heads_is_named() {
    let opened = edited("qwen3-packed", "model.safetensors", "k_norm", "k_nxxx");
    assert_fails(opened, ErrorCode::BadCheckpoint, &["model.layers.0.self_attn.k_norm.weight"]);
}

#[test]
fn what_a_configuration_cannot_mean_is_refused() {
    for (model, from, to, says) in [
        (
            "qwen3-packed",
            r#""use_sliding_window": false"#,
            r#""use_sliding_window": true"#,
            "full attention",
        ),
        ("qwen3-packed", "quantization_config", "quantization_remark", "weight_scale"),
        ("bitnet-1bitllm", r#""input_bits": 8"#, r#""input_bits": 4"#, "input_bits"),
        ("bitnet-1bitllm", r#""weight_bits": 1"#, r#""weight_bits": 2"#, "weight_bits"),
    ] {
        let opened = edited(model, "config.json", from, to);
        assert_fails(opened, ErrorCode::UnsupportedModel, &[says]);
    }
}

/// A weight whose magnitude is not that of its group's others.
#[test]
fn a_float_that_is_not_ternary_is_named() {
    const TENSOR: &str = "model.layers.0.self_attn.q_proj.weight";
    for (model, columns, row, column) in [("qwen3-groups", 256, 5, 200), ("trilm-shards", 32, 9, 3)]
    {
        let mut files = folder(model);
        let bytes = files.get_mut("model.safetensors").expect("weights");
        let start = start(bytes, TENSOR);
        // 0.5 is above every scale.
        bytes[start + 2 * (row * columns + column)..][..2].copy_from_slice(&[0x00, 0x38]);
        let place = format!("row {row}, column {column}");
        assert_fails(open(&files), ErrorCode::BadCheckpoint, &[TENSOR, &place]);
    }
}

/// Logits of a model's prompt, on each level of the processor.
fn logits_of(files: &Folder, head: HeadType) -> Vec<Vec<Vec<u32>>> {
    let golden = Tensors::read(&fixture("families/qwen3-mlx/golden.safetensors"));
    let ids = golden.ids("ids");
    let on = |device| {
        let options = DeviceOptions { device, head, ..DeviceOptions::default() };
        let mut runner = Runner::new(open(files).expect("a model"), options);
        bits(&runner.logits(&ids, ids.len()))
    };
    devices().into_iter().map(on).collect()
}

/// The same weights as floats: `scale × code + bias`, without a word of MLX.
fn unpacked(files: &Folder) -> Folder {
    let tensors = SafeTensors::deserialize(&files["model.safetensors"]).expect("weights");
    let halves = |name: &str| -> Vec<f16> {
        let (pairs, _) = tensors.tensor(name).expect("a tensor").data().as_chunks::<2>();
        pairs.iter().map(|pair| f16::from_le_bytes(*pair)).collect()
    };
    let mut floats = BTreeMap::new();
    for (name, tensor) in tensors.tensors() {
        let mut shape = tensor.shape().to_vec();
        let bytes = if tensor.dtype() == Dtype::U32 {
            shape[1] *= 16;
            let base = name.strip_suffix(".weight").expect("a weight");
            let (scales, biases) =
                (halves(&format!("{base}.scales")), halves(&format!("{base}.biases")));
            let group = shape[0] * shape[1] / scales.len();
            let weight = |place: usize| {
                let code = tensor.data()[place / 4] >> (2 * (place % 4)) & 3;
                let (scale, bias) =
                    (scales[place / group].to_f32(), biases[place / group].to_f32());
                f16::from_f32(scale * f32::from(code) + bias)
            };
            (0..shape[0] * shape[1]).flat_map(|place| weight(place).to_le_bytes()).collect()
        } else if name.ends_with(".scales") || name.ends_with(".biases") {
            continue;
        } else {
            tensor.data().to_vec()
        };
        floats.insert(name, (shape, bytes));
    }
    let views = floats.iter().map(|(name, (shape, bytes))| {
        (name, TensorView::new(Dtype::F16, shape.clone(), bytes).expect("a tensor"))
    });
    let mut config: serde_json::Map<String, serde_json::Value> =
        serde_json::from_slice(&files["config.json"]).expect("JSON");
    config.retain(|field, _| !field.starts_with("quantization"));
    BTreeMap::from([
        ("config.json".to_owned(), serde_json::to_vec(&config).expect("JSON")),
        ("model.safetensors".to_owned(), safetensors::serialize(views, None).expect("weights")),
    ])
}

#[test]
fn codes_of_mlx_and_their_floats_give_the_same_bits() {
    let files = folder("qwen3-mlx");
    let floats = unpacked(&files);
    let expected = logits_of(&floats, HeadType::Stored);
    // A ternary table needs no screen, so that its head runs in full.
    for head in [HeadType::Auto, HeadType::Stored, HeadType::Screened] {
        assert!(logits_of(&files, head) == expected, "{head:?}");
    }
    assert!(logits_of(&files, HeadType::Int8) == logits_of(&floats, HeadType::Int8), "int8");
    let opened = open(&files).expect("a model");
    assert_eq!(opened.weights().unused, [""; 0], "every tensor has a use");
}

/// The same table again as a head of its own.
#[test]
fn a_head_in_codes_of_mlx_is_read() {
    let tied = folder("qwen3-mlx");
    let tensors = SafeTensors::deserialize(&tied["model.safetensors"]).expect("weights");
    let all = tensors.tensors().into_iter().flat_map(|(name, tensor)| {
        let head = name.replace("model.embed_tokens", "lm_head");
        let is_table = head != name;
        [Some((name, tensor.clone())), is_table.then_some((head, tensor))].into_iter().flatten()
    });
    let config = String::from_utf8(tied["config.json"].clone()).expect("JSON");
    let config =
        config.replace(r#""tie_word_embeddings": true"#, r#""tie_word_embeddings": false"#);
    let untied = BTreeMap::from([
        ("config.json".to_owned(), config.into_bytes()),
        ("model.safetensors".to_owned(), safetensors::serialize(all, None).expect("weights")),
    ]);
    let opened = open(&untied).expect("a model");
    let layout = &opened.weights().layout;
    assert_ne!(layout.head, layout.embedding);
    assert!(logits_of(&untied, HeadType::Auto) == logits_of(&tied, HeadType::Auto));
}

#[test]
fn codes_of_mlx_are_converted() {
    let files = folder("qwen3-mlx");
    let mut conversion = Conversion::new(Source::Folder, "a model", Format::Hf, "");
    let mut written = Folder::new();
    let mut write = |piece: setun::checkpoint::write::Piece| {
        let file = written.entry(piece.file).or_default();
        let start = usize::try_from(piece.offset).expect("a small file");
        file.resize(file.len().max(start + piece.bytes.len()), 0);
        file[start..start + piece.bytes.len()].copy_from_slice(&piece.bytes);
        Ok::<(), setun::Error>(())
    };
    while let Some(want) = conversion.next_read() {
        let bytes = files.get(&want.file).map(|bytes| match &want.range {
            None => &bytes[..],
            Some(range) => {
                let end = |place| usize::try_from(place).expect("small").min(bytes.len());
                &bytes[end(range.start)..end(range.end)]
            }
        });
        conversion.give(bytes, &mut write).expect("a sound model");
    }
    let reported = conversion.finish(&mut write).expect("a whole model");
    assert_eq!(reported.unused, [""; 0]);
    assert!(logits_of(&written, HeadType::Stored) == logits_of(&files, HeadType::Stored));
}

#[test]
fn codes_of_mlx_that_are_not_ternary_are_named() {
    const LAYER: &str = "model.layers.1.mlp.down_proj";
    const TABLE: &str = "model.embed_tokens";
    for (name, columns, row, column) in [(LAYER, 192, 7, 130), (TABLE, 128, 9, 100)] {
        let mut files = folder("qwen3-mlx");
        let bytes = files.get_mut("model.safetensors").expect("weights");
        let weight = format!("{name}.weight");
        let group = row * (columns / 64) + column / 64;
        // A group as published, and in it one code of 3.
        let numbers = [(".scales", f16::ONE), (".biases", f16::NEG_ONE)];
        for (suffix, value) in numbers {
            let start = start(bytes, &format!("{name}{suffix}"));
            bytes[start + 2 * group..][..2].copy_from_slice(&value.to_le_bytes());
        }
        let codes = start(bytes, &weight) + 64 / 4 * group;
        bytes[codes..codes + 64 / 4].fill(0b01_01_01_01);
        open(&files).expect("all is ternary");
        let bytes = files.get_mut("model.safetensors").expect("weights");
        bytes[codes + column % 64 / 4] |= 3 << (2 * (column % 4));
        let place = format!("row {row}, column {column}");
        assert_fails(open(&files), ErrorCode::BadCheckpoint, &[&weight, &place]);
    }
}

#[test]
fn what_is_missing_or_does_not_fit_in_codes_of_mlx_is_named() {
    for (from, to, says) in [
        ("up_proj.scales", "up_proj.scalex", "model.layers.0.mlp.up_proj.scales"),
        ("q_proj.biases", "q_proj.biasex", "model.layers.0.self_attn.q_proj.biases"),
        ("embed_tokens.biases", "embed_tokens.biasex", "model.embed_tokens.biases"),
    ] {
        let opened = edited("qwen3-mlx", "model.safetensors", from, to);
        assert_fails(opened, ErrorCode::BadCheckpoint, &[says]);
    }
    let group = |to| edited("qwen3-mlx", "config.json", r#""group_size": 64"#, to);
    let says = ["model.embed_tokens.scales", "[32, 2]", "[32, 1]"];
    assert_fails(group(r#""group_size": 128"#), ErrorCode::BadCheckpoint, &says);
    let narrow =
        edited("qwen3-mlx", "config.json", r#""hidden_size": 128"#, r#""hidden_size": 96"#);
    let says = ["model.embed_tokens.weight", "96 columns", "groups of 64"];
    assert_fails(narrow, ErrorCode::BadCheckpoint, &says);
}
