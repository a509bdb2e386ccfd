//! `.setun` files that hold an image of their weights: the same text mapped as read.
#![cfg(feature = "embedded-model")]

use std::{
    collections::BTreeMap,
    fs::{self, File},
    path::{Path, PathBuf},
};

use setun::{
    ContainerOptions, Conversion, Device, EMBEDDED_MODEL, EMBEDDED_NAME, Engine, EngineConfig,
    ErrorCode, Event, Format, GenerateOptions, HeadType, ModelReader, Source, add_weight_image,
    check_weight_image,
};
use sha2::{Digest, Sha256};
use tempfile::TempDir;

const NAME: &str = "stories.setun";

/// The story model as a `.setun` file in a folder of its own.
fn container(options: ContainerOptions) -> (TempDir, PathBuf) {
    let mut files = BTreeMap::<String, Vec<u8>>::new();
    let mut write = |file: String, offset: u64, bytes: &[u8]| {
        let (start, file) = (usize::try_from(offset).unwrap(), files.entry(file).or_default());
        file.resize(file.len().max(start + bytes.len()), 0);
        file[start..start + bytes.len()].copy_from_slice(bytes);
        Ok::<_, setun::Error>(())
    };
    let format = Format::Setun(Box::new(options));
    let source = Source::File(EMBEDDED_NAME.into());
    let mut conversion = Conversion::new(source, EMBEDDED_NAME, format, NAME);
    while let Some(want) = conversion.next_read() {
        let range = want.range.map_or(0..EMBEDDED_MODEL.len(), |range| {
            let at = |end: u64| usize::try_from(end).unwrap().min(EMBEDDED_MODEL.len());
            at(range.start)..at(range.end)
        });
        let piece =
            |piece: setun::checkpoint::write::Piece| write(piece.file, piece.offset, &piece.bytes);
        conversion.give(Some(&EMBEDDED_MODEL[range]), piece).unwrap();
    }
    conversion.finish(|piece| write(piece.file, piece.offset, &piece.bytes)).unwrap();
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in &files {
        fs::write(folder.path().join(name), bytes).unwrap();
    }
    let path = folder.path().join(NAME);
    (folder, path)
}

/// The same with an image.
fn with_image() -> (TempDir, PathBuf) {
    let (folder, path) = container(ContainerOptions { image: true, ..<_>::default() });
    let before = fs::metadata(&path).unwrap().len();
    add_weight_image(&path, HeadType::Auto).unwrap();
    assert!(fs::metadata(&path).unwrap().len() > 2 * before);
    check_weight_image(&path).unwrap();
    (folder, path)
}

fn engine(model: &Path, image: Option<&Path>, head: HeadType) -> Result<Engine, setun::Error> {
    let mut config = EngineConfig::default();
    (config.device.threads, config.device.head_type) = (Some(1), head);
    config.device.weight_image = image.map(|path| path.to_str().unwrap().to_owned());
    Engine::builder(ModelReader::open(model)?).config(config).device(Device::Cpu).build()
}

fn text(engine: &Engine) -> String {
    let options = GenerateOptions::new().max_tokens(24).temperature(0.7).seed(3);
    let events = engine.generate("Once upon a time", options).unwrap();
    let texts = events.blocking().filter_map(|event| match event.unwrap() {
        Event::Text(delta) => Some(delta.text),
        _ => None,
    });
    texts.collect()
}

#[test]
fn a_model_is_mapped_from_its_own_file() {
    let (folder, path) = with_image();
    let expected = text(&engine(&path, None, HeadType::Auto).unwrap());
    assert_eq!(text(&Engine::builder(ModelReader::embedded().unwrap()).build().unwrap()), expected);
    let bytes = fs::read(&path).unwrap();
    let mapped = engine(&path, Some(&path), HeadType::Auto).unwrap();
    assert_eq!(text(&mapped), expected);
    #[cfg(target_os = "linux")]
    {
        let maps = fs::read_to_string("/proc/self/maps").unwrap();
        let line = maps.lines().find(|line| line.ends_with(path.to_str().unwrap()));
        assert!(line.is_some_and(|line| line.contains(" r--s ")), "{line:?}");
    }
    drop(mapped);
    assert!(fs::read(with_image().1).unwrap() == bytes, "the same model gives the same bytes");
    // A copy of another time, in a folder, is the same model.
    let copy = folder.path().join("copy");
    fs::create_dir(&copy).unwrap();
    fs::copy(&path, copy.join(NAME)).unwrap();
    let file = File::options().write(true).open(copy.join(NAME)).unwrap();
    file.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
    assert_eq!(text(&engine(&copy, Some(&copy.join(NAME)), HeadType::Auto).unwrap()), expected);
    assert!(fs::read(&path).unwrap() == bytes, "nothing is written to it");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
}

