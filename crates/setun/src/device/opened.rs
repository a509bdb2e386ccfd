//! A device that takes a model's weights and becomes the model.

use std::time::Duration;

use futures::future::LocalBoxFuture;
use setun_engine::{DeviceReport, HeadType};
#[cfg(not(target_family = "wasm"))]
use setun_model::split::AnyStageBuilder;
use setun_model::{
    LayerRange, MaybeSend, MaybeSendBackend, Model as Forward, ModelError, StageBuilder,
    Transformer, TransformerOptions,
};
#[cfg(not(target_family = "wasm"))]
use setun_ops::image::MappedWeight;
use setun_ops::{Backend, OpsError, WeightData, WeightId, dense::DenseValues};

use super::{Device, DeviceKind, placement::Placement};
#[cfg(not(target_family = "wasm"))]
use crate::weight_image::NewImage;
use crate::{error::Error, header::ModelHeader};

/// A model on its device.
pub struct LoadedModel {
    /// Logits for batches.
    pub model: Box<dyn Forward>,
    /// The device that runs, by its name even where it was chosen.
    pub device: Device,
    /// What it is.
    pub backend: DeviceKind,
    /// Its level, or its own name.
    pub level: String,
    /// Threads that run.
    pub threads: usize,
    /// How the head is kept: what [`HeadType::Auto`] came to.
    pub head: HeadType,
    /// Bytes of the weights, as they are kept.
    pub weight_bytes: usize,
    /// Why this device runs.
    pub report: DeviceReport,
}

/// A device that takes weights.
pub(crate) struct OpenedDevice {
    /// By its name.
    pub(super) device: Device,
    pub(super) backend: DeviceKind,
    pub(crate) level: String,
    pub(super) threads: usize,
    /// How the head is kept.
    pub(crate) head: HeadType,
    /// What a layer of the model took for one token, where that was measured.
    #[cfg_attr(not(feature = "gpu"), expect(dead_code, reason = "nothing is compared"))]
    pub(super) layer_time: Option<Duration>,
    pub(crate) report: DeviceReport,
    pub(super) receiver: Receiver,
    /// Ready once all that was queued is done; none where a refusal is known at once.
    pub(super) settled: Option<Settled>,
}

/// Whether a device has done all that was queued.
pub(super) type Settled = Box<dyn FnOnce() -> LocalBoxFuture<'static, Result<(), OpsError>>>;

impl OpenedDevice {
    /// Takes a weight; they come in any order.
    pub(crate) fn take(&mut self, id: WeightId, weight: WeightData) -> Result<(), Error> {
        match &mut self.receiver {
            Receiver::Model(receiver) => receiver.take(id, weight),
            #[cfg(not(target_family = "wasm"))]
            Receiver::Stage(_) => Err(self.incomplete()),
        }
    }

    /// Whether it can take weights from an image, and give them to one.
    #[cfg(not(target_family = "wasm"))]
    pub(crate) fn takes_images(&self) -> bool {
        matches!(&self.receiver, Receiver::Model(receiver) if receiver.takes_images())
    }

    /// Takes a weight from an image.
    #[cfg(not(target_family = "wasm"))]
    pub(crate) fn adopt(&mut self, id: WeightId, weight: MappedWeight) -> Result<(), Error> {
        match &mut self.receiver {
            Receiver::Model(receiver) => receiver.adopt(id, weight),
            Receiver::Stage(_) => Err(self.incomplete()),
        }
    }

    /// Has an image written of all weights, once they were taken.
    #[cfg(not(target_family = "wasm"))]
    pub(crate) fn write_image(&mut self, image: NewImage) {
        if let Receiver::Model(receiver) = &mut self.receiver {
            receiver.write_image(image);
        }
    }

    /// The model, once all weights were taken.
    pub(crate) async fn finish(self) -> Result<LoadedModel, Error> {
        #[cfg(not(target_family = "wasm"))]
        let incomplete = self.incomplete();
        let Self { device, backend, level, threads, head, report, receiver, settled, .. } = self;
        let (model, weight_bytes) = match receiver {
            Receiver::Model(receiver) => receiver.finish()?,
            #[cfg(not(target_family = "wasm"))]
            Receiver::Stage(_) => return Err(incomplete),
        };
        if let Some(settled) = settled {
            settled().await.map_err(ModelError::from)?;
        }
        Ok(LoadedModel { model, device, backend, level, threads, head, weight_bytes, report })
    }

