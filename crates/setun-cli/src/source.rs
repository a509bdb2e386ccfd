//! Sources of a model's bytes: files, the embedded model, or random weights.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use futures::future::{FutureExt, LocalBoxFuture, ready};
use setun::{
    Error, FoundModel, Model, ModelBytes, ModelFolder, ModelHeader, ModelReader, ModelSource,
    ReadRequest, Source,
    checkpoint::{Options, container::EXTENSION, files::WEIGHTS},
    hub::{FileCheck, ModelStore, PullOptions, StoreSettings},
    locate,
};

use crate::{
    destination::Identity,
    error::CliError,
    offer::find_or_pull,
    output::{Progress, report},
    synth::Synthetic,
};

/// Refuses options of a GGUF file for a model that is none.
pub(crate) fn no_gguf_file(options: Options, model: &str) -> CliError {
    let is_split = options.pretokenizer.is_some();
    let option = if is_split { "--pre" } else { "--i2s-interleave" };
    CliError::Usage(format!("{option}: `{model}` is no GGUF file"))
}

/// Files of a model, with what a reader has to know of them.
pub(crate) struct ModelFiles {
    name: String,
    layout: Source,
    options: Options,
    bytes: Box<dyn ModelBytes>,
    /// Where the files are, if on this machine.
    folder: Option<PathBuf>,
    /// Names of those that have been read.
    read: BTreeSet<String>,
    newly_read: Vec<PathBuf>,
    /// Hears how many bytes of how many have been read.
    reported: Option<Report>,
}

/// See [`ModelFiles::reporting`].
type Report = Box<dyn FnMut(u64, u64) + Send>;

impl ModelFiles {
    /// What `--model` names; the embedded model without it. The options are those of its files,
    /// which must be such that have them.
    pub(crate) fn find(model: Option<&str>, options: Options) -> Result<Self, CliError> {
        let found = Self::find_any(model, options)?;
        let is_gguf = |name: &String| Path::new(name).extension().is_some_and(|end| end == "gguf");
        let is_gguf = matches!(&found.layout, Source::File(name) if is_gguf(name));
        if options != Options::default() && !is_gguf {
            return Err(no_gguf_file(options, &found.name));
        }
        Ok(found)
    }

    /// The same of files that may lack what the options say.
    pub(crate) fn find_any(model: Option<&str>, options: Options) -> Result<Self, CliError> {
        let Some(model) = model else {
            #[cfg(feature = "embedded-model")]
            return Ok(Self::embedded());
            #[cfg(not(feature = "embedded-model"))]
            return Err(CliError::from(Error::NoModel {
                path: setun::EMBEDDED_NAME.into(),
                expected: "--model",
                found: "none, and this program was built without an embedded model".into(),
            }));
        };
        let FoundModel { path, name, .. } = find_or_pull(model)?;
        Self::at(&path, name, options)
    }

    /// The folder of a model whose weights need not be there: a path, or the name of a pulled model.
    pub(crate) fn without_weights(model: &str) -> Result<Self, CliError> {
        let FoundModel { path: folder, name, .. } = find_or_pull(model)?;
        if !folder.is_dir() {
            let reason = format!("`{model}` is no model in a folder with config.json");
            return Err(CliError::Usage(reason));
        }
        let bytes = Box::new(ModelFolder::new(&folder));
        let files = Self::new(name, Source::Folder, Options::default(), bytes);
        Ok(Self { folder: Some(folder), ..files })
    }

    /// What is at a path, to be reported by a name.
    pub(crate) fn at(path: &Path, name: String, options: Options) -> Result<Self, CliError> {
        let (folder, layout) = locate(path)?;
        let bytes = Box::new(ModelFolder::new(&folder));
        Ok(Self { folder: Some(folder), ..Self::new(name, layout, options, bytes) })
    }

    fn new(name: String, layout: Source, options: Options, bytes: Box<dyn ModelBytes>) -> Self {
        let (folder, read, newly_read, reported) = (None, BTreeSet::new(), vec![], None);
        Self { name, layout, options, bytes, folder, read, newly_read, reported }
    }

