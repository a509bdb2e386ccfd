//! `.setun`: what is written is read again, and nothing else is.

use crate::support::{
    Checkpoint, Folder, MODELS, answer, bytes_of, golden,
    outline::{outline, write},
    read,
};
use setun_checkpoint::{
    CheckpointError, Dtype, Reader, Source, TensorData, blocks,
    config::{LinearClass, QuantizationMode},
    container::{
        Head, Manifest,
        write::{Options, TableType, plan},
    },
    dense, files,
    outline::{Content, OutlineKind},
    write::Writer as _,
};
use setun_ops::{TernaryMatrix, dense::DenseValues, ternary::Scales, weight::ScaleKind};

fn small() -> Options {
    Options { chunk_bytes: 4096, ..Options::default() }
}

fn source(model: &str) -> Checkpoint {
    read(Source::Folder, &golden(model)).unwrap()
}

fn converted(model: &str, options: &Options) -> Folder {
    let source = source(model);
    let (outline, contents) = outline(&source.config, &source.files, &source.tensors);
    write(&outline, contents, options, |index| index).unwrap()
}

fn open(folder: &Folder) -> Result<Checkpoint, CheckpointError> {
    let first = folder.keys().next().unwrap().clone();
    read(Source::File(first), folder)
}

/// Matrices and other tensors by name, as the outline of a checkpoint has them.
fn contents(checkpoint: &Checkpoint) -> Vec<(String, Content)> {
    let (outline, contents) = outline(&checkpoint.config, &checkpoint.files, &checkpoint.tensors);
    let names = outline.tensors.into_iter().map(|tensor| tensor.name);
    let mut all: Vec<_> = names.zip(contents).collect();
    all.sort_by(|a, b| a.0.cmp(&b.0));
    all
}

fn assert_same_content(model: &str, a: &Checkpoint, b: &Checkpoint) {
    let (a, b) = (contents(a), contents(b));
    assert_eq!(a.len(), b.len(), "{model}");
    for ((name, a), (found, b)) in a.into_iter().zip(b) {
        assert_eq!(name, found, "{model}");
        match (a, b) {
            (Content::Ternary(a), Content::Ternary(b)) => assert_eq!(a, b, "{model} {name}"),
            (Content::Floats(a), Content::Floats(b)) => {
                assert_eq!((a.info.dtype, &a.info.shape), (b.info.dtype, &b.info.shape));
                assert_eq!(bytes_of(&a.data), bytes_of(&b.data), "{model} {name}");
            }
            _ => panic!("{model} {name}: of two kinds"),
        }
    }
}

#[test]
fn every_model_comes_back() {
    for model in MODELS {
        let source = source(model);
        for options in [Options::default(), small()] {
            let folder = converted(model, &options);
            let found = open(&folder).unwrap_or_else(|error| panic!("{model}: {error}"));
            assert_same_content(model, &source, &found);
            for (name, bytes) in source.files.iter().filter(|(name, _)| *name != files::CONFIG) {
                assert_eq!(found.files.get(name), Some(bytes), "{model} {name}");
            }
            assert_eq!(found.generation, source.generation);
            let mut config = source.config.clone();
            if config.quantization.mode == QuantizationMode::Online {
                config.quantization.mode = QuantizationMode::Offline;
                config.quantization.linear_class = LinearClass::BitLinear;
            } else {
                assert_eq!(found.files.get(files::CONFIG), source.files.get(files::CONFIG));
            }
            assert_eq!(found.config, config, "{model}");
        }
    }
}

/// The scales of a source that stores 16 bits come back as those numbers.
#[test]
fn stored_scales_are_those_of_the_source() {
    for model in ["llama-bitlinear/packed", "bitnet-h64/packed", "real-tinystories-1m"] {
        let source = source(model);
        let found = open(&converted(model, &small())).unwrap();
        let mut compared = 0;
        for scale in source.tensors.iter().filter(|scale| scale.info.name.ends_with("_scale")) {
            let expected = dense::scale(scale).unwrap();
            assert_eq!(dense::scale(found.tensor(&scale.info.name)), Ok(expected), "{model}");
            compared += 1;
        }
        assert_eq!(compared, 7 * source.config.layers.len());
    }
}

#[test]
fn bytes_do_not_depend_on_the_order_of_tensors() {
    let source = source("bitnet-untied-dead/packed");
    let (outline, contents) = outline(&source.config, &source.files, &source.tensors);
    let options = Options { part_bytes: Some(20_000), ..small() };
    let expected = write(&outline, contents.clone(), &options, |index| index).unwrap();
    let reversed = write(&outline, contents.clone(), &options, |index| 1000 - index).unwrap();
    let mixed = write(&outline, contents, &options, |index| index * 37 % 101).unwrap();
    assert!(expected == reversed && expected == mixed);
}

