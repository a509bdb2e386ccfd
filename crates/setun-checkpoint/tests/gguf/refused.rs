//! Bad GGUF files: each is one error, and never a panic.

use setun_checkpoint::{CheckpointError, Dtype, ErrorKind, Tensor, TensorData, blocks};

use crate::{
    gguf::fixtures::{bytes, check_linears, model, open},
    support::{Folder, Random},
};

fn refused(file: Vec<u8>) -> CheckpointError {
    open("m.gguf", &Folder::from([("m.gguf".to_owned(), file)])).unwrap_err()
}

/// A header of these metadata and tensors; both are bytes, and their numbers.
fn header(values: (u64, Vec<u8>), tensors: (u64, Vec<u8>)) -> Vec<u8> {
    let counts = [tensors.0.to_le_bytes(), values.0.to_le_bytes()].concat();
    [b"GGUF\x03\0\0\0".to_vec(), counts, values.1, tensors.1].concat()
}

fn text(text: &str) -> Vec<u8> {
    [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat()
}

fn value(key: &str, kind: u32, bytes: &[u8]) -> Vec<u8> {
    [text(key), kind.to_le_bytes().to_vec(), bytes.to_vec()].concat()
}

fn tensor(name: &str, shape: &[u64], kind: u32, offset: u64) -> Vec<u8> {
    let rank = u32::try_from(shape.len()).unwrap().to_le_bytes();
    let dims: Vec<u8> = shape.iter().flat_map(|size| size.to_le_bytes()).collect();
    let place = [&kind.to_le_bytes()[..], &offset.to_le_bytes()].concat();
    [text(name), rank.to_vec(), dims, place].concat()
}

#[test]
fn a_header_that_ends_early_is_truncated() {
    let whole = bytes("i2_s.gguf");
    let end = model("i2_s.gguf").tensors.iter().map(|tensor| tensor.info.range.start).min();
    let header = usize::try_from(end.unwrap()).unwrap() - 32; // less what may pad it
    let in_data = (header..whole.len() - 32).step_by(397);
    for length in (8..header).chain(in_data) {
        match refused(whole[..length].to_vec()) {
            CheckpointError::Truncated { ref file, expected, found } => {
                assert_eq!((file.as_str(), found), ("m.gguf", length as u64));
                assert!(expected > found, "{length}");
            }
            error => panic!("{length}: {error}"),
        }
    }
    for length in 0..8 {
        refused(whole[..length].to_vec());
    }
}

#[test]
fn other_versions_are_named() {
    let version = |bytes: [u8; 4]| {
        let mut file = bytes_with_version(bytes);
        file.truncate(64);
        refused(file).to_string()
    };
    let expected = "m.gguf: GGUF version `1` is not supported; supported: 2 and 3, little-endian";
    assert_eq!(version([1, 0, 0, 0]), expected);
    assert!(version([0, 0, 0, 3]).contains("`3, big-endian`"));
    assert!(version([9, 0, 0, 0]).contains("`9`"));
    let mut second = bytes("i2_s.gguf");
    second[4] = 2;
    let second = open("m.gguf", &Folder::from([("m.gguf".to_owned(), second)])).unwrap();
    check_linears(&second);
}

fn bytes_with_version(version: [u8; 4]) -> Vec<u8> {
    let mut file = bytes("i2_s.gguf");
    file[4..8].copy_from_slice(&version);
    file
}

#[test]
fn architectures_that_are_not_read_are_named() {
    let of = |name: &str| {
        let named = value("general.architecture", 8, &text(name));
        let model = value("tokenizer.ggml.model", 8, &text("none"));
        refused(header((2, [named, model].concat()), (0, vec![]))).to_string()
    };
    let error = of("gemma");
    assert!(error.contains("`gemma` is not supported; supported: bitnet, bitnet-25"), "{error}");
    let error = of("falcon3");
    assert!(error.contains("`falcon3` is not supported; supported: llama, as Falcon3"), "{error}");
}

#[test]
fn types_that_are_not_read_say_what_to_do() {
    let error = refused(bytes("tl1.gguf")).to_string();
    assert!(error.contains("TL1 (38)") && error.contains("take the I2_S file"), "{error}");
    let error = |kind| refused(header((0, vec![]), (1, tensor("a", &[32], kind, 0)))).to_string();
    assert!(error(39).contains("TL2 or MXFP4 (39)"));
    assert!(error(13).contains("`a` has the type Q5_K (13)"));
    assert!(error(40).contains("NVFP4 (40)") && error(40).contains("PQ2_0, PTQ1_0"));
    assert!(error(999).contains("unknown (999)"));
}

/// Whatever the type of the tensors, these keys alone say that weights are rotated.
#[test]
fn rotations_that_are_not_known_are_refused_by_key() {
    let of = |architecture: &str, keys: &[(&str, u32)]| {
        let name = value("general.architecture", 8, &text(architecture));
        let numbers = keys.iter().flat_map(|(key, number)| value(key, 4, &number.to_le_bytes()));
        let values = [name, numbers.collect()].concat();
        refused(header((1 + keys.len() as u64, values), (0, vec![])))
    };
    let error = of("llama", &[("prism.hadamard.version", 3)]);
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("prism.hadamard.version `3`"), "{error}");
    let error = of("llama", &[("prism.hadamard.block_size", 64)]).to_string();
    assert!(error.contains("`prism.hadamard.version` is absent"), "{error}");
    let unknown = [("prism.hadamard.version", 1), ("prism.hadamard.weights", 1)];
    let error = of("llama", &unknown).to_string();
    assert!(error.contains("`prism.hadamard.weights`"), "{error}");
    let error = of("bitnet-25", &unknown).to_string();
    assert!(error.contains("rotated weights of architecture `bitnet-25`"), "{error}");
    assert!(!of("llama", &[("prism.other", 1)]).to_string().contains("prism"), "no rotation");
}

