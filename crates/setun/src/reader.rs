//! Reader of a model: its header at once, then its weights one by one.

use std::collections::VecDeque;
#[cfg(not(target_family = "wasm"))]
use std::path::Path;

use futures::future::{FutureExt, LocalBoxFuture};
#[cfg(not(target_family = "wasm"))]
use setun_checkpoint::Options;
use setun_checkpoint::{ModelConfig, ReadRequest, Warning};
use setun_ops::{WeightData, WeightId};
use web_time::Instant;

use crate::{error::Error, header::ModelHeader, loader::Loader, model::Model, source::ModelSource};

/// A model of which all but the weights has been read and checked. An
/// [`Engine`](crate::Engine::builder) made of it moves each weight to its device as it is read,
/// so that a GPU's are never together in host memory.
pub struct ModelReader {
    pub(crate) header: ModelHeader,
    pub(crate) weights: WeightReader,
}

impl ModelReader {
    /// Reads all but the weights.
    ///
    /// # Errors
    ///
    /// If there is no model, or it is damaged or of a kind that cannot be run.
    pub async fn new(source: ModelSource) -> Result<Self, Error> {
        let weights = WeightReader::open(source, Loader::is_settled).await?;
        Ok(Self { header: weights.loader.header()?, weights })
    }

    /// As [`Model::open`], but for the weights.
    ///
    /// # Errors
    ///
    /// As [`Model::open`].
    #[cfg(not(target_family = "wasm"))]
    pub fn open(model: impl AsRef<Path>) -> Result<Self, Error> {
        pollster::block_on(Self::new(ModelSource::open(model)?))
    }

    /// The story model that comes with this crate.
    ///
    /// # Errors
    ///
    /// None that a user can cause.
    #[cfg(all(feature = "embedded-model", not(target_family = "wasm")))]
    pub fn embedded() -> Result<Self, Error> {
        pollster::block_on(Self::new(ModelSource::embedded()))
    }

    /// Reads the weights into host memory.
    ///
    /// # Errors
    ///
    /// If a file is missing or damaged.
    pub async fn read(self) -> Result<Model, Error> {
        let Self { header, mut weights } = self;
        let read = weights.read_all().await;
        weights.close().await;
        read?;
        let WeightReader { loader, source, begun, .. } = weights;
        Model::from_loader(header, loader, Some(source), begun)
    }

    /// All that is known without the weights.
    #[must_use]
    pub fn header(&self) -> &ModelHeader {
        &self.header
    }

    /// Bytes of all tensors that are to be read.
    #[must_use]
    pub fn total_bytes(&self) -> u64 {
        self.header.total_bytes
    }

    /// What was mended or guessed in what has been read, as a user should know.
    #[must_use]
    pub fn warnings(&self) -> &[Warning] {
        self.weights.loader.warnings()
    }

    /// The configuration.
    #[must_use]
    pub fn config(&self) -> &ModelConfig {
        &self.header.config
    }

    /// The name it is reported by.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.header.name
    }
}

impl ModelHeader {
    /// Reads headers and configuration alone, which is enough for an
    /// [`estimate`](Self::estimate).
    ///
    /// # Errors
    ///
    /// As [`ModelReader::new`].
    pub async fn read(source: ModelSource) -> Result<Self, Error> {
        let weights = WeightReader::open(source, Loader::has_headers).await?;
        weights.close().await;
        weights.loader.header()
    }
}

impl Model {
    /// Opens a folder in Hugging Face's layout, a `.safetensors`, `.gguf`, `.onnx` or `.setun` file,
    /// or with the feature `hub` a pulled model by its name ([`find_model`](crate::find_model)).
    ///
    /// # Errors
    ///
    /// If there is no model, or it is damaged or of a kind that cannot be run.
    #[cfg(not(target_family = "wasm"))]
    pub fn open(model: impl AsRef<Path>) -> Result<Self, Error> {
        Self::open_with(model, Options::default())
    }

    /// The same with what the files do not say of themselves.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    #[cfg(not(target_family = "wasm"))]
    pub fn open_with(model: impl AsRef<Path>, options: Options) -> Result<Self, Error> {
        let source = ModelSource::open(model)?.with_options(options);
        pollster::block_on(async { ModelReader::new(source).await?.read().await })
    }
}

/// Reads weights from a source, from the header's end on.
pub(crate) struct WeightReader {
    loader: Loader,
    pub(crate) source: ModelSource,
    buffer: Vec<u8>,
    ready: VecDeque<(WeightId, WeightData)>,
    pub(crate) begun: Instant,
}

