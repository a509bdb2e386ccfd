//! Hybrid models of each format: configuration, names, and the bytes of every tensor.

use crate::support::{
    Checkpoint, Folder, Random, bytes_of, fixture, read, safetensors_of, tensors_of,
};
use setun_checkpoint::{
    CheckpointError, ModelConfig, Source, Tensor,
    affine::Affine,
    blocks,
    config::{Mixer, QuantizationMode},
    dense, files,
};
use setun_ops::{TernaryMatrix, aligned::Aligned, delta_net::HeadOrder, ternary::Scales};

/// transformers' own folder: all as it is stored, but for the shape of the convolution.
#[test]
fn a_folder_of_transformers_is_read() {
    let folder = fixture("families/qwen35-r1/hf");
    let found = read(Source::Folder, &folder).unwrap();
    assert_eq!(found.warnings, []);
    let shape = found.config.layers[0].delta_net().unwrap();
    assert_eq!((shape.key_heads, shape.value_heads, shape.kernel), (1, 1, 4));
    assert_eq!((shape.key_dim, shape.value_dim, shape.channels()), (128, 128, 384));
    assert_eq!(found.config.layers[1..], [Mixer::Attention]);
    assert!(found.config.unit_norms && found.config.tied_head && found.config.attention_gate);
    assert_eq!((found.config.head_dim, found.config.rope.dimensions), (64, 16));
    assert_eq!(found.config.eos_tokens, [262, 260]);

    let stored = tensors_of(&folder[files::WEIGHTS]);
    assert_eq!(found.tensors.len(), stored.len());
    for tensor in &found.tensors {
        let view = stored.tensor(&tensor.info.name).unwrap();
        assert_eq!(bytes_of(&tensor.data), view.data(), "{}", tensor.info.name);
    }
    let conv = found.tensor("model.layers.0.linear_attn.conv1d.weight");
    assert_eq!(conv.info.shape, [384, 4]);
}

/// The folder with each tensor by another name, and some besides.
fn renamed(folder: &Folder, name: impl Fn(&str) -> String, besides: &[&str]) -> Folder {
    let mut tensors = read(Source::Folder, folder).unwrap().tensors;
    for tensor in &mut tensors {
        tensor.info.name = name(&tensor.info.name);
        if tensor.info.name.ends_with("conv1d.weight") {
            tensor.info.shape.insert(1, 1);
        }
    }
    for besides in besides {
        let mut tensor = tensors[0].clone();
        (*besides).clone_into(&mut tensor.info.name);
        tensors.push(tensor);
    }
    let mut folder = folder.clone();
    let file = safetensors_of(&tensors, &std::collections::BTreeMap::new());
    folder.insert(files::WEIGHTS.to_owned(), file);
    folder
}

/// The text model of a folder with images has the names and bytes of the text model by itself.
#[test]
fn parts_besides_the_text_model_are_passed_over_with_a_note() {
    let text = fixture("families/qwen35-r1/hf");
    let expected = read(Source::Folder, &text).unwrap();
    let besides = ["model.visual.pos_embed.weight", "mtp.fc.weight", "mtp.norm.weight"];
    let wrapper = renamed(&text, |name| name.replace("model.", "model.language_model."), &besides);
    let found = read(Source::Folder, &wrapper).unwrap();
    assert_eq!(found.config, expected.config);
    let by_name = |tensors: &[setun_checkpoint::Tensor]| {
        let mut all: Vec<_> = tensors
            .iter()
            .map(|tensor| {
                (tensor.info.name.clone(), tensor.info.shape.clone(), tensor.data.clone())
            })
            .collect();
        all.sort_by(|a, b| a.0.cmp(&b.0));
        all
    };
    assert!(by_name(&found.tensors) == by_name(&expected.tensors));
    let warnings: Vec<_> = found.warnings.iter().map(ToString::to_string).collect();
    let note =
        "model.safetensors: the vision tower (1 tensors) and the MTP head (2 tensors) are not used";
    assert_eq!(warnings, [note]);
    let both = renamed(&text, str::to_owned, &["model.language_model.norm.weight"]);
    let error = read(Source::Folder, &both).unwrap_err().to_string();
    assert!(error.contains("tensor `model.norm.weight` occurs twice"), "{error}");
}

