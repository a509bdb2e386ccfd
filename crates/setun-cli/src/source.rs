//! Where a model's bytes are: in files, in this program, or nowhere until they are read.

use std::{
    fs,
    io::ErrorKind,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use futures::future::{FutureExt, LocalBoxFuture, ready};
use setun::{
    Error, Files, Model, ModelBytes, ModelReader, Source, Want,
    checkpoint::files::{CONFIG, INDEX, WEIGHTS},
};

use crate::{error::CliError, output::Progress, synth::Synthetic};

/// What a MODEL may be.
const EXPECTED: &str = "a folder with config.json and model.safetensors, or a .safetensors file";

/// Names that an error lists at most.
const MOST_NAMES: usize = 8;

/// A model's bytes.
#[derive(Debug)]
pub(crate) enum ModelSource {
    /// A folder, or a file and the folder it is in.
    Files { name: String, source: Source, files: Files },
    /// The model inside this program.
    #[cfg(feature = "embedded-model")]
    Embedded,
    /// A random model.
    Synthetic(Box<Synthetic>),
}

impl ModelSource {
    /// What `--model` names; the embedded model without it.
    pub(crate) fn find(model: Option<&str>) -> Result<Self, CliError> {
        match model {
            Some(model) => Ok(Self::files(model)?),
            #[cfg(feature = "embedded-model")]
            None => Ok(Self::Embedded),
            #[cfg(not(feature = "embedded-model"))]
            None => Err(no_model(
                Path::new(setun::EMBEDDED_NAME),
                "no --model, and this program was built without an embedded one".into(),
            )
            .into()),
        }
    }

    /// Name to report the model by.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Files { name, .. } => name,
            #[cfg(feature = "embedded-model")]
            Self::Embedded => setun::EMBEDDED_NAME,
            Self::Synthetic(synthetic) => synthetic.name(),
        }
    }

    /// How a reader is to go about it.
    pub(crate) fn source(&self) -> Source {
        match self {
            Self::Files { source, .. } => source.clone(),
            #[cfg(feature = "embedded-model")]
            Self::Embedded => Source::File(setun::EMBEDDED_NAME.into()),
            Self::Synthetic(_) => Source::Folder,
        }
    }

    /// Reads what is wanted into `bytes`; false where there is no such file.
    pub(crate) fn read(&mut self, want: &Want, bytes: &mut Vec<u8>) -> Result<bool, Error> {
        bytes.clear();
        let range = want.range.clone().unwrap_or(0..u64::MAX);
        match self {
            Self::Files { files, .. } => return files.read(want, bytes),
            #[cfg(feature = "embedded-model")]
            Self::Embedded => {
                let end = setun::EMBEDDED_MODEL.len();
                let at = |offset| usize::try_from(offset).unwrap_or(end).min(end);
                bytes.extend_from_slice(&setun::EMBEDDED_MODEL[at(range.start)..at(range.end)]);
            }
            Self::Synthetic(synthetic) => match synthetic.file(&want.file) {
                Some(file) => bytes.extend_from_slice(file),
                None if want.file == WEIGHTS => synthetic.read_weights(range, bytes),
                None => return Ok(false),
            },
        }
        Ok(true)
    }

    /// Reads all but the weights. They show their progress on a terminal when they are read.
    pub(crate) fn open(self) -> Result<ModelReader, CliError> {
        let (source, name) = (self.source(), self.name().to_owned());
        let total = Arc::new(AtomicU64::new(0));
        let bytes = Reading {
            source: self,
            total: Arc::clone(&total),
            loaded: 0,
            progress: Progress::new(),
        };
        let reader = pollster::block_on(ModelReader::new(source, name, bytes))?;
        total.store(reader.total_bytes(), Ordering::Relaxed);
        Ok(reader)
    }

    /// Reads the whole model into memory.
    pub(crate) fn load(self) -> Result<Model, CliError> {
        Ok(pollster::block_on(self.open()?.read())?)
    }

    fn files(model: &str) -> Result<Self, Error> {
        let path = Path::new(model);
        let metadata = match path.metadata() {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == ErrorKind::NotFound => return Err(nothing_at(path)),
            Err(source) => return Err(Error::Io { path: path.into(), source }),
        };
        let whole = path.canonicalize().unwrap_or_else(|_| path.into());
        let name = whole.file_name().unwrap_or(whole.as_os_str()).to_string_lossy().into_owned();
        let (folder, source) = if metadata.is_dir() {
            check_folder(path)?;
            (path, Source::Folder)
        } else {
            let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if path.extension().is_none_or(|extension| extension != "safetensors") {
                return Err(no_model(path, format!("the file `{file}`")));
            }
            (path.parent().unwrap_or(Path::new("")), Source::File(file))
        };
        Ok(Self::Files { name, source, files: Files::new(folder) })
    }
}

/// A source that tells on a terminal how much of it has been read.
struct Reading {
    source: ModelSource,
    /// Bytes of all tensors; zero until that is known.
    total: Arc<AtomicU64>,
    loaded: u64,
    progress: Progress,
}

impl ModelBytes for Reading {
    fn read<'a>(
        &'a mut self,
        want: &'a Want,
        bytes: &'a mut Vec<u8>,
    ) -> LocalBoxFuture<'a, Result<bool, Error>> {
        let found = self.source.read(want, bytes);
        let total = self.total.load(Ordering::Relaxed);
        if total > 0 {
            self.loaded += bytes.len() as u64;
            let (name, share) = (self.source.name(), percent(self.loaded, total));
            self.progress.show(|| format!("loading {name}: {share} %"));
        }
        ready(found).boxed_local()
    }

    fn rewind(&mut self) {
        self.loaded = 0;
    }
}

/// A folder that lacks what every model has is named as such, with what it has.
fn check_folder(folder: &Path) -> Result<(), Error> {
    let has = |name| folder.join(name).is_file();
    if has(CONFIG) && (has(WEIGHTS) || has(INDEX)) {
        return Ok(());
    }
    Err(no_model(folder, format!("a folder with {}", names(folder))))
}

fn nothing_at(path: &Path) -> Error {
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let beside = if parent.is_dir() {
        format!("`{}` has {}", parent.display(), names(parent))
    } else {
        format!("there is no folder `{}` either", parent.display())
    };
    no_model(path, format!("nothing; {beside}"))
}

fn no_model(path: &Path, found: String) -> Error {
    Error::NoModel { path: path.into(), expected: EXPECTED, found }
}

/// What is in a folder, in words.
fn names(folder: &Path) -> String {
    let Ok(entries) = fs::read_dir(folder) else { return "contents that cannot be read".into() };
    let mut names: Vec<_> =
        entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    let more = names.len().saturating_sub(MOST_NAMES);
    names.truncate(MOST_NAMES);
    match (names.is_empty(), more) {
        (true, _) => "nothing in it".into(),
        (false, 0) => names.join(", "),
        (false, more) => format!("{} and {more} more", names.join(", ")),
    }
}

pub(crate) fn percent(part: u64, whole: u64) -> u64 {
    100 * part.min(whole) / whole.max(1)
}