    /// Some of the layers alone are no model.
    #[cfg(not(target_family = "wasm"))]
    fn incomplete(&self) -> Error {
        Error::Unfinished { model: self.level.clone() }
    }
}

/// What takes the weights.
pub(super) enum Receiver {
    /// Those of all layers.
    Model(Box<dyn ReceiveWeights>),
    /// Those of some.
    #[cfg(not(target_family = "wasm"))]
    Stage(AnyStageBuilder),
}

impl Receiver {
    /// `ranked` has the same meaning as in [`TransformerOptions`].
    pub(super) fn new<B>(
        backend: B,
        header: &ModelHeader,
        placement: &Placement,
        ranked: bool,
    ) -> Result<Self, Error>
    where
        B: MaybeSendBackend + 'static,
    {
        let cache_element = placement.options.cache.into();
        let options = TransformerOptions { cache_element, ranked, ..<_>::default() };
        let (config, layout) = (header.config.clone(), &header.layout);
        #[cfg(not(target_family = "wasm"))]
        if let Some(part) = placement.part {
            let stage = StageBuilder::new(backend, config, layout, part, options)?;
            return Ok(Self::Stage(stage.into()));
        }
        let whole = LayerRange::whole(config.layers.len());
        Ok(Self::Model(Box::new(ModelReceiver {
            int8_head: placement.int8_head(header),
            #[cfg(not(target_family = "wasm"))]
            image: None,
            builder: StageBuilder::new(backend, config, layout, whole, options)?,
        })))
    }
}

/// Takes the weights of a model in any order.
pub(super) trait ReceiveWeights: MaybeSend {
    fn take(&mut self, id: WeightId, weight: WeightData) -> Result<(), Error>;

    #[cfg(not(target_family = "wasm"))]
    fn takes_images(&self) -> bool {
        false
    }

    #[cfg(not(target_family = "wasm"))]
    fn adopt(&mut self, _id: WeightId, _weight: MappedWeight) -> Result<(), Error> {
        Err(ModelError::from(OpsError::NoImages).into())
    }

    #[cfg(not(target_family = "wasm"))]
    fn write_image(&mut self, _image: NewImage) {}

    fn finish(self: Box<Self>) -> Result<Finished, Error>;
}

/// A model on its device, and the bytes of its weights.
pub(super) type Finished = (Box<dyn Forward>, usize);

/// A [`ReceiveWeights`] over any backend.
struct ModelReceiver<B: Backend> {
    builder: StageBuilder<B>,
    int8_head: Option<WeightId>,
    #[cfg(not(target_family = "wasm"))]
    image: Option<NewImage>,
}

impl<B> ReceiveWeights for ModelReceiver<B>
where
    B: MaybeSendBackend + 'static,
{
    fn take(&mut self, id: WeightId, weight: WeightData) -> Result<(), Error> {
        Ok(self.builder.add(id, as_kept(id, weight, self.int8_head)?)?)
    }

    #[cfg(not(target_family = "wasm"))]
    fn takes_images(&self) -> bool {
        B::HAS_IMAGES
    }

    #[cfg(not(target_family = "wasm"))]
    fn adopt(&mut self, id: WeightId, weight: MappedWeight) -> Result<(), Error> {
        Ok(self.builder.adopt(id, weight)?)
    }

    #[cfg(not(target_family = "wasm"))]
    fn write_image(&mut self, image: NewImage) {
        self.image = Some(image);
    }

    fn finish(self: Box<Self>) -> Result<Finished, Error> {
        let stage = self.builder.finish()?;
        #[cfg(not(target_family = "wasm"))]
        if let Some(image) = self.image
            && let Some(weights) = stage.images()
        {
            image.write(&weights)?;
        }
        let model = Transformer::from(stage);
        let bytes = model.memory().weights();
        Ok((Box::new(model), bytes))
    }
}

/// A weight as it is kept: the table of an int8 head is rounded. A tied embedding becomes the
/// same table.
pub(super) fn as_kept(
    id: WeightId,
    weight: WeightData,
    int8_head: Option<WeightId>,
) -> Result<WeightData, Error> {
    Ok(match weight {
        WeightData::Dense(table)
            if int8_head == Some(id) && !matches!(table.values(), DenseValues::Int8Rows { .. }) =>
        {
            WeightData::Dense(table.to_int8_rows().map_err(ModelError::from)?)
        }
        weight => weight,
    })
}