#[test]
fn what_does_not_fit_is_refused_and_kept() {
    let (_folder, path) = with_image();
    let bytes = fs::read(&path).unwrap();
    let refused = |model: &Path, image: &Path, head, expected: &str| {
        let error = engine(model, Some(image), head).err().unwrap();
        assert_eq!(error.code(), ErrorCode::BadOption);
        assert!(error.to_string().contains(expected), "{error}");
    };
    refused(&path, &path, HeadType::Int8, "form of the head: convert the model again");
    let (_other_folder, other) = container(ContainerOptions::default());
    refused(&other, &path, HeadType::Auto, "the model's own file, or one that is no model");
    refused(&other, &other, HeadType::Auto, "is no weight image");
    assert!(fs::read(&path).unwrap() == bytes);
    let error = add_weight_image(&path, HeadType::Int8).unwrap_err().to_string();
    assert!(error.contains("beside the one that it has"), "{error}");
    assert!(fs::read(&path).unwrap() == bytes);
    let before = fs::read(&other).unwrap();
    let error = add_weight_image(&other, HeadType::Auto).unwrap_err().to_string();
    assert!(error.contains("for which its manifest has no room"), "{error}");
    assert!(fs::read(&other).unwrap() == before);
}

#[test]
fn damaged_files_are_reported() {
    let (_folder, path) = with_image();
    let bytes = fs::read(&path).unwrap();
    let mut damaged = bytes.clone();
    *damaged.last_mut().unwrap() ^= 1;
    fs::write(&path, &damaged).unwrap();
    assert_eq!(check_weight_image(&path).unwrap_err().code(), ErrorCode::BadCheckpoint);
    for end in [bytes.len() - 1, bytes.len() / 2, 100, 20] {
        fs::write(&path, &bytes[..end]).unwrap();
        assert!(check_weight_image(&path).is_err(), "{end} bytes");
        assert!(engine(&path, Some(&path), HeadType::Auto).is_err(), "{end} bytes");
    }
    let longer = [&bytes[..], b"x"].concat();
    fs::write(&path, longer).unwrap();
    assert!(engine(&path, Some(&path), HeadType::Auto).is_err(), "a byte more");
}

/// A matching hash proves nothing, since the image's writer can write it, too: the index is checked by itself.
#[test]
fn an_index_that_is_not_of_its_file_is_reported() {
    let (_folder, path) = with_image();
    let bytes = fs::read(&path).unwrap();
    let start = bytes.windows(8).rposition(|word| word == b"setunwi1").unwrap();
    let hash = |bytes: &[u8]| {
        let digest: [u8; 32] = Sha256::digest(&bytes[start..]).into();
        let digits = digest.iter().flat_map(|byte| [byte >> 4, byte & 15]);
        digits.map(|digit| b"0123456789abcdef"[usize::from(digit)]).collect::<Vec<_>>()
    };
    let rewritten = |change: &dyn Fn(&mut [u8])| {
        let (mut other, old) = (bytes.clone(), hash(&bytes));
        change(&mut other[start..]);
        let new = hash(&other);
        let place = other.windows(old.len()).position(|part| part == old).expect("its hash");
        other[place..place + new.len()].copy_from_slice(&new);
        fs::write(&path, &other).unwrap();
        check_weight_image(&path)
    };
    rewritten(&|_| {}).unwrap();
    let word = |image: &[u8], place: usize| {
        usize::try_from(u64::from_ne_bytes(image[8 * place..][..8].try_into().unwrap())).unwrap()
    };
    let index = 5 + 1 + word(&bytes[start..], 5).div_ceil(8); // behind the head and the identity
    let numbers = word(&bytes[start..], index + 1);
    let part = index + 3 + numbers;
    let add = |place: usize, more: u64| {
        move |image: &mut [u8]| {
            let number = u64::from_ne_bytes(image[8 * place..][..8].try_into().unwrap());
            image[8 * place..][..8].copy_from_slice(&number.wrapping_add(more).to_ne_bytes());
        }
    };
    for (what, change) in [
        ("the bytes of the file", Box::new(add(2, 1)) as Box<dyn Fn(&mut [u8])>),
        ("the words of the index", Box::new(add(4, 1 << 40))),
        ("the number of weights", Box::new(add(index, 1))),
        ("the place of a part", Box::new(add(part, 64))),
        ("a place beyond the end", Box::new(add(part, 1 << 60))),
        ("the length of a part", Box::new(add(part + 1, 64))),
        (
            "the chunks beside it",
            Box::new(|image: &mut [u8]| {
                let place = image.windows(6).position(|part| part == b"chunks").unwrap();
                image[place + 8] ^= 1;
            }),
        ),
    ] {
        let error = rewritten(&*change).expect_err(what);
        assert_eq!(error.code(), ErrorCode::BadCheckpoint, "{what}");
    }
}
