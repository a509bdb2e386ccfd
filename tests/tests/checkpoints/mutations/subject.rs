//! Sound checkpoints to be damaged: the smallest fixtures of each format.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};
use setun_checkpoint::{Source, files};
use setun_tests::{
    fixture,
    trial::{self, Folder, Loaded},
};

use super::{change, random::Random};

/// Largest file that is damaged.
const MAX_BYTES: usize = 100_000;

/// A checkpoint: its files, and those of them that can be damaged.
pub(crate) struct Subject {
    pub(crate) name: String,
    pub(crate) source: Source,
    files: BTreeMap<String, Vec<u8>>,
    targets: Vec<String>, // the first is the one that matters most
    /// What it says, if no damage may change that.
    pub(crate) hashed: Option<Loaded>,
}

/// A damaged file of a subject.
pub(crate) struct Damaged {
    file: String,
    bytes: Vec<u8>,
}

impl Subject {
    /// One of its files, damaged.
    pub(crate) fn damaged(&self, random: &mut Random) -> Damaged {
        let target = if random.below(4) > 0 { 0 } else { random.below(self.targets.len()) };
        let file = self.targets[target].clone();
        let mut bytes = self.files[&file].clone();
        change::damage(&mut bytes, random);
        Damaged { file, bytes }
    }

    fn folder(&self) -> Folder<'_> {
        self.files.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice())).collect()
    }
}

impl Damaged {
    /// The subject's files, this one in the place of its own.
    pub(crate) fn folder<'a>(&'a self, subject: &'a Subject) -> Folder<'a> {
        let mut folder = subject.folder();
        folder.insert(&self.file, &self.bytes);
        folder
    }
}

/// Folders in Hugging Face's layout.
pub(crate) fn safetensors_folders() -> Vec<Subject> {
    let folders = found("safetensors").into_iter().filter(|path| path.ends_with(files::WEIGHTS));
    let folders = folders.filter_map(|path| path.parent().map(Path::to_path_buf));
    let subject = |folder: PathBuf| {
        let names = [files::WEIGHTS, files::CONFIG, files::GENERATION_CONFIG];
        let read = |name: &str| Some((name.to_owned(), fs::read(folder.join(name)).ok()?));
        let files: BTreeMap<_, _> = names.into_iter().filter_map(read).collect();
        let targets = names.into_iter().filter(|name| files.contains_key(*name));
        let targets = targets.map(str::to_owned).collect();
        let name = folder.display().to_string();
        Subject { name, source: Source::Folder, files, targets, hashed: None }
    };
    folders.map(subject).filter(is_sound).collect()
}

/// The same as files that carry their configuration.
pub(crate) fn lone_safetensors() -> Vec<Subject> {
    let lone = |folder: Subject| {
        let weights = &folder.files[files::WEIGHTS];
        let (length, rest) = weights.split_first_chunk().expect("a header");
        let (header, data) =
            rest.split_at(usize::try_from(u64::from_le_bytes(*length)).expect("a small file"));
        let mut header: Value = serde_json::from_slice(header).expect("JSON");
        let config = String::from_utf8_lossy(&folder.files[files::CONFIG]);
        header["__metadata__"] =
            json!({ format!("{}config.json", files::EMBEDDED_PREFIX): config });
        let header = header.to_string();
        let file = [&(header.len() as u64).to_le_bytes(), header.as_bytes(), data].concat();
        one(
            folder.name,
            "model.safetensors".to_owned(),
            [("model.safetensors".to_owned(), file)].into(),
        )
    };
    safetensors_folders().into_iter().map(lone).filter(is_sound).collect()
}

/// Files with this ending, with all that lies in their folders.
pub(crate) fn of_extension(extension: &str) -> Vec<Subject> {
    let subject = |path: PathBuf| {
        let name = path.display().to_string();
        let folder = path.parent().expect("a folder");
        let beside = fs::read_dir(folder).expect("a folder").flatten().map(|entry| entry.path());
        let read = |path: PathBuf| Some((file_name(&path), fs::read(path).ok()?));
        let mut files: BTreeMap<_, _> = beside.filter_map(read).collect();
        files.entry(files::CONFIG.to_owned()).or_insert_with(|| config_of(&path));
        one(name, file_name(&path), files)
    };
    let mut subjects: Vec<_> = found(extension).into_iter().map(subject).filter(is_sound).collect();
    if extension == "setun" {
        for subject in &mut subjects {
            subject.hashed = trial::read(&subject.source, &subject.folder()).ok();
        }
    }
    subjects
}

fn one(name: String, file: String, files: BTreeMap<String, Vec<u8>>) -> Subject {
    let parts = |name: &String| match name.split_once("-0000") {
        Some((stem, _)) => file.starts_with(stem) && *name != file,
        None => name.contains("onnx_data") && file.contains("onnx"),
    };
    let mut targets = vec![file.clone()];
    targets.extend(files.keys().filter(|name| parts(name)).cloned());
    Subject { name, source: Source::File(file), files, targets, hashed: None }
}

/// The configuration of the model that an export without one was made of.
fn config_of(path: &Path) -> Vec<u8> {
    let is_llama = path.parent().is_some_and(|folder| folder.ends_with("bias"));
    let model = if is_llama { "llama-rmsnorm-bias" } else { "bitnet-h64" };
    fs::read(fixture("golden").join(model).join("packed").join(files::CONFIG)).expect("a fixture")
}

fn file_name(path: &Path) -> String {
    path.file_name().expect("a file").to_string_lossy().into_owned()
}

/// Fixtures that are refused, as they should be, have nothing to lose.
fn is_sound(subject: &Subject) -> bool {
    trial::read(&subject.source, &subject.folder()).is_ok()
}

/// All files of an ending among the fixtures, but large ones.
fn found(extension: &str) -> Vec<PathBuf> {
    let (mut found, mut folders) = (vec![], vec![fixture("")]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("fixtures").flatten() {
            let (path, bytes) = (entry.path(), entry.metadata().map_or(0, |data| data.len()));
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|found| found == extension)
                && bytes <= MAX_BYTES as u64
            {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}
