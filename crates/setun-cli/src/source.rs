//! Sources of a model's bytes: files, the embedded model, or random weights.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use futures::future::{FutureExt, LocalBoxFuture, ready};
use setun::{
    Error, Model, ModelBytes, ModelFolder, ModelHeader, ModelReader, ReadRequest, Source,
    checkpoint::{Options, files::WEIGHTS},
    hub::{self, ModelStore, StoreSettings},
    locate,
};

use crate::{
    error::CliError,
    output::{Progress, tell},
    synth::Synthetic,
};

/// What a MODEL may be.
const EXPECTED: &str = "a folder with config.json and model.safetensors, a .safetensors, .gguf, \
                        .onnx or .setun file, or the name of a model that was pulled";

/// A model's bytes.
#[derive(Debug)]
pub(crate) enum ModelSource {
    /// A folder, or a file and the folder it is in.
    Files { name: String, source: Source, options: Options, files: Box<ModelFolder> },
    /// The model inside this program.
    #[cfg(feature = "embedded-model")]
    Embedded,
    /// A random model.
    Synthetic(Box<Synthetic>),
}

impl ModelSource {
    /// What `--model` names; the embedded model without it. The options are those of its files.
    pub(crate) fn find(model: Option<&str>, options: Options) -> Result<Self, CliError> {
        match model {
            Some(model) => match named(model)? {
                Some(path) => Ok(Self::files(&path, options)?.called(model)),
                None => Ok(Self::files(Path::new(model), options)?),
            },
            #[cfg(feature = "embedded-model")]
            None => Ok(Self::Embedded),
            #[cfg(not(feature = "embedded-model"))]
            None => Err(Error::NoModel {
                path: setun::EMBEDDED_NAME.into(),
                expected: "--model",
                found: "none, and this program was built without an embedded model".into(),
            }
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

    /// What its files do not say of themselves.
    pub(crate) fn options(&self) -> Options {
        match self {
            Self::Files { options, .. } => *options,
            _ => Options::default(),
        }
    }

    /// Reads what is wanted into `bytes`; false where there is no such file.
    pub(crate) fn read(&mut self, want: &ReadRequest, bytes: &mut Vec<u8>) -> Result<bool, Error> {
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
        let total = Arc::new(AtomicU64::new(0));
        let reader = pollster::block_on(ModelReader::new(self.reading(&total)))?;
        total.store(reader.total_bytes(), Ordering::Relaxed);
        for warning in reader.warnings() {
            tell(&format!("setun: {warning}\n"));
        }
        Ok(reader)
    }

    /// Reads headers and configuration alone.
    pub(crate) fn header(self) -> Result<ModelHeader, CliError> {
        Ok(pollster::block_on(ModelHeader::read(self.reading(&Arc::default())))?)
    }

    /// Its bytes, which show how much of `total` has been read.
    fn reading(self, total: &Arc<AtomicU64>) -> setun::ModelSource {
        let (layout, options, name) = (self.source(), self.options(), self.name().to_owned());
        let (total, progress) = (Arc::clone(total), Progress::new());
        let bytes = Reading { source: self, total, loaded: 0, progress };
        setun::ModelSource::new(layout, name, bytes).with_options(options)
    }

    /// Reads the whole model into memory.
    pub(crate) fn load(self) -> Result<Model, CliError> {
        Ok(pollster::block_on(self.open()?.read())?)
    }

    /// Files whose own name says nothing, as that of a revision.
    fn called(mut self, model: &str) -> Self {
        if let Self::Files { name, .. } = &mut self {
            model.clone_into(name);
        }
        self
    }

    fn files(path: &Path, options: Options) -> Result<Self, Error> {
        let (folder, source) = locate(path).map_err(|error| match error {
            Error::NoModel { path, found, .. } => {
                Error::NoModel { path, expected: EXPECTED, found }
            }
            other => other,
        })?;
        let whole = path.canonicalize().unwrap_or_else(|_| path.into());
        let name = whole.file_name().unwrap_or(whole.as_os_str()).to_string_lossy().into_owned();
        Ok(Self::Files { name, source, options, files: Box::new(ModelFolder::new(folder)) })
    }
}

/// The store that the environment names.
pub(crate) fn store() -> ModelStore {
    ModelStore::open(StoreSettings::from_env())
}

/// The path of a name in the store; `None` for a path, which comes first.
fn named(model: &str) -> Result<Option<PathBuf>, Error> {
    if Path::new(model).exists() {
        return Ok(None);
    }
    match store().resolve(model) {
        Ok(path) => Ok(Some(path)),
        // It was meant as a path: what is there instead says more.
        Err(hub::Error::NotFound { .. } | hub::Error::InvalidName { .. }) => Ok(None),
        Err(error) => Err(error.into()),
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
        want: &'a ReadRequest,
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

    fn prefetch(&mut self, bytes: usize) {
        if let ModelSource::Files { files, .. } = &mut self.source {
            files.prefetch(bytes);
        }
    }

    fn rewind(&mut self) {
        self.loaded = 0;
    }
}

pub(crate) fn percent(part: u64, whole: u64) -> u64 {
    100 * part.min(whole) / whole.max(1)
}
