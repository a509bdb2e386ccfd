//! Hybrid models written as GGUF and as folders: the bits of their source, and the tensors of another program's files.

use std::{collections::BTreeMap, fs};

use safetensors::SafeTensors;
use setun::{
    DeviceOptions, Format, Model, Source,
    checkpoint::{Answer, Dtype, ModelConfig, Reader, Tensor, dense},
};
use setun_tests::{
    fixture,
    golden::Tensors,
    run::{Bits, Runner, bits, devices, exact},
};

use super::bonsai::converted_from;

type Files = BTreeMap<String, Vec<u8>>;

/// Types with a scale for each 64 or 128 columns, as the fixtures have them.
const TARGETS: [Dtype; 4] = [Dtype::Q2_0, Dtype::Q2_0Wide, Dtype::Pq2_0, Dtype::Ptq1_0];

/// The files of a folder, or one file, of a model.
fn files(model: &str, name: &str) -> (Source, Files) {
    let path = fixture("families").join(model).join(name);
    if path.is_file() {
        let bytes = fs::read(path).expect("a file");
        return (Source::File(name.to_owned()), Files::from([(name.to_owned(), bytes)]));
    }
    let entries = fs::read_dir(path).expect("a folder").map(|entry| entry.expect("an entry"));
    let file = |entry: fs::DirEntry| {
        let name = entry.file_name().into_string().expect("a name");
        (name, fs::read(entry.path()).expect("a file"))
    };
    (Source::Folder, entries.map(file).collect())
}

fn logits(model: &str, source: Source, files: &Files) -> Vec<Bits> {
    let ids = Tensors::read(&fixture("families").join(model).join("golden.safetensors"));
    let ids = ids.ids("p33.ids");
    let files = files.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice())).collect();
    let opened = Model::from_files(source, "a model", &files).expect(model);
    let options: DeviceOptions = exact(&devices().swap_remove(0));
    bits(&Runner::new(opened, options).logits(&ids, 33))
}

fn file(name: &str) -> Source {
    Source::File(name.to_owned())
}

/// From any format to GGUF, from there to `.setun` and back, and by `.setun` to GGUF: the same bits.
#[test]
fn files_have_the_bits_of_their_source() {
    for (model, name, groups) in [
        ("qwen35-r1", "hf", 128),
        ("qwen35-r1", "type143-alpha-beta-f16.gguf", 128),
        ("qwen35-r2", "hf", 64),
        ("qwen35-wrapper-r3", "mlx", 128),
        ("qwen35-mtp", "type142-mtp-q8_0.gguf", 128),
        ("qwen35-hadamard-r2", "mlx", 128),
        ("qwen35-hadamard-r2", "type143.gguf", 128),
        ("qwen35-hadamard-tied-r3", "type143.gguf", 128),
    ] {
        let (source, source_files) = files(model, name);
        let expected = logits(model, source.clone(), &source_files);
        let container = || Format::Setun(Box::default());
        let convert = |source: &Source, files: &Files, format: Format, to: &str| {
            converted_from(source.clone(), files, format, to).expect(model).0
        };
        let setun = convert(&source, &source_files, container(), "m.setun");
        for target in TARGETS.into_iter().filter(|target| groups == 128 || *target == Dtype::Q2_0) {
            let place = format!("{model}/{name} as {target}");
            let gguf = convert(&source, &source_files, Format::Gguf(target), "m.gguf");
            assert!(logits(model, file("m.gguf"), &gguf) == expected, "{place}");
            let by_setun = convert(&file("m.setun"), &setun, Format::Gguf(target), "m.gguf");
            assert!(logits(model, file("m.gguf"), &by_setun) == expected, "{place}, by .setun");
            let back = convert(&file("m.gguf"), &gguf, container(), "n.setun");
            assert!(logits(model, file("n.setun"), &back) == expected, "{place} as .setun");
            let again = convert(&file("n.setun"), &back, Format::Gguf(target), "m.gguf");
            assert!(logits(model, file("m.gguf"), &again) == expected, "{place} again");
        }
    }
}