/// MLX's packs have other names and shapes, and norms with their 1.
#[test]
fn a_pack_of_mlx_is_read() {
    let folder = fixture("families/qwen35-wrapper-r3/mlx");
    let found = read(Source::Folder, &folder).unwrap();
    assert_eq!(found.warnings, []);
    assert_eq!(found.config.architecture, "Qwen3_5ForCausalLM");
    assert_eq!(found.config.quantization.mode, QuantizationMode::Affine { group: 128 });
    let shape = found.config.layers[0].delta_net().unwrap();
    assert_eq!((shape.key_heads, shape.value_heads, shape.order), (2, 6, HeadOrder::Grouped));
    assert!(!found.config.unit_norms && !found.config.tied_head);
    // What is written from here on says the same by itself.
    let text = found.files.get(files::CONFIG).unwrap();
    let again = setun_checkpoint::ModelConfig::parse(text, &found.generation);
    assert_eq!(again.as_ref(), Ok(&found.config));

    let stored = tensors_of(&folder[files::WEIGHTS]);
    assert_eq!(found.tensors.len(), stored.len());
    for tensor in &found.tensors {
        let view = stored.tensor(&format!("language_model.{}", tensor.info.name)).unwrap();
        assert_eq!(bytes_of(&tensor.data), view.data(), "{}", tensor.info.name);
    }
    let conv = found.tensor("model.layers.0.linear_attn.conv1d.weight");
    assert_eq!(conv.info.shape, [1280, 4]);
}

fn gguf(folder: &str, file: &str) -> Result<Checkpoint, CheckpointError> {
    read(Source::File(file.to_owned()), &fixture(&format!("families/{folder}")))
}

fn numbers(tensor: &Tensor) -> Vec<f32> {
    let mut tensor = tensor.clone();
    tensor.info.shape = vec![tensor.info.elements()];
    dense::vector(&tensor).unwrap()
}

/// The weights of a matrix of any ternary type.
fn weights(tensor: &Tensor) -> Vec<f32> {
    let shape = tensor.info.expect_matrix().unwrap();
    products(shape, blocks::unpack(tensor).unwrap())
}

fn products((rows, columns): (usize, usize), (codes, scales): (Aligned<u8>, Scales)) -> Vec<f32> {
    let matrix = TernaryMatrix::new(rows, columns, codes, scales).unwrap();
    let weight = |place: usize| {
        let (row, column) = (place / columns, place % columns);
        f32::from(matrix.weight(row, column)) * matrix.scale(row, column)
    };
    (0..rows * columns).map(weight).collect()
}

/// A GGUF file holds the model of the folder: by the same names, with norms that include their 1 and
/// decays in place of their logarithms.
#[test]
fn a_gguf_file_is_the_folder() {
    let folder = read(Source::Folder, &fixture("families/qwen35-r1/hf")).unwrap();
    for file in ["type142.gguf", "type143-alpha-beta-f16.gguf"] {
        let found = gguf("qwen35-r1", file).unwrap();
        assert!(found.warnings.iter().all(|warning| warning.what.contains("ends a text")));
        assert!(!found.config.unit_norms && found.config.hadamard.is_none(), "{file}");
        let same = ModelConfig {
            unit_norms: true,
            quantization: folder.config.quantization.clone(),
            eos_tokens: folder.config.eos_tokens.clone(),
            bos_token: folder.config.bos_token,
            ..found.config.clone()
        };
        assert_eq!(same, folder.config, "{file}");
        assert_eq!(found.config.quantization.activation_group, Some(128));
        assert_eq!(found.tensors.len(), folder.tensors.len());
        for tensor in &found.tensors {
            let name = &tensor.info.name;
            let stored = folder.get(&name.replace("decay", "A_log")).expect(name);
            assert_eq!(tensor.info.shape, stored.info.shape, "{name}");
            let ours =
                if tensor.info.dtype.is_ternary() { weights(tensor) } else { numbers(tensor) };
            let is_unit = name.ends_with("norm.weight") && !name.contains("linear_attn");
            let expected = numbers(stored).into_iter().map(|value| match value {
                value if is_unit => 1.0 + value,
                value if name.ends_with("decay") => -value.exp(),
                value => value,
            });
            assert!(ours == expected.collect::<Vec<_>>(), "{file} {name}");
        }
    }
}