#[test]
fn several_files_are_one_model() {
    let model = "bitnet-h64/packed";
    let options = Options { part_bytes: Some(10_000), ..small() };
    let folder = converted(model, &options);
    assert!(folder.len() > 3, "{}", folder.len());
    let first = format!("model-00001-of-{:05}.setun", folder.len());
    assert_eq!(folder.keys().next(), Some(&first));
    let found = open(&folder).unwrap();
    assert_same_content(model, &source(model), &found);
    // Each file is read once, from its beginning to its end.
    for (name, bytes) in &folder {
        let wants = found.wants.iter().filter(|want| want.file == *name);
        let ranges: Vec<_> = wants.filter_map(|want| want.range.clone()).collect();
        assert!(ranges.windows(2).all(|pair| pair[0].end == pair[1].start), "{name}");
        assert_eq!(ranges.last().unwrap().end, bytes.len() as u64, "{name}");
    }
    // Beside the first, wherever it lies and whatever it is called.
    let mut moved: Folder =
        folder.iter().map(|(name, bytes)| (format!("a/b/{name}"), bytes.clone())).collect();
    let bytes = moved.remove(&format!("a/b/{first}")).unwrap();
    moved.insert("a/b/first.setun".to_owned(), bytes);
    assert!(read(Source::File("a/b/first.setun".to_owned()), &moved).is_ok());
    // The others are none by themselves.
    let (second, _) = folder.iter().nth(1).unwrap();
    let error = read(Source::File(second.clone()), &folder).unwrap_err();
    let parts = folder.len();
    let expected = CheckpointError::ContainerPart { file: second.clone(), part: 2, parts };
    assert_eq!(error, expected);
}

#[test]
fn a_folder_may_hold_a_container() {
    let model = "bitnet-h64/packed";
    let folder = converted(model, &small());
    let found = read(Source::Folder, &folder).unwrap();
    assert_same_content(model, &source(model), &found);
    // Its own files count, not those that lie beside it.
    let mut both = folder;
    both.insert(files::CONFIG.to_owned(), golden("llama-bitlinear/packed")[files::CONFIG].clone());
    let found = read(Source::Folder, &both).unwrap();
    assert_same_content(model, &source(model), &found);
}

fn manifest(file: &[u8]) -> Manifest {
    let head = Head::parse("m", file).unwrap();
    let range = head.manifest();
    let place = |at: u64| usize::try_from(at).unwrap();
    Manifest::parse("m", &head, &file[place(range.start)..place(range.end)]).unwrap()
}

/// What a download does that fetches chunks as it likes.
#[test]
fn chunks_are_verified_in_any_order() {
    let options = Options { part_bytes: Some(20_000), ..small() };
    let folder = converted("bitnet-untied-dead/packed", &options);
    let files: Vec<_> = folder.values().collect();
    let manifest = manifest(files[0]);
    let mut content = vec![0; usize::try_from(manifest.content_bytes()).unwrap()];
    for index in (0..manifest.chunks.len()).rev() {
        let chunk = &manifest.chunks[index];
        let place = |at: u64| usize::try_from(at).unwrap();
        let stored = &files[chunk.part][place(chunk.stored.start)..place(chunk.stored.end)];
        let plain = manifest.content(index, stored).unwrap();
        content[place(chunk.content.start)..place(chunk.content.end)].copy_from_slice(&plain);
        let mut bad = stored.to_vec();
        bad[0] ^= 1;
        let error = manifest.content(index, &bad).unwrap_err();
        assert!(matches!(error, CheckpointError::ChunkHash { chunk, .. } if chunk == index));
    }
    for tensor in open(&folder).unwrap().tensors {
        let entry = manifest.tensors.iter().find(|entry| entry.name == tensor.info.name).unwrap();
        let place = |at: u64| usize::try_from(at).unwrap();
        let range = place(entry.content.start)..place(entry.content.end);
        assert_eq!(bytes_of(&tensor.data), &content[range], "{}", entry.name);
    }
}