/// The same of folders. Where the source is of transformers, so is the folder; else it names what only setun reads.
#[test]
fn folders_have_the_bits_of_their_source() {
    for (model, name, expected) in [
        ("qwen35-r2", "hf", &[][..]),
        ("qwen35-wrapper-r3", "mlx", &["norms_include_one"]),
        ("qwen35-mtp", "type142-mtp-q8_0.gguf", &["delta_net_order", "linear_attn.decay"]),
        ("qwen35-hadamard-r2", "mlx", &["norms_include_one", "hadamard_config"]),
        ("qwen35-hadamard-tied-r3", "type143.gguf", &["hadamard_config"]),
    ] {
        let (source, source_files) = files(model, name);
        let bits = logits(model, source.clone(), &source_files);
        let done = converted_from(source, &source_files, Format::Hf, "");
        let (folder, done) = done.expect(model);
        assert!(logits(model, Source::Folder, &folder) == bits, "{model}");
        let tensors = SafeTensors::deserialize(&folder["model.safetensors"]).expect(model);
        let convolutions = tensors.iter().filter(|(name, _)| name.ends_with("conv1d.weight"));
        let shapes: Vec<_> = convolutions.map(|(_, tensor)| tensor.shape().to_vec()).collect();
        assert!(!shapes.is_empty() && shapes.iter().all(|shape| shape[1..] == [1, 4]), "{model}");
        let warnings = done.warnings.iter().filter(|warning| warning.file == "config.json");
        let warnings: String = warnings.map(ToString::to_string).collect();
        assert_eq!(warnings.is_empty(), expected.is_empty(), "{model}: {warnings}");
        assert!(expected.iter().all(|field| warnings.contains(field)), "{model}: {warnings}");
    }
}

/// Configuration and tensors of a file, by name.
fn read(name: &str, bytes: &[u8]) -> (ModelConfig, BTreeMap<String, Tensor>) {
    let mut reader = Reader::new(file(name));
    let mut tensors = BTreeMap::new();
    while let Some(want) = reader.next_read() {
        let range = want.range.unwrap_or(0..bytes.len() as u64);
        let end = |place| usize::try_from(place).expect("small").min(bytes.len());
        reader.give(Answer::Bytes(&bytes[end(range.start)..end(range.end)])).expect("sound");
        while let Some(tensor) = reader.take() {
            tensors.insert(tensor.info.name.clone(), tensor);
        }
    }
    (reader.config().expect("a header").clone(), tensors)
}

/// The file that another program wrote of a model holds the same numbers as the one made here from a folder or a pack
/// of it: so heads, norms, decays and rotations are where that program puts them.
#[test]
fn tensors_are_those_of_another_writer() {
    for (model, name, target, other) in [
        ("qwen35-r1", "hf", Dtype::Pq2_0, "type142.gguf"),
        ("qwen35-r2", "hf", Dtype::Q2_0, "type42g64-alpha-beta-f16.gguf"),
        ("qwen35-hadamard-r2", "mlx", Dtype::Ptq1_0, "type143.gguf"),
        ("qwen35-hadamard-r2", "mlx", Dtype::Q2_0, "type42g64.gguf"),
        ("qwen35-hadamard-tied-r3", "type143.gguf", Dtype::Pq2_0, "type143.gguf"),
        ("qwen35-mtp", "type142-mtp-q8_0.gguf", Dtype::Ptq1_0, "type142-mtp-q8_0.gguf"),
    ] {
        let (source, source_files) = files(model, name);
        let gguf = converted_from(source, &source_files, Format::Gguf(target), "m.gguf");
        let (config, ours) = read("m.gguf", &gguf.expect(model).0["m.gguf"]);
        let (other_config, theirs) = read(other, &files(model, other).1[other]);
        let (tokens, group) = (config.eos_tokens, config.quantization.activation_group);
        let other_config = ModelConfig { eos_tokens: tokens.clone(), ..other_config };
        assert_eq!(other_config.quantization.activation_group, group);
        assert_eq!(ModelConfig { eos_tokens: tokens, ..config }, other_config, "{model}");
        assert!(ours.keys().eq(theirs.keys()), "{model}");
        for (name, tensor) in &theirs {
            let ours = &ours[name];
            assert_eq!(ours.info.shape, tensor.info.shape, "{model} {name}");
            let (found, expected) = (elements(ours), elements(tensor));
            // Exponentials of two libraries may differ in their last bit.
            let bound = if name.ends_with("linear_attn.decay") { 1e-6 } else { 0.0 };
            let is_near = |(a, b): (&f32, &f32)| (a - b).abs() <= bound * b.abs();
            assert!(found.iter().zip(&expected).all(is_near), "{model} {name}");
        }
    }
}

fn elements(tensor: &Tensor) -> Vec<f32> {
    let &[rows, columns] = &tensor.info.shape[..] else {
        return dense::elements(tensor).expect("floats");
    };
    let table = dense::table(tensor.clone()).expect("a table");
    let mut elements = vec![0.0; rows * columns];
    let rows = elements.chunks_exact_mut(columns).enumerate();
    rows.for_each(|(row, out)| table.widen_row(row, out));
    elements
}