    /// The file of a model that is in one, on this machine.
    pub(crate) fn file(&self) -> Option<PathBuf> {
        match &self.layout {
            Source::File(name) => Some(self.folder.as_ref()?.join(name)),
            _ => None,
        }
    }

    /// A random model.
    pub(crate) fn synthetic(model: Synthetic) -> Self {
        let (name, options) = (model.name().to_owned(), Options::default());
        Self::new(name, Source::Folder, options, Box::new(model))
    }

    #[cfg(feature = "embedded-model")]
    fn embedded() -> Self {
        let (name, options) = (setun::EMBEDDED_NAME.to_owned(), Options::default());
        Self::new(name.clone(), Source::File(name), options, Box::new(Embedded))
    }

    /// The same, which reports how many bytes of how many have been read.
    #[cfg(feature = "serve")]
    pub(crate) fn reporting(self, report: impl FnMut(u64, u64) + Send + 'static) -> Self {
        Self { reported: Some(Box::new(report)), ..self }
    }

    /// Name to report the model by.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// How a reader is to go about it.
    pub(crate) fn layout(&self) -> Source {
        self.layout.clone()
    }

    /// What its files do not say of themselves.
    pub(crate) fn options(&self) -> Options {
        self.options
    }

    /// Reads the requested range into `bytes`; false where there is no such file.
    pub(crate) fn read(&mut self, want: &ReadRequest, bytes: &mut Vec<u8>) -> Result<bool, Error> {
        let found = pollster::block_on(self.bytes.read(want, bytes))?;
        if let Some(folder) = &self.folder
            && found
            && !self.read.contains(&want.file)
        {
            self.read.insert(want.file.clone());
            self.newly_read.push(folder.join(&want.file));
        }
        Ok(found)
    }

    /// Size of a file, where it is known.
    pub(crate) fn file_bytes(&mut self, file: &str) -> Option<u64> {
        self.bytes.file_bytes(file)
    }

    /// Files that were read for the first time since the last call.
    pub(crate) fn newly_read(&mut self) -> Vec<PathBuf> {
        std::mem::take(&mut self.newly_read)
    }

    /// Refuses a path where the model is: its file, or its folder.
    pub(crate) fn check_is_not(&self, destination: &Path) -> Result<(), CliError> {
        let Some(folder) = &self.folder else { return Ok(()) };
        let place = match &self.layout {
            Source::File(file) | Source::Tensors(file) => folder.join(file),
            Source::Folder if folder.as_os_str().is_empty() => PathBuf::from("."),
            Source::Folder => folder.clone(),
        };
        let found = Identity::of(destination);
        if found.is_some() && found == Identity::of(&place) {
            return Err(CliError::IsSource { path: destination.to_owned() });
        }
        Ok(())
    }

    /// Reads all but the weights. They show their progress on a terminal when they are read.
    pub(crate) fn open(self) -> Result<ModelReader, CliError> {
        let total = Arc::new(AtomicU64::new(0));
        let reader = pollster::block_on(ModelReader::new(self.reading(&total)))?;
        total.store(reader.total_bytes(), Ordering::Relaxed);
        for warning in reader.warnings() {
            report(&format!("setun: {warning}\n"));
        }
        Ok(reader)
    }

    /// Reads headers and configuration alone.
    pub(crate) fn header(self) -> Result<ModelHeader, CliError> {
        Ok(pollster::block_on(ModelHeader::read(self.reading(&Arc::default())))?)
    }

    /// Its bytes, which show how much of `total` has been read.
    fn reading(self, total: &Arc<AtomicU64>) -> ModelSource {
        let Self { name, layout, options, bytes, reported, .. } = self;
        let (total, progress) = (Arc::clone(total), Progress::new());
        let reading = Reading { name: name.clone(), bytes, total, loaded: 0, progress, reported };
        ModelSource::new(layout, name, reading).with_options(options)
    }

    /// Reads the whole model into memory.
    pub(crate) fn load(self) -> Result<Model, CliError> {
        Ok(pollster::block_on(self.open()?.read())?)
    }
}