#[test]
fn readers_skip_tensors_that_are_not_requested() {
    let folder = converted("bitnet-h64/packed", &small());
    let name = folder.keys().next().unwrap().clone();
    let whole = open(&folder).unwrap();
    for reverse in [false, true] {
        let mut reader = Reader::new(Source::File(name.clone()));
        let (mut found, mut given) = (vec![], 0);
        let mut chosen = false;
        while let Some(want) = reader.next_read() {
            reader.give(answer(&folder, &want)).unwrap();
            given += want.range.map_or(0, |range| range.end - range.start);
            found.extend(std::iter::from_fn(|| reader.take()));
            if !chosen && reader.tensors().is_some() {
                chosen = true;
                reader
                    .select(|info| info.name.contains(".layers.1.") || info.name.contains("norm"));
                if reverse {
                    reader.sort_by_key(|info| usize::from(info.name.contains(".layers.0.")));
                }
            }
        }
        let total: usize = folder.values().map(Vec::len).sum();
        assert!(given < total as u64 / 2, "{given} of {total}");
        let is_chosen = |name: &str| name.contains(".layers.1.") || name.contains("norm");
        let expected = whole.tensors.iter().filter(|tensor| is_chosen(&tensor.info.name));
        assert_eq!(found.len(), expected.clone().count());
        for tensor in expected {
            assert!(found.contains(tensor), "{}", tensor.info.name);
        }
        let first_layer = found.iter().position(|tensor| tensor.info.name.contains(".layers.0."));
        let second_layer = found.iter().position(|tensor| tensor.info.name.contains(".layers.1."));
        assert_eq!(first_layer > second_layer, reverse);
    }
}

#[test]
fn tables_take_the_requested_form() {
    for (model, head) in [
        ("bitnet-h64/packed", "model.embed_tokens.weight"),
        ("bitnet-untied-dead/packed", "lm_head.weight"),
    ] {
        let source = source(model);
        let options = Options { head: TableType::Int8, ..small() };
        let mut found = open(&converted(model, &options)).unwrap();
        let expected = dense::table(source.tensor(head).clone()).unwrap().to_int8_rows().unwrap();
        let take = |found: &mut Checkpoint, name: &str| {
            let at = found.tensors.iter().position(|tensor| tensor.info.name == name).unwrap();
            found.tensors.remove(at)
        };
        let codes = dense::Int8Codes::new(take(&mut found, head)).unwrap();
        let scales = take(&mut found, &format!("{head}_scale"));
        assert_eq!(codes.with_scales(&scales), Ok(expected), "{model}");

        let options = Options { head: TableType::RoundedF16, ..small() };
        let mut found = open(&converted(model, &options)).unwrap();
        let rounded = take(&mut found, head);
        assert_eq!(rounded.info.dtype, Dtype::F16);
        let table = dense::table(rounded).unwrap();
        let stored = dense::table(source.tensor(head).clone()).unwrap();
        let (mut a, mut b) = (vec![0.0; table.columns()], vec![0.0; table.columns()]);
        for row in 0..table.rows() {
            table.widen_row(row, &mut a);
            stored.widen_row(row, &mut b);
            assert!(a.iter().zip(&b).all(|(a, b)| *a == half::f16::from_f32(*b).to_f32()));
        }
        assert!(matches!(table.values(), DenseValues::F16(_)));
    }
}

#[test]
fn a_table_that_is_no_f16_is_refused() {
    let mut source = source("bitnet-h64/packed");
    let table = source.tensors.iter_mut().find(|tensor| tensor.info.shape.len() == 2).unwrap();
    let name = table.info.name.clone();
    let TensorData::Bf16(values) = &mut table.data else { panic!("{name}") };
    values.iter_mut().for_each(|value| *value = half::bf16::from_f32(0.5));
    let lossless = outline(&source.config, &source.files, &source.tensors);
    let options = Options { head: TableType::F16, ..small() };
    let found = write(&lossless.0, lossless.1, &options, |index| index).unwrap();
    assert_eq!(open(&found).unwrap().tensor(&name).info.dtype, Dtype::F16);

    let table = source.tensors.iter_mut().find(|tensor| tensor.info.name == name).unwrap();
    let TensorData::Bf16(values) = &mut table.data else { panic!("{name}") };
    values[70] = half::bf16::from_f32(1e-20);
    let (outline, contents) = outline(&source.config, &source.files, &source.tensors);
    let error = write(&outline, contents, &options, |index| index).unwrap_err().to_string();
    let says = format!("at row 1, column 6 of `{name}` as F16; write the table as it is stored");
    assert!(error.starts_with(".setun cannot hold") && error.ends_with(&says), "{error}");
}

