//! A file that lies about its sizes costs no more memory than its own bytes are worth, and a table
//! is not in memory a second time while it is written.
//!
//! The one test of this binary counts what is allocated; a second would count along with it.

#[path = "../../../tests/support/memory.rs"]
mod counted;
mod support;

use counted::peak_of;
use setun_checkpoint::{
    Answer, CheckpointError, Dtype, Reader, Source, TensorData, container, files,
    outline::{Content, Outline, OutlineKind, OutlineTensor},
    write::{HfWriter, Writer},
};
use support::{Folder, golden};

/// The reader's own bytes for a folder, and its error. Answers are borrowed from the folder.
fn read(folder: &Folder) -> (CheckpointError, usize) {
    read_from(Source::Folder, folder)
}

fn read_from(source: Source, folder: &Folder) -> (CheckpointError, usize) {
    peak_of(|| {
        let mut reader = Reader::new(source);
        loop {
            let want = reader.next_read().expect("these files are bad");
            let whole = folder.get(&want.file).map_or(&[][..], Vec::as_slice);
            let range = want.range.unwrap_or(0..whole.len() as u64);
            let place = |at: u64| usize::try_from(at).map_or(whole.len(), |at| at.min(whole.len()));
            let answer = if folder.contains_key(&want.file) {
                Answer::Bytes(&whole[place(range.start)..place(range.end)])
            } else {
                Answer::Missing
            };
            if let Err(error) = reader.give(answer) {
                return error;
            }
        }
    })
}

fn safetensors(header: &str, data: usize) -> Vec<u8> {
    let length = (header.len() as u64).to_le_bytes();
    [&length[..], header.as_bytes(), &vec![0; data]].concat()
}

/// Head and manifest of a container of one terabyte, and the length of the manifest.
fn many_chunks() -> (Vec<u8>, usize) {
    use sha2::{Digest, Sha256};
    let bytes = container::MAX_CHUNK_BYTES;
    let zeros = Sha256::digest(vec![0; usize::try_from(bytes).unwrap()]);
    let hash = zeros.iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"));
    let start = 10 << 20;
    let chunk = |index: u64| {
        let offset = start + index * bytes;
        format!(r#"{{"offset":{offset},"stored":{bytes},"bytes":{bytes},"sha256":"{hash}"}}"#)
    };
    let count = (1_u64 << 40) / bytes;
    let chunks: Vec<_> = (0..count).map(chunk).collect();
    let (end, elements) = (start + (1_u64 << 40), 1_u64 << 38);
    let config = r#"{\"model_type\": \"bitnet\", \"num_hidden_layers\": 1}"#;
    let text = format!(
        r#"{{"version":1,"parts":[{{"file":"m.setun","bytes":{end}}}],"files":[{{"name":
        "config.json","text":"{config}"}}],"tensors":[{{"name":"a","dtype":"F32","shape":
        [{elements}]}}],"chunks":[{}]}}"#,
        chunks.join(",")
    );
    let mut text = text.into_bytes();
    text.resize(usize::try_from(start).unwrap() - 48, b' ');
    let first = [b"SETUN\0\x01\0", &(text.len() as u64).to_le_bytes()[..]].concat();
    let hash = Sha256::new().chain_update(&first).chain_update(&text).finalize();
    let length = text.len();
    ([&first, &hash[..], &text].concat(), length)
}

/// A table of 32 MiB is handed out in pieces, by each writer.
fn a_table_is_written_in_pieces() {
    const SHAPE: [usize; 2] = [1 << 17, 64];
    let model = support::read(Source::Folder, &golden("bitnet-h64/packed")).unwrap();
    let (name, kind) = ("model.embed_tokens.weight".to_owned(), OutlineKind::Floats(Dtype::F32));
    let tensors = vec![OutlineTensor { name: name.clone(), shape: SHAPE.to_vec(), kind }];
    let outline = Outline { config: model.config, files: model.files, tensors };
    let content = || {
        let mut tensor =
            model.tensors.iter().find(|tensor| tensor.info.name == name).unwrap().clone();
        (tensor.info.shape, tensor.info.dtype) = (SHAPE.to_vec(), Dtype::F32);
        tensor.data = TensorData::F32(vec![1.5; SHAPE[0] * SHAPE[1]].into());
        Content::Floats(tensor)
    };
    let check = |put: &mut dyn FnMut(Content) -> usize| {
        let content = content();
        let (written, peak) = peak_of(|| put(content));
        assert_eq!(written, 4 * SHAPE[0] * SHAPE[1]);
        assert!(peak < 8 * MIB, "{peak}");
    };
    let mut writer = HfWriter::new(&outline).unwrap();
    check(&mut |content| {
        let mut written = 0;
        writer.put(&name, content, &mut |piece| written += piece.bytes.len()).unwrap();
        written
    });
    let mut container =
        container::write::plan("m.setun", &outline, &container::write::Options::default()).unwrap();
    check(&mut |content| {
        let mut written = 0;
        container.put(&name, content, &mut |piece| written += piece.bytes.len()).unwrap();
        written
    });
}

