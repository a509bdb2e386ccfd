//! Sizes and memory of the catalog against the configuration of each model at its full size.

use setun::{
    Device, DeviceOptions, HeadType, ModelHeader, ModelSource, Source,
    hub::{CatalogEntry, catalog, catalog::MEMORY_CONTEXT},
};

use super::{
    configuration,
    files::{Files, Part},
    gguf,
    tensors::{parameters, safetensors_header, tensors},
};

/// Bytes of a tokenizer in a GGUF file, which the headers here lack.
const MAX_TOKENIZER: u64 = 12 << 20;

/// A model of an entry's configuration with a context of at most [`MEMORY_CONTEXT`].
fn model(entry: &CatalogEntry) -> (Source, Files, u64) {
    let mut config = configuration(entry);
    let context = entry.context_length.unwrap_or(MEMORY_CONTEXT).min(MEMORY_CONTEXT);
    config["max_position_embeddings"] = context.into();
    let list = tensors(&config);
    let parameters = parameters(&list);
    if entry.format == "gguf" {
        let (header, parts) = gguf::file(&config, &list, vec![]);
        let files = Files { small: vec![], weights: "m.gguf", header, parts };
        return (Source::File("m.gguf".into()), files, parameters);
    }
    let header = safetensors_header(&list);
    let mut offset = header.len() as u64;
    let mut parts = vec![];
    for tensor in list {
        let range = offset..offset + tensor.bytes();
        offset = range.end;
        parts.push(Part { range, pattern: tensor.pattern });
    }
    let small = vec![("config.json", config.to_string().into_bytes())];
    let files = Files { small, weights: "model.safetensors", header, parts };
    (Source::Folder, files, parameters)
}

#[test]
fn parameters_bytes_and_memory_are_those_of_each_configuration() {
    let mut wrong = vec![];
    for entry in catalog() {
        let (layout, files, parameters) = model(entry);
        let bytes = files.weight_bytes();
        let source = ModelSource::new(layout, entry.name.clone(), files);
        let header = pollster::block_on(ModelHeader::read(source)).expect("a header");
        let options = DeviceOptions { device: Device::Cpu, ..DeviceOptions::default() };
        let memory = header.estimate(options).expect("an estimate").total();
        let tokenizer = if entry.format == "gguf" { MAX_TOKENIZER } else { 0 };
        let is_right = entry.parameters == parameters
            && (bytes..=bytes + tokenizer).contains(&entry.bytes)
            && entry.memory == memory;
        if !is_right {
            wrong.push(format!("{}: {parameters} {bytes} {memory}", entry.name));
        }
    }
    assert!(wrong.is_empty(), "parameters, bytes, memory:\n{}", wrong.join("\n"));
}

/// Memory that WebAssembly has for weights: its address space without the program and its buffers.
const WASM_BYTES: u64 = (1 << 32) - (64 << 20);

/// Two models whose weights fit into WebAssembly without the screen of their heads alone.
#[test]
fn heads_without_screens_bring_large_models_into_webassembly() {
    for name in ["llama3-8b-1.58", "falcon3-10b"] {
        let entry = catalog().iter().find(|entry| entry.name == name).expect("an entry");
        let (layout, files, _) = model(entry);
        let source = ModelSource::new(layout, entry.name.clone(), files);
        let header = pollster::block_on(ModelHeader::read(source)).expect("a header");
        let weights = |head| {
            let options = DeviceOptions { device: Device::Cpu, head, ..DeviceOptions::default() };
            header.estimate(options).expect("an estimate").weights
        };
        let [auto, stored, int8] = [HeadType::Auto, HeadType::Stored, HeadType::Int8].map(weights);
        assert!(auto > 1 << 32, "{name}: {auto}");
        assert!(stored < WASM_BYTES, "{name}: {stored}");
        assert!(int8 < stored, "{name}: {int8}");
    }
}

#[test]
fn the_context_is_that_of_each_configuration() {
    for entry in catalog() {
        let config = configuration(entry);
        let stated = config["max_position_embeddings"].as_u64();
        assert_eq!(entry.context_length, stated, "{}", entry.name);
    }
}