/// Scales by row and by group lie beside the codes as they are.
#[test]
fn finer_scales_come_back() {
    let source = source("bitnet-h64/packed");
    let (mut outline, mut contents) = outline(&source.config, &source.files, &source.tensors);
    let mut made = vec![];
    for (tensor, content) in outline.tensors.iter_mut().zip(&mut contents) {
        let Content::Ternary(matrix) = content else { continue };
        let (rows, columns) = (matrix.rows(), matrix.columns());
        let numbers =
            |n: usize| (0_u16..).take(n).map(|at| 0.1 + f32::from(at)).collect::<Vec<_>>();
        let scales = if tensor.name.contains("q_proj") {
            Scales::Rows(numbers(rows))
        } else if columns.is_multiple_of(32) {
            Scales::ColumnGroups { columns: 32, values: numbers(rows * (columns / 32)) }
        } else {
            continue;
        };
        *matrix = TernaryMatrix::new(rows, columns, matrix.codes().to_vec(), scales).unwrap();
        let kind = ScaleKind::of(matrix.scales());
        tensor.kind = OutlineKind::Ternary(kind);
        made.push((tensor.name.clone(), matrix.clone()));
    }
    assert!(made.len() > 10);
    let found = open(&write(&outline, contents, &small(), |index| index).unwrap()).unwrap();
    for (name, matrix) in made {
        let (codes, _) = blocks::unpack(found.tensor(&name)).unwrap();
        let scale = found.tensor(&format!("{name}_scale"));
        let scales =
            dense::weight_factors(scale, LinearClass::AutoBitLinear, matrix.columns()).unwrap();
        assert_eq!((&codes[..], &scales), (matrix.codes(), matrix.scales()), "{name}");
    }
}

#[test]
fn what_was_not_planned_is_refused() {
    let source = source("bitnet-h64/packed");
    let (outline, contents) = outline(&source.config, &source.files, &source.tensors);
    let missing = write(&outline, contents[1..].to_vec(), &small(), |index| index);
    assert!(missing.is_err(), "each has another's name");
    let mut writer = plan("m.setun", &outline, &small()).unwrap();
    let mut none = |_| ();
    let name = &outline.tensors[0].name;
    writer.put(name, contents[0].clone(), &mut none).unwrap();
    let twice = writer.put(name, contents[0].clone(), &mut none).unwrap_err();
    assert!(matches!(twice, CheckpointError::Misplaced { .. }), "{twice}");
    let other = writer.put(&outline.tensors[1].name, contents[0].clone(), &mut none).unwrap_err();
    assert!(matches!(other, CheckpointError::Shape { .. }), "{other}");
    let error = writer.end(&mut none).unwrap_err();
    assert!(matches!(error, CheckpointError::Misplaced { .. }), "{error}");
    for name in ["m", "a/m.setun", ".setun", "m.setun "] {
        assert!(plan(name, &outline, &small()).is_err());
    }
}

#[cfg(feature = "zstd")]
#[test]
fn compressed_chunks_hold_the_same() {
    use setun_checkpoint::{
        Tensor,
        container::{Chunk, Encoding},
    };

    for model in ["bitnet-untied-dead/packed", "real-tinystories-1m"] {
        let plain = converted(model, &small());
        for part_bytes in [None, Some(50_000)] {
            let packed = converted(model, &Options { zstd: true, part_bytes, ..small() });
            let chunks = |folder: &Folder| manifest(folder.values().next().unwrap()).chunks;
            let bytes = |folder: &Folder| {
                let stored = |chunk: &Chunk| chunk.stored.end - chunk.stored.start;
                chunks(folder).iter().map(stored).sum::<u64>()
            };
            let (whole, less) = (bytes(&plain), bytes(&packed));
            assert!(less < whole, "{model}: {less} of {whole}");
            let chunks = chunks(&packed);
            assert!(chunks.iter().any(|chunk| chunk.encoding == Encoding::Zstd));
            let tensors: Vec<Tensor> = open(&packed).unwrap().tensors;
            let expected = open(&plain).unwrap().tensors;
            assert_eq!(tensors.len(), expected.len());
            for (a, b) in tensors.iter().zip(expected) {
                assert_eq!((&a.info.name, &a.data), (&b.info.name, &b.data), "{model}");
            }
        }
    }
}

#[cfg(not(feature = "zstd"))]
#[test]
fn builds_without_zstd_say_so() {
    let source = source("bitnet-h64/packed");
    let (outline, contents) = outline(&source.config, &source.files, &source.tensors);
    let options = Options { zstd: true, ..small() };
    let error = write(&outline, contents, &options, |index| index).unwrap_err();
    assert!(matches!(error, CheckpointError::Unwritable { .. }), "{error}");
}
