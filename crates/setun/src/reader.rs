//! A model whose weights are still to be read.

#[cfg(not(target_family = "wasm"))]
use std::path::Path;

use futures::future::{FutureExt, LocalBoxFuture};
use setun_checkpoint::{ModelConfig, Options, Source, Warning};
use setun_model::Layout;
use setun_ops::{
    WeightData, WeightId,
    weight::{DenseKind, WeightKind},
};

#[cfg(feature = "embedded-model")]
use crate::bytes::Embedded;
use crate::{
    bytes::{ModelBytes, Origin},
    device::{DeviceOptions, DeviceReport, HeadType, MemoryEstimate, estimate, probe},
    error::Error,
    load::{About, Loader},
    model::Model,
};

/// A model of which all but the weights has been read and checked. An
/// [`Engine`](crate::Engine::builder) made of it moves each weight to its device as it is read,
/// so that a GPU's are never together in host memory.
pub struct ModelReader {
    loader: Loader,
    pub(crate) about: About,
    origin: Origin,
    buffer: Vec<u8>,
}

/// What is known of a model before its weights are there.
#[derive(Clone, Debug)]
pub(crate) struct Sketch {
    pub(crate) config: ModelConfig,
    pub(crate) layout: Layout,
    /// Of each weight.
    pub(crate) kinds: Vec<WeightKind>,
}

impl Sketch {
    /// The same where the head is kept so: what is rounded at load has another kind.
    pub(crate) fn with_head(mut self, head: HeadType) -> Self {
        let kind = &mut self.kinds[self.layout.head.0 as usize];
        if head == HeadType::Int8 && matches!(kind, WeightKind::Dense(_)) {
            *kind = WeightKind::Dense(DenseKind::Int8Rows);
        }
        self
    }
}

impl ModelReader {
    /// Reads all but the weights. `name` is what the model is reported by.
    ///
    /// # Errors
    ///
    /// If there is no model, or it is damaged or of a kind that cannot be run.
    pub async fn new(
        source: Source,
        name: impl Into<String>,
        bytes: impl ModelBytes + 'static,
    ) -> Result<Self, Error> {
        Self::with_options(source, Options::default(), name, bytes).await
    }