const MIB: usize = 1 << 20;

#[test]
fn memory_follows_what_there_is() {
    lies_cost_no_memory();
    a_table_is_written_in_pieces();
}

fn lies_cost_no_memory() {
    let folder = golden("llama-rmsnorm-bias/packed");
    let with = |weights: Vec<u8>| {
        let config = br#"{"model_type": "bitnet", "num_hidden_layers": 1}"#.to_vec();
        let changed = [(files::WEIGHTS.to_owned(), weights), (files::CONFIG.to_owned(), config)];
        folder.clone().into_iter().chain(changed).collect::<Folder>()
    };

    // A header of 99 MB that is not there.
    let mut long = 99_000_000_u64.to_le_bytes().to_vec();
    long.push(b'{');
    let (error, peak) = read(&with(long));
    assert!(matches!(error, CheckpointError::Truncated { .. }), "{error}");
    assert!(peak < MIB / 4, "{peak}");

    // A tensor of a terabyte, of which nothing, or 12 MiB, is there.
    let (elements, end) = (1_u64 << 38, 1_u64 << 40);
    let header = format!(
        r#"{{"a": {{"dtype": "F32", "shape": [{elements}], "data_offsets": [0, {end}]}}}}"#
    );
    for (data, limit) in [(0, MIB / 4), (12 * MIB, 4 * 12 * MIB)] {
        let (error, peak) = read(&with(safetensors(&header, data)));
        assert!(matches!(error, CheckpointError::Truncated { .. }), "{error}");
        assert!(peak < limit, "{peak} of {limit}");
    }

    // The same in a container: a manifest of 99 MB that is not there, and a tensor of a terabyte in
    // very many chunks, of which one is there.
    let container = |bytes: Vec<u8>| Folder::from([(container::FILE.to_owned(), bytes)]);
    let head = [b"SETUN\0\x01\0", &99_000_000_u64.to_le_bytes()[..], &[0; 32]].concat();
    let (error, peak) = read(&container(head));
    assert!(matches!(error, CheckpointError::Truncated { .. }), "{error}");
    assert!(peak < MIB / 4, "{peak}");
    let (manifest, length) = many_chunks();
    let data = vec![0; usize::try_from(container::MAX_CHUNK_BYTES).unwrap()];
    let whole = container([manifest, data].concat());
    let (error, peak) = read(&whole);
    assert!(matches!(error, CheckpointError::Truncated { .. }), "{error}");
    let limit = 12 * length + 10 * 16 * MIB;
    assert!(peak < limit, "{peak} of {limit}");

    // A header of very many tensors, and one of a tensor with very many dimensions.
    let entry =
        |index: usize| format!(r#""{index:x}":{{"dtype":"U8","shape":[],"data_offsets":[0,0]}}"#);
    let many = (0..200_000).map(entry).collect::<Vec<_>>().join(",");
    let dimensions = vec!["1"; 1_000_000].join(",");
    let wide = format!(r#""a":{{"dtype":"U8","shape":[{dimensions}],"data_offsets":[0,1]}}"#);
    for entries in [many, wide] {
        let header = format!("{{{entries}}}");
        let limit = 12 * header.len();
        let (error, peak) = read(&with(safetensors(&header, 1)));
        assert!(matches!(error, CheckpointError::TensorSize { .. }), "{error}");
        assert!(peak < limit, "{peak} of {limit}");
    }

    #[cfg(feature = "onnx")]
    lies_of_graphs(&with(vec![]));
    lies_of_gguf();
}

/// A field of a protobuf message that claims a length of its own.
#[cfg(feature = "onnx")]
fn field(number: u8, length: u64, payload: &[u8]) -> Vec<u8> {
    [&[number << 3 | 2], &varint(length)[..], payload].concat()
}

#[cfg(feature = "onnx")]
fn honest(number: u8, payload: &[u8]) -> Vec<u8> {
    field(number, payload.len() as u64, payload)
}

#[cfg(feature = "onnx")]
fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = vec![];
    while value >= 0x80 {
        bytes.push(u8::try_from(value & 0x7f).unwrap() | 0x80);
        value >>= 7;
    }
    bytes.push(u8::try_from(value).unwrap());
    bytes
}

#[cfg(feature = "onnx")]
fn lies_of_graphs(folder: &Folder) {
    const MIB: usize = 1 << 20;
    const NAME: &str = "model.onnx";
    let model = |length: u64, graph: &[u8]| {
        [&[8, 10][..], &honest(2, b"setun"), &field(7, length, graph)].concat()
    };
    let read = |length: u64, graph: &[u8], data: usize| {
        let mut folder = folder.clone();
        folder.insert(NAME.to_owned(), model(length, graph));
        folder.insert("data".to_owned(), vec![0; data]);
        read_from(Source::File(NAME.to_owned()), &folder)
    };

    // A graph, and an operation within it, of which nothing is there.
    for graph in [vec![], field(1, MIB as u64, &[]), field(5, 1 << 39, &[])] {
        let (error, peak) = read(1 << 40, &graph, 0);
        assert!(matches!(error, CheckpointError::Truncated { .. }), "{error}");
        assert!(peak < MIB / 4, "{peak}");
    }

    // A table of a terabyte, in the file or beside it, of which nothing, or 12 MiB, is there.
    let size = [&[8][..], &varint(1 << 19)].concat();
    let name = honest(8, b"model.embed_tokens.weight");
    let entry = |key: &[u8], value: &[u8]| honest(13, &[honest(1, key), honest(2, value)].concat());
    let start = [&size[..], &size, &[16, 1], &name].concat();
    let inside = [&start[..], &field(9, 1 << 40, &[0; 9])].concat();
    let (error, peak) = read(2 << 40, &field(5, (1 << 40) + inside.len() as u64 - 9, &inside), 0);
    assert!(matches!(error, CheckpointError::Truncated { .. }), "{error}");
    assert!(peak < MIB / 4, "{peak}");
    let length = (1_u64 << 40).to_string();
    let place = [entry(b"location", b"data"), entry(b"length", length.as_bytes()), vec![112, 1]];
    let table = honest(5, &[start, place.concat()].concat());
    let gather = [honest(1, b"model.embed_tokens.weight"), honest(4, b"Gather")].concat();
    let graph = [honest(1, &gather), table].concat();
    for (data, limit) in [(0, MIB / 4), (12 * MIB, 4 * 12 * MIB)] {
        let (error, peak) = read(graph.len() as u64, &graph, data);
        assert!(matches!(error, CheckpointError::Truncated { .. }), "{error}");
        assert!(peak < limit, "{peak} of {limit}");
    }

    // Very many operations, tensors, sizes and parameters, each of a few bytes.
    let node = honest(1, &honest(4, b"a"));
    let tensor = honest(5, &honest(8, b"a"));
    let attributes = honest(1, &[honest(5, &[]).repeat(200_000), honest(4, b"a")].concat());
    let sizes = honest(5, &[8, 1].repeat(100_000));
    for (graph, times) in
        [(node.repeat(130_000), 64), (tensor.repeat(130_000), 64), (attributes, 64), (sizes, 48)]
    {
        let (_, peak) = read(graph.len() as u64, &graph, 0);
        let limit = times * graph.len();
        assert!(peak < limit, "{peak} of {limit}");
    }
}

/// Counts, lengths and shapes of a GGUF file that are not there.
fn lies_of_gguf() {
    const KIB: usize = 1 << 10;
    let huge = [0xff, 0xff, 0xff, 0x7f, 0, 0, 0, 0]; // 2 GiB
    let start =
        |tensors: [u8; 8], values: [u8; 8]| [b"GGUF\x03\0\0\0", &tensors[..], &values].concat();
    let one = 1_u64.to_le_bytes();
    let key = [&one[..], b"k"].concat();
    let list = |kind: u8| [&key[..], &[9, 0, 0, 0, kind, 0, 0, 0], &huge].concat();
    let shape = [&one[..], b"a", &[1, 0, 0, 0], &(1_u64 << 38).to_le_bytes(), &[0; 12]].concat();
    let headers = [
        start(huge, huge),
        [start(one, one), list(8)].concat(),
        [start(one, one), list(4)].concat(),
        [start(one, one), huge.to_vec()].concat(),
        [start(one, [0; 8]), shape].concat(),
    ];
    for header in headers {
        let folder = Folder::from([("m.gguf".to_owned(), header)]);
        let (_, peak) = read_from(Source::File("m.gguf".to_owned()), &folder);
        assert!(peak < 16 * KIB, "{peak}");
    }
    // Very many empty texts: eight bytes in the file, 24 in memory, and the list grows by halves.
    let count = 200_000_u64;
    let texts = [&key[..], &[9, 0, 0, 0, 8, 0, 0, 0], &count.to_le_bytes()].concat();
    let file = [start([0; 8], one), texts, vec![0; 8 * 200_000]].concat();
    let limit = 12 * file.len();
    let folder = Folder::from([("m.gguf".to_owned(), file)]);
    let (_, peak) = read_from(Source::File("m.gguf".to_owned()), &folder);
    assert!(peak < limit, "{peak} of {limit}");
}
