//! Chunks of `.setun` that are requested together.

use crate::support::{
    Folder, answer, golden,
    outline::{outline, write},
    read,
};
use setun_checkpoint::{
    Answer, CheckpointError, Reader, Source, Tensor,
    container::{Head, Manifest, write::Options},
};

const FILE: &str = "model.setun";

/// A model in chunks of 4 KiB.
fn model() -> Folder {
    let source = read(Source::Folder, &golden("bitnet-h64/packed")).unwrap();
    let (outline, contents) = outline(&source.config, &source.files, &source.tensors);
    let options = Options { chunk_bytes: 4096, ..Options::default() };
    let folder = write(&outline, contents, &options, |index| index).unwrap();
    let [file] = folder.into_values().collect::<Vec<_>>().try_into().unwrap();
    Folder::from([(FILE.to_owned(), file)])
}

fn manifest(file: &[u8]) -> Manifest {
    let head = Head::parse(FILE, file).unwrap();
    let range = head.manifest();
    let range = usize::try_from(range.start).unwrap()..usize::try_from(range.end).unwrap();
    Manifest::parse(FILE, &head, &file[range]).unwrap()
}

/// Reads on; what had come before an error is in `tensors`.
fn read_on(
    reader: &mut Reader,
    folder: &Folder,
    tensors: &mut Vec<Tensor>,
) -> Result<Vec<u64>, CheckpointError> {
    let mut lengths = vec![];
    while let Some(want) = reader.next_read() {
        let answer = answer(folder, &want);
        if let (Answer::Bytes(bytes), Some(_)) = (answer, reader.tensors()) {
            lengths.push(bytes.len() as u64);
        }
        reader.give(answer)?;
        tensors.extend(std::iter::from_fn(|| reader.take()));
    }
    Ok(lengths)
}

#[test]
fn a_request_has_many_chunks_and_gives_nothing_if_one_is_damaged() {
    let folder = model();
    let manifest = manifest(&folder[FILE]);
    let mut tensors = vec![];
    let mut reader = Reader::new(Source::File(FILE.to_owned()));
    let lengths = read_on(&mut reader, &folder, &mut tensors).unwrap();
    assert_eq!(lengths.len(), 1, "all are less than what is requested together");
    assert!(!tensors.is_empty() && manifest.chunks.len() > 10);
    let first = manifest.chunks.iter().position(|chunk| {
        let end = manifest.files.last().map_or(0, |file| file.content.end);
        chunk.content.start >= end
    });
    let first = first.unwrap();
    for (chunk, found) in manifest.chunks.iter().enumerate().skip(first) {
        let mut damaged = folder.clone();
        let file = damaged.get_mut(FILE).unwrap();
        file[usize::try_from(found.stored.end - 1).unwrap()] ^= 1;
        let mut reader = Reader::new(Source::File(FILE.to_owned()));
        let mut tensors = vec![];
        let error = read_on(&mut reader, &damaged, &mut tensors).unwrap_err();
        let CheckpointError::ChunkHash { chunk: named, .. } = error else { panic!("{error}") };
        assert_eq!((named, tensors.len()), (chunk, 0));
        assert!(reader.next_read().is_none() && reader.take().is_none());
    }
}

#[test]
fn chunks_of_tensors_that_are_passed_over_are_not_requested() {
    let folder = model();
    let (mut all, mut some) = (vec![], vec![]);
    read_on(&mut Reader::new(Source::File(FILE.to_owned())), &folder, &mut all).unwrap();
    for part in ["up_proj.weight", "layers.1.", "norm"] {
        let mut reader = Reader::new(Source::File(FILE.to_owned()));
        while reader.tensors().is_none() {
            let want = reader.next_read().unwrap();
            reader.give(answer(&folder, &want)).unwrap();
        }
        reader.select(|info| info.name.contains(part));
        some.clear();
        let lengths = read_on(&mut reader, &folder, &mut some).unwrap();
        let expected: Vec<_> =
            all.iter().filter(|tensor| tensor.info.name.contains(part)).cloned().collect();
        assert!(!expected.is_empty() && some == expected, "{part}");
        let read: u64 = lengths.iter().sum();
        let needed: u64 = some.iter().map(|tensor| tensor.info.bytes()).sum();
        assert!(read <= needed + 2 * 4096 * some.len() as u64, "{part}: {read} for {needed}");
    }
}