/// Value heads are tiled in GGUF and grouped in MLX's pack; the output matrix of a rotated file is
/// grouped in both.
#[test]
fn a_rotated_gguf_file_says_how_heads_and_inputs_lie() {
    let pack = fixture("families/qwen35-hadamard-r2/mlx");
    let pack = tensors_of(&pack[files::WEIGHTS]);
    for file in ["type143.gguf", "type42g64.gguf"] {
        let found = gguf("qwen35-hadamard-r2", file).unwrap();
        assert!(found.warnings.iter().all(|warning| warning.what.contains("ends a text")));
        let shape = found.config.layers[0].delta_net().unwrap();
        assert_eq!((shape.key_heads, shape.value_heads, shape.value_dim), (2, 4, 128));
        assert_eq!((shape.order, shape.output_order), (HeadOrder::Tiled, HeadOrder::Grouped));
        let hadamard = found.config.hadamard.as_ref().unwrap();
        assert_eq!((hadamard.block, hadamard.embedding, hadamard.layers.len()), (128, true, 14));
        assert!(hadamard.layers.contains("lm_head"));
        assert!(hadamard.layers.contains("model.layers.0.linear_attn.in_proj_z"));
        assert!(!hadamard.layers.contains("model.layers.0.linear_attn.in_proj_a"));
        for (layer, width) in [("mlp.up_proj", 128), ("linear_attn.out_proj", 512)] {
            let name = format!("language_model.model.layers.0.{layer}.signs");
            let bytes = pack.tensor(&name).unwrap().data().as_chunks().0;
            let signs: Vec<_> = bytes.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
            assert_eq!(hadamard.signs[&width], signs, "{file} {layer}");
        }
        let dt = "linear_attn.dt_bias";
        let grouped = pack.tensor(&format!("language_model.model.layers.0.{dt}")).unwrap();
        let grouped = grouped.data().as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes));
        let grouped: Vec<_> = grouped.collect();
        let tiled = numbers(found.tensor(&format!("model.layers.0.{dt}")));
        assert_eq!(tiled, [grouped[0], grouped[2], grouped[1], grouped[3]]);
        // What the reader says of a file is what its text says.
        let text = found.files.get(files::CONFIG).unwrap();
        let again = ModelConfig::parse(text, &found.generation);
        assert_eq!(again.map(|config| config.hadamard), Ok(found.config.hadamard.clone()));
    }
}

/// Version 2: the head is the rotated table, and there are no signs.
#[test]
fn a_tied_head_is_rotated_with_its_table() {
    let found = gguf("qwen35-hadamard-tied-r3", "type143.gguf").unwrap();
    let hadamard = found.config.hadamard.as_ref().unwrap();
    assert!(found.config.tied_head && hadamard.embedding && hadamard.signs.is_empty());
    assert!(hadamard.layers.contains("lm_head") && hadamard.layers.len() == 14);
    let shape = found.config.layers[1].delta_net().unwrap();
    assert_eq!((shape.key_heads, shape.value_heads), (2, 6));
    assert_eq!((shape.order, shape.output_order), (HeadOrder::Tiled, HeadOrder::Tiled));
    assert_eq!(found.config.layers[0], Mixer::Attention);
}

#[test]
fn files_that_say_something_else_are_refused_by_what_is_wrong() {
    for (file, parts) in [
        ("unknown-transform", &["prism.hadamard.transform `haar`"][..]),
        ("unknown-version", &["prism.hadamard.version `3`"]),
        ("tied-output-in-version-1", &["`prism.hadamard.tied_output` is true", "version 1"]),
        ("width-without-signs", &["sign_widths", "256", "model.layers.0.mlp.down_proj"]),
        ("weight-name-that-is-no-tensor", &["weight_names` is blk.1.attn_q.weight", "tensors"]),
        ("weight-kind-not-rotatable", &["weight_names` is blk.0.attn_q_norm.weight", "matrices"]),
        ("sign-not-one", &["sign_values` is 0", "1 and -1"]),
        ("mixed-groups", &["`blk.0.ffn_gate.weight`", "another size than most", "groups of 64"]),
    ] {
        let error = gguf("qwen35-negative", &format!("{file}.gguf")).unwrap_err().to_string();
        assert!(parts.iter().all(|part| error.contains(part)), "{file}: {error}");
    }
    let found = gguf("qwen35-negative", "code-3.gguf").unwrap();
    let error = blocks::unpack(found.tensor("model.layers.0.mlp.up_proj.weight")).unwrap_err();
    assert!(matches!(error, CheckpointError::NotTernary { .. }), "{error}");
}

