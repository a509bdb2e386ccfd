//! Weights that are mapped from an image give the same texts, and an image that does not fit is
//! never used.

use std::{
    fs::{self, File},
    io::{Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

use setun::{
    ActivationGroup, Device, Engine, EngineConfig, ErrorCode, GenerateOptions, HeadType, Model,
    ModelReader, ModelSource,
    checkpoint::{I2sBlocks, Options},
};
use tempfile::TempDir;

/// A copy of a small model, and the place of its image.
struct Copy {
    folder: TempDir,
    image: PathBuf,
}

impl Copy {
    fn of(fixture: &str) -> Self {
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/golden");
        let folder = tempfile::tempdir().unwrap();
        for name in ["config.json", "model.safetensors"] {
            fs::copy(from.join(fixture).join(name), folder.path().join(name)).unwrap();
        }
        let image = folder.path().join("weights.image");
        Self { folder, image }
    }

    /// The first fixture with the signs of some weights turned: files of the same size.
    fn with_other_weights() -> Self {
        let copy = Self::of(FIXTURES[0]);
        let path = copy.folder.path().join("model.safetensors");
        let mut bytes = fs::read(&path).unwrap();
        let header = u64::from_le_bytes(*bytes.first_chunk().unwrap());
        let header: serde_json::Value =
            serde_json::from_slice(&bytes[8..][..usize::try_from(header).unwrap()]).unwrap();
        let start = 8 + usize::try_from(u64::from_le_bytes(*bytes.first_chunk().unwrap())).unwrap();
        let packed = header.as_object().unwrap().values().filter(|tensor| tensor["dtype"] == "U8");
        for tensor in packed {
            let at = |index: usize| {
                let offset = tensor["data_offsets"][index].as_u64().unwrap();
                start + usize::try_from(offset).unwrap()
            };
            // Codes 0 and 2 are exchanged, and 1 stays: each is 2 less what it was.
            bytes[at(0)..at(1)].iter_mut().for_each(|byte| *byte = 0b1010_1010 - *byte);
        }
        fs::write(&path, bytes).unwrap();
        copy
    }

    fn reader(&self) -> ModelReader {
        ModelReader::open(self.folder.path()).unwrap()
    }

    fn config(&self, head: HeadType) -> EngineConfig {
        let mut config = EngineConfig::default();
        (config.device.threads, config.device.head_type) = (Some(1), head);
        config.device.weight_image = Some(self.image.to_str().unwrap().to_owned());
        config
    }

    fn engine(&self, head: HeadType) -> Engine {
        self.try_engine(self.config(head), Device::Cpu).unwrap()
    }

    fn try_engine(&self, config: EngineConfig, device: Device) -> Result<Engine, setun::Error> {
        Engine::builder(self.reader()).config(config).device(device).build()
    }

    /// What is another where the image is another file.
    fn number(&self) -> (u64, std::time::SystemTime) {
        let metadata = fs::metadata(&self.image).unwrap();
        #[cfg(unix)]
        let number = std::os::unix::fs::MetadataExt::ino(&metadata);
        #[cfg(not(unix))]
        let number = 0;
        (number, metadata.created().or_else(|_| metadata.modified()).unwrap())
    }

    /// Nothing of a write is left beside the image.
    fn files(&self) -> usize {
        fs::read_dir(&self.folder).unwrap().count()
    }
}

fn tokens(engine: &Engine) -> Vec<u32> {
    let options = GenerateOptions::new().max_tokens(24).temperature(0.7).seed(3);
    let mut tokens = vec![];
    for event in engine.generate(vec![1, 2, 3], options).unwrap().blocking() {
        if let setun::Event::Text(delta) = event.unwrap() {
            tokens.push(delta.token);
        }
    }
    tokens
}

fn read_tokens(copy: &Copy, head: HeadType) -> Vec<u32> {
    let mut config = copy.config(head);
    config.device.weight_image = None;
    tokens(&copy.try_engine(config, Device::Cpu).unwrap())
}

const FIXTURES: [&str; 4] = [
    "bitnet-h64/packed",
    "bitnet-h320-f432/packed",
    "bitnet-untied-dead/packed",
    "llama-bitlinear/packed",
];

const HEADS: [HeadType; 3] = [HeadType::Stored, HeadType::Screened, HeadType::Int8];

#[test]
fn a_mapped_model_gives_the_same_text() {
    for fixture in FIXTURES {
        let mut sizes = vec![];
        for head in HEADS {
            let copy = Copy::of(fixture);
            let expected = read_tokens(&copy, head);
            let engine = copy.engine(head);
            assert_eq!(tokens(&engine), expected, "{fixture}, {head}: written");
            let (written, bytes) = (copy.number(), engine.weight_bytes());
            sizes.push(fs::metadata(&copy.image).unwrap().len());
            drop(engine);
            let mapped = copy.engine(head);
            assert_eq!(tokens(&mapped), expected, "{fixture}, {head}: mapped");
            assert_eq!(mapped.weight_bytes(), bytes);
            assert_eq!((copy.number(), copy.files()), (written, 3), "written once");
        }
        let [stored, screened, int8] = sizes[..] else { panic!("three heads") };
        assert!(screened > stored && int8 < stored, "{fixture}: {sizes:?}");
    }
}

#[test]
fn another_model_or_head_has_another_image() {
    let copy = Copy::of(FIXTURES[0]);
    drop(copy.engine(HeadType::Stored));
    let first = copy.number();
    let expected = read_tokens(&copy, HeadType::Int8);
    assert_eq!(tokens(&copy.engine(HeadType::Int8)), expected);
    let second = copy.number();
    assert_ne!(second, first, "the head is kept in another form");
    let model = copy.folder.path().join("model.safetensors");
    let file = File::options().write(true).open(&model).unwrap();
    file.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
    assert_eq!(tokens(&copy.engine(HeadType::Int8)), expected);
    assert_ne!(copy.number(), second, "the model has been written to");
}

/// An image fits another activation group unless that group changes whether `down` is kept by columns.
#[test]
fn an_image_is_for_other_activation_groups_if_weights_are_kept_alike() {
    for (fixture, is_alike) in [(FIXTURES[0], false), (FIXTURES[3], true)] {
        let copy = Copy::of(fixture);
        let engine = |group, is_mapped: bool| {
            let mut config = copy.config(HeadType::Stored);
            config.device.activation_group = Some(group);
            config.device.weight_image.take_if(|_| !is_mapped);
            tokens(&copy.try_engine(config, Device::Cpu).unwrap())
        };
        let written = |group| {
            assert_eq!(engine(group, true), engine(group, false), "{fixture}, {group}");
            copy.number()
        };
        let [row, group, other] =
            [ActivationGroup::Row, ActivationGroup::Columns32, ActivationGroup::Columns64]
                .map(written);
        assert_eq!(row == group, is_alike, "{fixture}");
        assert_eq!(group, other, "{fixture}");
        assert_eq!(written(ActivationGroup::Row) == group, is_alike, "{fixture}");
    }
}

#[test]
fn a_model_that_is_replaced_while_it_is_opened_leaves_no_image_of_another() {
    let (copy, other) = (Copy::of(FIXTURES[0]), Copy::with_other_weights());
    let reader = copy.reader();
    // As it is read from now on, whatever is at its path.
    let expected = read_tokens(&copy, HeadType::Stored);
    let model = |copy: &Copy| copy.folder.path().join("model.safetensors");
    fs::rename(model(&other), model(&copy)).unwrap();
    let config = copy.config(HeadType::Stored);
    let old = Engine::builder(reader).config(config).device(Device::Cpu).build().unwrap();
    assert_eq!(tokens(&old), expected);
    let new = read_tokens(&copy, HeadType::Stored);
    assert_ne!(new, expected);
    for place in ["written", "mapped"] {
        assert_eq!(tokens(&copy.engine(HeadType::Stored)), new, "{place}");
    }
}

#[test]
fn models_that_are_alike_but_for_their_weights_have_images_of_their_own() {
    let (copy, mut other) = (Copy::of(FIXTURES[0]), Copy::with_other_weights());
    other.image.clone_from(&copy.image);
    for copy in [&copy, &other] {
        let file = File::options().write(true).open(copy.folder.path().join("model.safetensors"));
        file.unwrap().set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
    }
    for copy in [&copy, &other, &copy] {
        let expected = read_tokens(copy, HeadType::Stored);
        assert_eq!(tokens(&copy.engine(HeadType::Stored)), expected);
    }
}

#[test]
fn what_says_how_a_file_is_read_is_part_of_it() {
    let copy = Copy::of(FIXTURES[0]);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/gguf/i2_s.gguf");
    let mut numbers = vec![];
    for i2s in [I2sBlocks::Wide, I2sBlocks::Narrow, I2sBlocks::Wide] {
        let source =
            ModelSource::open(&path).unwrap().with_options(Options { i2s, ..Options::default() });
        let reader = pollster::block_on(ModelReader::new(source)).unwrap();
        let config = copy.config(HeadType::Stored);
        drop(Engine::builder(reader).config(config).device(Device::Cpu).build().unwrap());
        numbers.push(copy.number());
    }
    assert!(numbers[0] != numbers[1] && numbers[1] != numbers[2], "{numbers:?}");
}

#[test]
fn an_image_that_was_written_to_or_cut_is_replaced() {
    let copy = Copy::of(FIXTURES[0]);
    let expected = read_tokens(&copy, HeadType::Screened);
    drop(copy.engine(HeadType::Screened));
    let damages: [fn(&mut File); 3] = [
        |file| file.set_len(file.metadata().unwrap().len() - 1).unwrap(),
        |file| file.set_len(100).unwrap(),
        |file| {
            file.seek(SeekFrom::End(-9)).unwrap();
            file.write_all(b"x").unwrap();
        },
    ];
    for damage in damages {
        let before = copy.number();
        make_writable(&copy.image);
        damage(&mut File::options().write(true).open(&copy.image).unwrap());
        assert_eq!(tokens(&copy.engine(HeadType::Screened)), expected);
        assert_ne!(copy.number(), before);
        assert_eq!(tokens(&copy.engine(HeadType::Screened)), expected);
        assert_eq!(copy.files(), 3);
    }
}

fn make_writable(path: &Path) {
    let mut permissions = fs::metadata(path).unwrap().permissions();
    assert!(permissions.readonly() || cfg!(not(unix)), "an image is not to be written to");
    #[cfg(unix)]
    std::os::unix::fs::PermissionsExt::set_mode(&mut permissions, 0o600);
    #[cfg(not(unix))]
    permissions.set_readonly(false);
    fs::set_permissions(path, permissions).unwrap();
}

#[test]
fn an_image_that_is_replaced_or_removed_stays_with_its_engine() {
    let copy = Copy::of(FIXTURES[0]);
    let expected = read_tokens(&copy, HeadType::Screened);
    drop(copy.engine(HeadType::Screened));
    let mapped = copy.engine(HeadType::Screened);
    drop(copy.engine(HeadType::Int8)); // in its place
    assert_eq!(tokens(&mapped), expected);
    fs::remove_file(&copy.image).unwrap();
    assert_eq!(tokens(&mapped), expected);
}

#[test]
fn a_file_that_is_no_image_is_refused_and_kept() {
    let copy = Copy::of(FIXTURES[0]);
    for content in [b"".as_slice(), b"some text", &[0; 4000]] {
        fs::write(&copy.image, content).unwrap();
        let error = copy.try_engine(copy.config(HeadType::Auto), Device::Cpu).err().unwrap();
        assert_eq!(error.code(), ErrorCode::BadOption);
        let message = error.to_string();
        assert!(message.contains("is no weight image: name a file that is one"), "{message}");
        assert_eq!(fs::read(&copy.image).unwrap(), content);
    }
}

#[test]
fn a_place_that_cannot_be_written_to_is_an_error() {
    let mut copy = Copy::of(FIXTURES[0]);
    for folder in ["none/such", "/proc"] {
        copy.image = copy.folder.path().join(folder).join("weights.image");
        let error = copy.try_engine(copy.config(HeadType::Auto), Device::Cpu).err().unwrap();
        let message = error.to_string();
        assert!(message.starts_with("cannot write the weight image"), "{message}");
        assert_eq!(copy.files(), 2);
    }
}

#[test]
fn other_devices_and_models_without_files_are_told_so() {
    let copy = Copy::of(FIXTURES[0]);
    let config = || copy.config(HeadType::Auto);
    let scalar = copy.try_engine(config(), Device::Scalar).err().unwrap();
    let model = Model::open(copy.folder.path()).unwrap();
    let memory = Engine::builder(model).config(config()).device(Device::Cpu).build().err().unwrap();
    let expected = ["images are for levels of the processor", "still to be read"];
    for (error, expected) in [scalar, memory].into_iter().zip(expected) {
        assert_eq!(error.code(), ErrorCode::BadOption);
        assert!(error.to_string().contains(expected), "{error}");
    }
    assert_eq!(copy.files(), 2, "nothing was written");
}

/// What is mapped is the system's: no page of it belongs to the process.
#[cfg(target_os = "linux")]
#[test]
fn mapped_weights_are_shared() {
    let copy = Copy::of(FIXTURES[0]);
    drop(copy.engine(HeadType::Screened));
    let engine = copy.engine(HeadType::Screened);
    tokens(&engine);
    let maps = fs::read_to_string("/proc/self/smaps").unwrap();
    let mut lines = maps.lines().skip_while(|line| !line.ends_with(copy.image.to_str().unwrap()));
    assert!(lines.next().is_some(), "it is mapped");
    let mut kilobytes = |what: &str| -> u64 {
        let line = lines.find(|line| line.starts_with(what)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    };
    assert!(kilobytes("Rss:") > 0);
    assert_eq!((kilobytes("Private_Dirty:"), kilobytes("Anonymous:")), (0, 0));
    drop(engine);
}
