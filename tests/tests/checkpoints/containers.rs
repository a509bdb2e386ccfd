//! A model gives the same bits whatever container it comes from.

#[path = "../../../crates/setun-checkpoint/tests/support/outline.rs"]
mod outline;

use std::{collections::BTreeMap, fs, path::Path};

use setun::{
    Device, DeviceOptions, HeadType, Model, Source,
    checkpoint::{
        Answer, Reader, Tensor,
        container::write::{Options, TableType},
    },
};
use setun_tests::{
    golden::{Golden, MODELS},
    run::{Bits, Runner, bits, devices, exact},
};

/// The folder as a container, written with these options.
fn converted(folder: &Path, options: &Options) -> outline::Parts {
    let mut reader = Reader::new(Source::Folder);
    let mut tensors: Vec<Tensor> = vec![];
    while let Some(want) = reader.next_read() {
        let bytes = fs::read(folder.join(&want.file)).ok();
        let range = |bytes: &[u8]| match &want.range {
            None => 0..bytes.len(),
            Some(range) => {
                let end = |at: u64| usize::try_from(at).expect("small").min(bytes.len());
                end(range.start)..end(range.end)
            }
        };
        let answer =
            bytes.as_deref().map_or(Answer::Missing, |bytes| Answer::Bytes(&bytes[range(bytes)]));
        reader.give(answer).expect("a sound checkpoint");
        tensors.extend(std::iter::from_fn(|| reader.take()));
    }
    let config = reader.config().expect("a configuration");
    let (outline, contents) = outline::outline(config, reader.files(), &tensors);
    outline::write(&outline, contents, options, |index| index).expect("a container")
}

fn open(parts: &outline::Parts) -> Model {
    let files: BTreeMap<_, _> =
        parts.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice())).collect();
    let first = parts.keys().next().expect("a file").clone();
    Model::from_files(Source::File(first), "container", &files).expect("a model")
}

fn logits(golden: &Golden, model: Model, device: &Device, head: HeadType) -> Vec<Bits> {
    let options = DeviceOptions { head, ..exact(device) };
    let ids = golden.ids("p33.ids");
    bits(&Runner::new(model, options).logits(&ids, ids.len()))
}

#[test]
fn logits_are_the_same_bits() {
    let device = devices().pop().expect("a processor");
    for model in MODELS {
        let golden = Golden::read(model);
        let folder = || Model::open(&golden.folder).expect("a golden model");
        let expected = logits(&golden, folder(), &device, HeadType::Stored);
        for part_bytes in [None, Some(20_000)] {
            let options = Options { chunk_bytes: 8192, part_bytes, ..Options::default() };
            let parts = converted(&golden.folder, &options);
            assert_eq!(parts.len() > 1, part_bytes.is_some(), "{model}");
            let found = logits(&golden, open(&parts), &device, HeadType::Stored);
            assert!(found == expected, "{model}");
        }
    }
}

/// A head that is stored as int8 is the one that is rounded at load.
#[test]
fn an_int8_head_is_the_rounded_one() {
    let device = devices().pop().expect("a processor");
    for model in MODELS {
        let golden = Golden::read(model);
        let folder = Model::open(&golden.folder).expect("a golden model");
        let expected = logits(&golden, folder, &device, HeadType::Int8);
        let options = Options { head: TableType::Int8, ..Options::default() };
        let container = open(&converted(&golden.folder, &options));
        assert!(logits(&golden, container, &device, HeadType::Stored) == expected, "{model}");
    }
}