/// An error or a model, whatever is broken: 4,000 files with a few bits changed.
#[test]
fn broken_files_never_panic() {
    let folders = [("qwen35-hadamard-r2", "type143.gguf"), ("qwen35-negative", "code-3.gguf")];
    let files =
        folders.map(|(folder, file)| fixture(&format!("families/{folder}")).remove(file).unwrap());
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    for round in 0..4_000 {
        let mut file = files[round % files.len()].clone();
        for _ in 0..=random.below(4) {
            let place = random.below(8192);
            file[place] ^= 1 << random.below(8);
        }
        let folder = Folder::from([("m.gguf".to_owned(), file)]);
        drop(read(Source::File("m.gguf".to_owned()), &folder));
    }
}

/// A pack of MLX and a GGUF file of one model say the same rotation, and hold the same codes where
/// heads are not permuted.
#[test]
fn a_rotated_pack_of_mlx_is_read() {
    let folder = fixture("families/qwen35-hadamard-r2/mlx");
    let found = read(Source::Folder, &folder).unwrap();
    assert_eq!(found.warnings, []);
    let gguf = gguf("qwen35-hadamard-r2", "type143.gguf").unwrap();
    assert_eq!(found.config.hadamard, gguf.config.hadamard);
    let shape = found.config.layers[0].delta_net().unwrap();
    assert_eq!((shape.order, shape.output_order), (HeadOrder::Grouped, HeadOrder::Grouped));
    assert!(!found.config.unit_norms);
    let text = found.files.get(files::CONFIG).unwrap();
    assert_eq!(ModelConfig::parse(text, &found.generation).as_ref(), Ok(&found.config));
    assert!(found.tensors.iter().all(|tensor| !tensor.info.name.contains(".signs")));
    assert_eq!(found.tensors.len(), 58);
    for name in ["mlp.down_proj", "linear_attn.out_proj"] {
        let tensor = |end| found.tensor(&format!("model.layers.0.{name}.{end}"));
        let (codes, scales, biases) = (tensor("weight"), tensor("scales"), tensor("biases"));
        let ours = gguf.tensor(&format!("model.layers.0.{name}.weight"));
        let shape = ours.info.expect_matrix().unwrap();
        let affine = Affine::new(codes, scales, biases, shape, 128).unwrap().unpack().unwrap();
        assert!(products(shape, affine) == weights(ours), "{name}");
    }
}

/// The folder with a text of its JSON files replaced.
fn with_text(file: &str, from: &str, to: &str) -> Result<Checkpoint, CheckpointError> {
    let mut folder = fixture("families/qwen35-hadamard-r2/mlx");
    let text = String::from_utf8(folder[file].clone()).unwrap();
    assert!(text.contains(from), "{from}");
    folder.insert(file.to_owned(), text.replacen(from, to, 1).into_bytes());
    read(Source::Folder, &folder)
}

#[test]
fn packs_that_contradict_themselves_are_refused() {
    let keys = "hadamard.json";
    for (file, from, to, why) in [
        (files::CONFIG, "\"schema_version\": 2", "\"schema_version\": 3", "schema_version"),
        (files::CONFIG, "\"grouped\"", "\"tiled\"", "gdn_activation_layout"),
        (files::CONFIG, "\"hadamard.json\"", "\"../hadamard.json\"", "hadamard_config"),
        (files::CONFIG, "\"hadamard.json\"", "\"other.json\"", "expected hadamard.json"),
        (files::CONFIG, "\"block\": 128", "\"block\": 64", "64 of `model.embed_tokens`"),
        (files::CONFIG, "\"block\": 128", "\"block\": 0", "modules"),
        (files::CONFIG, "\"model.embed_tokens\"", "\"lm_head\"", "no other table"),
        (keys, "version\": 1", "version\": 4", "prism.hadamard.version `4`"),
        (keys, "\"explicit\"", "\"identity\"", "sign_values"),
        (keys, "[1.0, 1.0, -1.0", "[1.0, 1.0, 1.0", "the signs of the rotation"),
        (keys, "[1.0, 1.0, -1.0", "[1.0, 1.0, 0.5", "sign_values"),
        (keys, "language_model.lm_head.weight", "output.weight", "weight_names"),
        (keys, "prism.hadamard.axis", "axis", "`prism.hadamard.axis` is absent"),
    ] {
        let error = with_text(file, from, to).unwrap_err().to_string();
        assert!(error.contains(why), "{from} {to}: {error}");
    }
}
