//! Search for a model's files at a path.

use std::{
    fs,
    io::ErrorKind,
    path::{Path, PathBuf},
};

use setun_checkpoint::{
    Source,
    files::{CONFIG, INDEX, WEIGHTS},
};

use crate::error::Error;

/// What a model may be.
const EXPECTED: &str = "a folder with config.json and model.safetensors, \
                        or a .safetensors, .gguf, .onnx or .setun file";

/// Endings of the names of files that are a model by themselves, the best first. A folder without
/// `model.safetensors` may have one such file.
const WHOLE: [&str; 3] = ["setun", "gguf", "onnx"];

/// Endings of pickles, which are read so far that the error says what to do.
const PICKLES: [&str; 3] = ["bin", "pt", "pth"];

/// Folder of the graphs of an ONNX export, below the other files.
const EXPORTS: &str = "onnx";

/// Names that an error lists at most.
const MAX_NAMES: usize = 8;

/// The folder that a model's files are in, and how to read it from there. `path` is a file, a
/// folder in Hugging Face's layout, or a folder with one file of another format.
///
/// # Errors
///
/// If there is no model, with what is there instead, or the path cannot be read.
pub fn locate(path: &Path) -> Result<(PathBuf, Source), Error> {
    match path.metadata() {
        Ok(metadata) if metadata.is_dir() => in_folder(path),
        Ok(_) => file(path),
        Err(error) if error.kind() == ErrorKind::NotFound => Err(nothing_at(path)),
        Err(source) => Err(Error::Io { path: path.into(), source }),
    }
}

fn file(path: &Path) -> Result<(PathBuf, Source), Error> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let folder = path.parent().unwrap_or(Path::new(""));
    let extension = path.extension().unwrap_or_default().to_string_lossy();
    let is_known = |known: &[&str]| known.contains(&&*extension);
    if !is_known(&["safetensors"]) && !is_known(&WHOLE) && !is_known(&PICKLES) {
        return Err(no_model(path, format!("the file `{name}`")));
    }
    // Exports have the other files in the folder above that of their graphs.
    match folder.parent() {
        Some(above) if folder.file_name().is_some_and(|name| name == EXPORTS) => {
            Ok((above.to_owned(), Source::File(format!("{EXPORTS}/{name}"))))
        }
        _ => Ok((folder.to_owned(), Source::File(name))),
    }
}

fn in_folder(folder: &Path) -> Result<(PathBuf, Source), Error> {
    let has = |name| folder.join(name).is_file();
    if has(CONFIG) && (has(WEIGHTS) || has(INDEX)) {
        return Ok((folder.to_owned(), Source::Folder));
    }
    let exports = format!("{EXPORTS}/model.onnx");
    if has(&exports) {
        return Ok((folder.to_owned(), Source::File(exports)));
    }
    let names = names(folder);
    for extension in WHOLE {
        let mut found = names.iter().filter(|name| is_first_of(name, extension));
        match (found.next(), found.next()) {
            (Some(name), None) => return Ok((folder.to_owned(), Source::File(name.clone()))),
            (Some(first), Some(second)) => {
                let found = format!("a folder with `{first}`, `{second}` …; name one of them");
                return Err(no_model(folder, found));
            }
            _ => {}
        }
    }
    if has(CONFIG) && names.iter().any(|name| name.starts_with("pytorch_model")) {
        return Ok((folder.to_owned(), Source::Folder)); // whose reader says what to do
    }
    Err(no_model(folder, format!("a folder with {}", listed(&names))))
}

/// Whether a file of that ending is not a later one of several parts.
fn is_first_of(name: &str, extension: &str) -> bool {
    let Some(stem) = name.strip_suffix(extension).and_then(|stem| stem.strip_suffix('.')) else {
        return false;
    };
    match stem.rsplit_once("-of-").and_then(|(before, _)| before.rsplit_once('-')) {
        Some((_, number)) if number.bytes().all(|digit| digit.is_ascii_digit()) => {
            number.trim_start_matches('0') == "1"
        }
        _ => true,
    }
}

pub(super) fn nothing_at(path: &Path) -> Error {
    no_model(path, format!("nothing; {}", surroundings(path)))
}

/// The entries of the folder in which a path was looked for.
pub(super) fn surroundings(path: &Path) -> String {
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    if parent.is_dir() {
        format!("`{}` has {}", parent.display(), listed(&names(parent)))
    } else {
        format!("there is no folder `{}` either", parent.display())
    }
}

fn no_model(path: &Path, found: String) -> Error {
    Error::NoModel { path: path.into(), expected: EXPECTED, found }
}

/// Names in a folder, in order; none where it cannot be read.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<_> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Names in words.
fn listed(names: &[String]) -> String {
    let shown = &names[..names.len().min(MAX_NAMES)];
    match (names.is_empty(), names.len() - shown.len()) {
        (true, _) => "nothing in it".into(),
        (false, 0) => shown.join(", "),
        (false, more) => format!("{} and {more} more", shown.join(", ")),
    }
}
