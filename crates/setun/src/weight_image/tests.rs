//! Files that are images, damaged ones, and others.

use proptest::{collection::vec, prelude::*};
use setun_cpu::{CpuBackend, CpuOptions};
use setun_ops::{Backend, Usage, aligned::SharedBytes, image::WeightImage};

use super::*;

const IDENTITY: &str = "a model";

type Parts = (Vec<u64>, Vec<Vec<u8>>);

fn image(weights: &[Parts]) -> Vec<u8> {
    let weight = |(numbers, parts): &Parts| WeightBytes {
        numbers: numbers.clone(),
        parts: parts.iter().map(|part| part.clone().into()).collect(),
    };
    let weights: Vec<_> = weights.iter().map(weight).collect();
    let (mut file, starts) = index::write(IDENTITY, &weights, 5);
    for (part, start) in weights.iter().flat_map(|weight| &weight.parts).zip(starts) {
        file.resize(usize::try_from(start).unwrap(), 0);
        file.extend_from_slice(part);
    }
    file
}

fn weights(file: &[u8]) -> Option<Vec<MappedWeight>> {
    let Found::Head(head) = FileHead::find(file) else { return None };
    let index = file.get(HEAD_BYTES..)?.get(..head.index_bytes()?)?;
    let bytes = SharedBytes::new(setun_ops::aligned::Aligned::from(file.to_vec()));
    let shared = |part: Range<usize>| bytes.slice(part);
    index::read(index, IDENTITY)?.into_iter().map(|weight| weight.try_map(shared)).collect()
}

/// No bytes of an image are too strange for a backend.
fn adopt(weights: Option<Vec<MappedWeight>>) {
    let options = CpuOptions { threads: Some(1), ..CpuOptions::default() };
    let mut backend = CpuBackend::new(options).unwrap();
    for weight in weights.into_iter().flatten() {
        for usage in [Usage::General, Usage::SparseInput] {
            if let Ok(adopted) = backend.adopt(weight.clone(), usage) {
                assert!(backend.image(&adopted.weight).is_some());
            }
        }
    }
}

/// A vector, whose image any backend of the processor takes.
fn vector() -> Parts {
    (vec![3], vec![vec![0; 16]])
}

proptest! {
    #[test]
    fn what_was_written_is_found(
        written in vec((vec(any::<u64>(), 0..4), vec(vec(any::<u8>(), 0..200), 0..4)), 0..5),
        bad in (any::<usize>(), any::<u8>()),
    ) {
        let written: Vec<_> = written.into_iter().chain([vector()]).collect();
        let file = image(&written);
        let Found::Head(head) = FileHead::find(&file) else { panic!("an image") };
        prop_assert_eq!((head.bytes, head.written), (file.len() as u64, 5));
        let found = weights(&file).unwrap();
        prop_assert_eq!(found.len(), written.len());
        for (WeightImage { numbers, parts }, expected) in found.iter().zip(&written) {
            prop_assert_eq!(numbers, &expected.0);
            let parts = parts.iter().map(|part| &**part);
            prop_assert!(parts.eq(expected.1.iter().map(|part| &**part)));
        }
        adopt(Some(found));
        let end = HEAD_BYTES + head.index_bytes().unwrap();
        prop_assert!(index::read(&file[HEAD_BYTES..end], "another").is_none());
        // Damaged ones are refused or hold other values, and are never read beyond their end.
        let mut damaged = file.clone();
        damaged[bad.0 % end] = bad.1;
        adopt(weights(&damaged));
        prop_assert!(weights(&file[..bad.0 % end]).is_none());
    }

    #[test]
    fn other_bytes_are_no_image(bytes in vec(any::<u8>(), 0..200)) {
        prop_assert_eq!(FileHead::find(&bytes), Found::Nothing);
    }
}

#[test]
fn another_version_or_byte_order_is_an_image_that_does_not_fit() {
    let file = image(&[vector()]);
    for (place, byte) in [(7, b'2'), (8, 0), (15, 1)] {
        let mut other = file.clone();
        other[place] = byte;
        assert_eq!(FileHead::find(&other), Found::OtherVersion, "byte {place}");
    }
    assert_eq!(FileHead::find(&file[..HEAD_BYTES - 1]), Found::OtherVersion);
    assert_eq!(FileHead::find(&file[1..]), Found::Nothing);
}

#[test]
fn what_writers_left_is_removed_and_what_they_write_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let old = FileTimes::new().set_modified(UNIX_EPOCH);
    let make = |name: &str, is_old: bool| {
        let file = File::create(path(name)).unwrap();
        if is_old {
            file.set_times(old).unwrap();
        }
        file
    };
    make("weights.1-0.partial", true);
    make("weights.2-0.partial", false);
    make("others.1-0.partial", true);
    let written = make("weights.3-0.partial", true);
    written.lock().unwrap();
    let image = WeightImageFile::new(path("weights"), IDENTITY.into()).create().unwrap();
    let names = || {
        let names = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<_> = names.map(|name| name.into_string().unwrap()).collect();
        names.sort();
        names
    };
    let own = image.partial.as_ref().unwrap().file_name().unwrap().to_str().unwrap().to_owned();
    let mut expected = vec![
        "others.1-0.partial".to_owned(),
        "weights.2-0.partial".into(),
        "weights.3-0.partial".into(),
        own,
    ];
    expected.sort();
    assert_eq!(names(), expected);
    image.file.set_times(old).unwrap();
    drop(WeightImageFile::new(path("weights"), IDENTITY.into()).create().unwrap());
    assert_eq!(names(), expected, "another image is being written");
    drop(image);
    assert_eq!(names().len(), 3);
}