impl WeightReader {
    /// Reads a source from its beginning until it is enough. Boxed: every caller would have its own
    /// copy of the code.
    fn open(
        source: ModelSource,
        is_enough: fn(&Loader) -> bool,
    ) -> LocalBoxFuture<'static, Result<Self, Error>> {
        let opening = async move {
            source.bytes().await.rewind();
            let ModelSource { layout, options, name, .. } = source.clone();
            let loader = Loader::new(layout, options, name);
            let (buffer, ready, begun) = (vec![], VecDeque::new(), Instant::now());
            let mut reader = Self { loader, source, buffer, ready, begun };
            while !is_enough(&reader.loader) {
                match reader.read_more().await {
                    Ok(true) => {}
                    Ok(false) => break,
                    Err(error) => {
                        reader.close().await;
                        return Err(error);
                    }
                }
            }
            if let Err(error) = reader.check_sizes().await {
                reader.close().await;
                return Err(error);
            }
            Ok(reader)
        };
        opening.boxed_local()
    }

    async fn check_sizes(&self) -> Result<(), Error> {
        let mut bytes = self.source.bytes().await;
        self.loader.check_sizes(|file| bytes.file_bytes(file))
    }

    /// The next weight that is whole; none once all were given. The source is closed at the end,
    /// and after an error.
    pub(crate) async fn next(&mut self) -> Result<Option<(WeightId, WeightData)>, Error> {
        while self.ready.is_empty() {
            self.ready.extend(self.loader.take_ready());
            if self.ready.is_empty() && !self.read_or_close().await? {
                self.loader.check_taken()?;
                self.buffer = vec![]; // before the device makes what it keeps beside the weights
                return Ok(None);
            }
        }
        Ok(self.ready.pop_front())
    }

    /// A text that changes when a file of the weights is written or replaced; none where that is
    /// not known.
    #[cfg(not(target_family = "wasm"))]
    pub(crate) async fn file_versions(&self) -> Option<String> {
        let mut bytes = self.source.bytes().await;
        let line = |file: String| Some(format!("{file}: {}\n", bytes.file_version(&file)?));
        self.loader.files().into_iter().map(line).collect()
    }

    /// Begins again: all weights are to be read once more.
    pub(crate) async fn rewind(&mut self) -> Result<(), Error> {
        let (source, begun) = (self.source.clone(), self.begun);
        // What has been read is free before more is.
        (self.buffer, self.ready) = (vec![], VecDeque::new());
        *self = Self { begun, ..Self::open(source, Loader::is_settled).await? };
        Ok(())
    }

    async fn read_all(&mut self) -> Result<(), Error> {
        while self.read_more().await? {}
        Ok(())
    }

    async fn read_or_close(&mut self) -> Result<bool, Error> {
        let more = self.read_more().await;
        if !matches!(more, Ok(true)) {
            self.close().await;
        }
        more
    }

    /// Gives the loader what it wants next; false where it has all.
    async fn read_more(&mut self) -> Result<bool, Error> {
        let Some(want) = self.loader.next_read() else { return Ok(false) };
        let found = self.source.bytes().await.read(&want, &mut self.buffer).await?;
        self.loader.give(found.then_some(self.buffer.as_slice()))?;
        self.check_end(want).await?;
        Ok(true)
    }

    /// Refuses a file that goes on where its format ends. Where no sizes are known, as in a browser,
    /// the byte behind the last one is requested once that has come.
    async fn check_end(&mut self, want: ReadRequest) -> Result<(), Error> {
        let end = want.range.as_ref().map(|range| range.end);
        let Some(end) = end.filter(|end| self.loader.file_size(&want.file) == Some(*end)) else {
            return Ok(());
        };
        let mut bytes = self.source.bytes().await;
        if bytes.file_bytes(&want.file).is_some() {
            return Ok(()); // compared with the headers
        }
        let beyond = Some(end..end.saturating_add(1));
        let beyond = ReadRequest { range: beyond, required: false, ..want };
        let is_there = bytes.read(&beyond, &mut self.buffer).await?;
        let more = if is_there { self.buffer.len() as u64 } else { 0 };
        self.loader.check_sizes(|file| (file == beyond.file).then_some(end.saturating_add(more)))
    }

    pub(crate) async fn close(&self) {
        self.source.bytes().await.close();
    }
}