    /// The same, told what a file does not say of itself.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub async fn with_options(
        source: Source,
        options: Options,
        name: impl Into<String>,
        bytes: impl ModelBytes + 'static,
    ) -> Result<Self, Error> {
        let mut origin = Origin::new(source, name.into(), bytes);
        origin.options = options;
        Self::over(origin).await
    }

    /// Reads headers and configuration alone, for an [`estimate`](Self::estimate). All else fails
    /// where only the data of the first layer tell how matrices are scaled.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub async fn peek(
        source: Source,
        name: impl Into<String>,
        bytes: impl ModelBytes + 'static,
    ) -> Result<Self, Error> {
        Self::until(Origin::new(source, name.into(), bytes), Loader::has_headers).await
    }

    /// As [`Model::open`], but for the weights.
    ///
    /// # Errors
    ///
    /// As [`Model::open`].
    #[cfg(not(target_family = "wasm"))]
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        pollster::block_on(Self::over(origin(path.as_ref())?))
    }

    /// The story model that comes with this crate.
    ///
    /// # Errors
    ///
    /// None that a user can cause.
    #[cfg(all(feature = "embedded-model", not(target_family = "wasm")))]
    pub fn embedded() -> Result<Self, Error> {
        pollster::block_on(Self::over(embedded_origin()))
    }

    /// Reads all but the weights, from the beginning.
    pub(crate) async fn over(origin: Origin) -> Result<Self, Error> {
        Self::until(origin, |loader| loader.weights().is_some()).await
    }

    /// Reads as much as is enough. Boxed: every caller would have its own copy of the code.
    fn until(
        origin: Origin,
        is_enough: fn(&Loader) -> bool,
    ) -> LocalBoxFuture<'static, Result<Self, Error>> {
        let reading = async move {
            origin.bytes().await.rewind();
            let reader = Self::begin(origin.clone(), is_enough).await;
            if reader.is_err() {
                origin.bytes().await.close();
            }
            reader
        };
        reading.boxed_local()
    }

    async fn begin(origin: Origin, is_enough: fn(&Loader) -> bool) -> Result<Self, Error> {
        let mut loader =
            Loader::with_options(origin.source.clone(), origin.options, origin.name.clone());
        let mut buffer = vec![];
        while !is_enough(&loader) && give(&mut loader, &origin, &mut buffer).await? {}
        let about = loader.about()?;
        Ok(Self { loader, about, origin, buffer })
    }

    /// Reads the weights into host memory.
    ///
    /// # Errors
    ///
    /// If a file is missing or damaged.
    pub async fn read(mut self) -> Result<Model, Error> {
        let read = self.read_all(|_| Ok(())).await;
        self.origin.bytes().await.close();
        read?;
        let mut model = self.loader.finish_with(self.about)?;
        model.origin = Some(self.origin);
        Ok(model)
    }

    /// Looks at the devices that the options name, and says which one would run and why.
    ///
    /// # Errors
    ///
    /// If a device that is named is not here, or there is no memory to test one.
    pub async fn probe(&self, options: DeviceOptions) -> Result<DeviceReport, Error> {
        probe(&self.sketch()?, options).await
    }

    /// What the model takes of a device's memory: that of the processor's best level, where the
    /// options leave it open. The device need not be here.
    ///
    /// # Errors
    ///
    /// If the headers were not there.
    pub fn estimate(&self, options: DeviceOptions) -> Result<MemoryEstimate, Error> {
        let (layout, kinds) = self.loader.outline().ok_or_else(|| self.unfinished())?;
        estimate(Sketch { config: self.about.config.clone(), layout, kinds }, options)
    }

    /// Bytes of all tensors that are to be read.
    #[must_use]
    pub fn total_bytes(&self) -> u64 {
        self.loader.total_bytes().unwrap_or(0)
    }

    /// What was mended or guessed in what has been read, as a user should know.
    #[must_use]
    pub fn warnings(&self) -> &[Warning] {
        self.loader.warnings()
    }

    /// The configuration.
    #[must_use]
    pub fn config(&self) -> &ModelConfig {
        &self.about.config
    }

    /// The name it is reported by.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.about.name
    }

    pub(crate) fn sketch(&self) -> Result<Sketch, Error> {
        let weights = self.loader.weights().ok_or_else(|| self.unfinished())?;
        let (layout, kinds) = (weights.layout().clone(), weights.kinds().to_vec());
        Ok(Sketch { config: self.about.config.clone(), layout, kinds })
    }

    /// Hands out each weight once it is whole, and forgets it.
    pub(crate) async fn stream(
        &mut self,
        mut take: impl FnMut(WeightId, WeightData) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let all = |loader: &mut Loader| {
            loader.take_ready().into_iter().try_for_each(|(id, weight)| take(id, weight))
        };
        let read = self.read_all(all).await;
        self.origin.bytes().await.close();
        self.about.load_seconds = self.loader.seconds();
        read?;
        self.loader.check_taken()
    }

    /// Reads to the end, and looks at the loader after each piece.
    async fn read_all(
        &mut self,
        mut look: impl FnMut(&mut Loader) -> Result<(), Error>,
    ) -> Result<(), Error> {
        look(&mut self.loader)?;
        while give(&mut self.loader, &self.origin, &mut self.buffer).await? {
            look(&mut self.loader)?;
        }
        Ok(())
    }

    /// Another of the same.
    pub(crate) async fn again(&self) -> Result<Self, Error> {
        Self::over(self.origin.clone()).await
    }

    /// Begins again: its weights are to be read once more.
    pub(crate) async fn rewind(&mut self) -> Result<(), Error> {
        *self = self.again().await?;
        Ok(())
    }

    pub(crate) fn origin(&self) -> &Origin {
        &self.origin
    }

    pub(crate) fn into_parts(self) -> (About, Origin) {
        (self.about, self.origin)
    }

    fn unfinished(&self) -> Error {
        Error::Unfinished { model: self.about.name.clone() }
    }
}

/// Gives a loader what it wants next; false where it has all.
async fn give(loader: &mut Loader, origin: &Origin, buffer: &mut Vec<u8>) -> Result<bool, Error> {
    let Some(want) = loader.next_read() else { return Ok(false) };
    let found = origin.bytes().await.read(&want, buffer).await?;
    loader.give(found.then_some(buffer.as_slice()))?;
    Ok(true)
}

/// The files at a path.
#[cfg(not(target_family = "wasm"))]
fn origin(path: &Path) -> Result<Origin, Error> {
    let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    let (folder, source) = crate::locate::locate(path)?;
    Ok(Origin::new(source, name, crate::files::Files::new(folder)))
}

#[cfg(feature = "embedded-model")]
pub(crate) fn embedded_origin() -> Origin {
    let name = crate::EMBEDDED_NAME.to_owned();
    Origin::new(Source::File(name.clone()), name, Embedded(crate::EMBEDDED_MODEL))
}
