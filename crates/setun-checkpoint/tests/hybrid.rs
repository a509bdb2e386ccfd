//! Hybrid models of each format: configuration, names, and the bytes of every tensor.

use crate::support::{Folder, bytes_of, fixture, read, safetensors_of, tensors_of};
use setun_checkpoint::{
    Source,
    config::{Mixer, QuantizationMode},
    files,
};
use setun_ops::delta_net::HeadOrder;

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