#[test]
fn lies_about_lengths_are_seen() {
    let huge = u64::MAX.to_le_bytes();
    let too_large = |file: Vec<u8>| match refused(file) {
        CheckpointError::HeaderTooLarge { .. } | CheckpointError::Truncated { .. } => {}
        error => panic!("{error}"),
    };
    too_large(header((u64::MAX, vec![]), (u64::MAX, vec![])));
    too_large(header((1, value("k", 8, &huge)), (0, vec![])));
    too_large(header((1, huge.to_vec()), (0, vec![])));
    for kind in [0_u32, 4, 8, 12] {
        let list = [&kind.to_le_bytes()[..], &huge].concat();
        too_large(header((1, value("k", 9, &list)), (0, vec![])));
    }
}

#[test]
fn malformed_headers_are_named() {
    let of_values =
        |count, values: Vec<u8>| refused(header((count, values), (0, vec![]))).to_string();
    let one = value("k", 0, &[1]);
    assert!(of_values(2, [one.clone(), one].concat()).contains("the key `k` occurs twice"));
    assert!(of_values(1, value("k", 13, &[0; 8])).contains("unknown type 13"));
    assert!(of_values(1, value("k", 7, &[2])).contains("a flag is 2"));
    let lists = [&9_u32.to_le_bytes()[..], &1_u64.to_le_bytes()].concat();
    assert!(of_values(1, value("k", 9, &lists)).contains("a list of lists"));
    assert!(of_values(1, value("general.alignment", 4, &[7, 0, 0, 0])).contains("a multiple of 8"));
    let not_utf8 = [&2_u64.to_le_bytes()[..], &[0xff, 0xfe]].concat();
    assert!(of_values(1, not_utf8).contains("UTF-8"));
    let of_tensors =
        |count, tensors: Vec<u8>| refused(header((0, vec![]), (count, tensors))).to_string();
    assert!(of_tensors(1, tensor("a", &[1; 5], 0, 0)).contains("has 5 dimensions"));
    assert!(of_tensors(1, tensor("", &[1], 0, 0)).contains("name has 0 bytes"));
    assert!(of_tensors(0, vec![]).contains("`general.architecture` is absent"));
}

#[test]
fn places_must_follow_from_the_types() {
    let two = |a: Vec<u8>, b: Vec<u8>| refused(header((0, vec![]), (2, [a, b].concat())));
    let overlapping = two(tensor("a", &[32], 0, 0), tensor("b", &[32], 0, 64));
    assert!(overlapping.to_string().contains("`a`, F32 [32], lies in [0, 64]"), "{overlapping}");
    let gap = two(tensor("a", &[32], 0, 0), tensor("b", &[32], 0, 160));
    assert!(matches!(gap, CheckpointError::TensorSize { .. }), "{gap}");
    let late = refused(header((0, vec![]), (1, tensor("a", &[32], 0, 32))));
    assert!(matches!(late, CheckpointError::Offset { found: 32, .. }), "{late}");
    let same = two(tensor("a", &[8], 0, 0), tensor("a", &[8], 0, 0));
    assert!(matches!(same, CheckpointError::TensorSize { .. }), "{same}");
    for shape in [vec![u64::MAX, 2], vec![1 << 40, 1 << 40], vec![100, 2]] {
        let error = refused(header((0, vec![]), (1, tensor("a", &shape, 35, 0))));
        assert!(matches!(error, CheckpointError::TensorSize { .. }), "{error}");
    }
    // 256 weights are 68 bytes of PQ2_0, 56 of PTQ1_0; rows are whole blocks of 128.
    for (kind, next, dtype) in [(142, 64, Dtype::Pq2_0), (143, 96, Dtype::Ptq1_0)] {
        let wrong = two(tensor("a", &[256], kind, 0), tensor("b", &[32], 0, next));
        assert!(wrong.to_string().contains(&format!("`a`, {dtype} [256]")), "{wrong}");
        let ragged = refused(header((0, vec![]), (1, tensor("a", &[192, 2], kind, 0))));
        assert!(matches!(ragged, CheckpointError::TensorSize { .. }), "{ragged}");
        let huge = refused(header((0, vec![]), (1, tensor("a", &[1 << 40, 1 << 40], kind, 0))));
        assert!(matches!(huge, CheckpointError::TensorSize { .. }), "{huge}");
    }
    // 1024 weights of Q2_0 are 288 bytes in groups of 64, or 272 that are padded to as many.
    let unclear = two(tensor("a", &[1024], 42, 0), tensor("b", &[32], 0, 288));
    assert!(unclear.to_string().contains("64 or Q2_0 in groups of 128"), "{unclear}");
    // 12 rows of 256 weights are 864 and 816 bytes, and 504 as STQ1_0.
    let tencent = two(tensor("a", &[256, 12], 42, 0), tensor("b", &[32], 0, 512));
    assert!(tencent.to_string().contains("STQ1_0 (42)"), "{tencent}");
}