/// The store that the environment names.
pub(crate) fn store() -> ModelStore {
    ModelStore::open(StoreSettings::from_env())
}

/// Compares the files of a pulled model with their hashes.
pub(crate) fn verify_stored(model: &str) -> Result<(), CliError> {
    if Path::new(model).exists() {
        let is_container = model.ends_with(EXTENSION);
        return if is_container {
            // The hashes of its chunks are checked as they are read, those of an image are not.
            Ok(setun::check_weight_image(model)?)
        } else {
            Err(CliError::Usage(format!("--verify: `{model}` was not pulled, so it has no hashes")))
        };
    }
    let checks = store().get(model)?.verify(&PullOptions::default(), |_| ())?;
    let bad = checks.into_iter().filter(|check| !check.good);
    let what: Vec<_> = bad
        .map(|FileCheck { file, problem, .. }| {
            format!("{file} of {model} ({})", problem.unwrap_or_default())
        })
        .collect();
    if what.is_empty() { Ok(()) } else { Err(CliError::Damaged { what }) }
}

/// The model inside this program.
#[cfg(feature = "embedded-model")]
struct Embedded;

#[cfg(feature = "embedded-model")]
impl ModelBytes for Embedded {
    fn read<'a>(
        &'a mut self,
        want: &'a ReadRequest,
        bytes: &'a mut Vec<u8>,
    ) -> LocalBoxFuture<'a, Result<bool, Error>> {
        let end = setun::EMBEDDED_MODEL.len();
        let at = |offset| usize::try_from(offset).unwrap_or(end).min(end);
        let range = want.range.clone().unwrap_or(0..u64::MAX);
        bytes.clear();
        bytes.extend_from_slice(&setun::EMBEDDED_MODEL[at(range.start)..at(range.end)]);
        ready(Ok(true)).boxed_local()
    }
}

impl ModelBytes for Synthetic {
    fn read<'a>(
        &'a mut self,
        want: &'a ReadRequest,
        bytes: &'a mut Vec<u8>,
    ) -> LocalBoxFuture<'a, Result<bool, Error>> {
        bytes.clear();
        match self.files().get(&want.file) {
            Some(file) => bytes.extend_from_slice(file),
            None if want.file == WEIGHTS => {
                self.read_weights(want.range.clone().unwrap_or(0..u64::MAX), bytes);
            }
            None => return ready(Ok(false)).boxed_local(),
        }
        ready(Ok(true)).boxed_local()
    }
}

/// Files that show on a terminal how much of them has been read.
struct Reading {
    name: String,
    bytes: Box<dyn ModelBytes>,
    /// Bytes of all tensors; zero until that is known.
    total: Arc<AtomicU64>,
    loaded: u64,
    progress: Progress,
    reported: Option<Report>,
}

impl ModelBytes for Reading {
    fn read<'a>(
        &'a mut self,
        want: &'a ReadRequest,
        bytes: &'a mut Vec<u8>,
    ) -> LocalBoxFuture<'a, Result<bool, Error>> {
        let found = pollster::block_on(self.bytes.read(want, bytes));
        let total = self.total.load(Ordering::Relaxed);
        if total > 0 {
            self.loaded += bytes.len() as u64;
            let (name, share) = (&self.name, percent(self.loaded, total));
            self.progress.show(|| format!("loading {name}: {share} %"));
            self.reported.iter_mut().for_each(|report| report(self.loaded, total));
        }
        ready(found).boxed_local()
    }

    fn file_bytes(&mut self, file: &str) -> Option<u64> {
        self.bytes.file_bytes(file)
    }

    fn file_version(&mut self, file: &str) -> Option<String> {
        self.bytes.file_version(file)
    }

    fn prefetch(&mut self, bytes: usize) {
        self.bytes.prefetch(bytes);
    }

    fn rewind(&mut self) {
        self.loaded = 0;
    }
}

pub(crate) fn percent(part: u64, whole: u64) -> u64 {
    100 * part.min(whole) / whole.max(1)
}