#[test]
fn names_that_occur_twice_are_refused() {
    let mut file = bytes("i2_s.gguf");
    let place = file.windows(12).position(|bytes| bytes == b"blk.0.attn_k").unwrap();
    file[place + 11] = b'v';
    let error = refused(file);
    assert!(matches!(error, CheckpointError::DuplicateTensor { .. }), "{error}");
}

#[test]
fn bad_codes_and_scales_name_their_place() {
    let unpack = |dtype: Dtype, shape: [usize; 2], bytes: Vec<u8>| {
        blocks::unpack(&Tensor::new("w", dtype, &shape, TensorData::Bytes(bytes.into())))
    };
    let mut i2_s = [vec![0x55; 64], 1.0_f32.to_le_bytes().to_vec(), vec![0; 28]].concat();
    i2_s[32 + 5] = 0b01_11_01_01; // row 1, column 32 + 5
    let error = unpack(Dtype::I2S, [2, 128], i2_s.clone()).unwrap_err();
    let expected = CheckpointError::NotTernary { tensor: "w".to_owned(), row: 1, column: 37 };
    assert_eq!(error, expected);
    i2_s[32 + 5] = 0x55;
    i2_s[64..68].copy_from_slice(&f32::NAN.to_le_bytes());
    let error = unpack(Dtype::I2S, [2, 128], i2_s).unwrap_err();
    assert!(matches!(error, CheckpointError::Scale { .. }), "{error}");
    let infinite = [vec![0x55; 64], vec![0, 0x7c]].concat();
    let error = unpack(Dtype::Tq2_0, [1, 256], infinite).unwrap_err();
    assert!(matches!(error, CheckpointError::Scale { .. }), "{error}");
    // A scale of zero makes every weight zero, and takes the scale of the others.
    let halves = |scale: u16| [vec![0xaa; 64], scale.to_le_bytes().to_vec()].concat();
    let (codes, scales) =
        unpack(Dtype::Tq2_0, [1, 512], [halves(0), halves(0x3c00)].concat()).unwrap();
    assert_eq!(scales, setun_ops::ternary::Scales::Tensor(1.0));
    assert_eq!((&codes[..64], &codes[64..]), (&[0x55; 64][..], &[0xaa; 64][..]));
    assert!(unpack(Dtype::Tq2_0, [1 << 40, 0], vec![]).is_err(), "nothing there");
    // Column 70 of row 1 is the third of four codes in byte 17.
    let mut pq2_0 = [&[0, 0x3c][..], &[0x55; 32]].concat().repeat(2);
    pq2_0[34 + 2 + 17] = 0b01_11_01_01;
    let error = unpack(Dtype::Pq2_0, [2, 128], pq2_0).unwrap_err();
    let expected = CheckpointError::NotTernary { tensor: "w".to_owned(), row: 1, column: 70 };
    assert_eq!(error, expected);
    let error = unpack(Dtype::Ptq1_0, [1, 128], [&[0; 26][..], &[0, 0x7e]].concat()).unwrap_err();
    assert!(matches!(error, CheckpointError::Scale { .. }), "{error}");
    // Any byte stands for five weights.
    let all: Vec<u8> = (0..=255).collect();
    for bytes in all.chunks(26) {
        let mut block = bytes.to_vec();
        block.resize(26, 0);
        block.extend([0, 0x3c]);
        unpack(Dtype::Ptq1_0, [1, 128], block).unwrap();
    }
}

/// An error or a model, whatever is broken: 10,000 files with a few bits changed or an end cut off.
#[test]
fn broken_files_never_panic() {
    let names = ["i2_s.gguf", "llama-iq1_bn.gguf", "llama-iq2_bn.gguf", "i2_s-narrow.gguf"];
    let files = names.map(bytes);
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for round in 0..10_000 {
        let mut file = files[round % files.len()].clone();
        let reach = if random.below(2) == 0 { 4096.min(file.len()) } else { file.len() };
        for _ in 0..=random.below(4) {
            let place = random.below(reach);
            file[place] ^= 1 << random.below(8);
        }
        if random.below(3) == 0 {
            file.truncate(random.below(reach));
        }
        let folder = Folder::from([("m.gguf".to_owned(), file)]);
        if let Ok(model) = open("m.gguf", &folder) {
            for tensor in model.tensors {
                if tensor.info.dtype.is_ternary() {
                    drop(blocks::unpack(&tensor));
                } else {
                    drop(setun_checkpoint::dense::table(tensor));
                }
            }
        }
    }
}
