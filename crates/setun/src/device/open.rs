//! A device that is ready to take a model's weights.

use std::time::Duration;

use futures::future::LocalBoxFuture;
use setun_model::{
    MaybeSend, Model as Forward, ModelError, Transformer, TransformerBuilder, TransformerOptions,
};
#[cfg(not(target_family = "wasm"))]
use setun_model::{StageBuilder, split::AnyStageBuilder};
use setun_ops::{Backend, OpsError, WeightData, WeightId, dense::DenseValues};

use super::{Device, HeadType, load::Place};
use crate::{error::Error, reader::Sketch};

/// A device that takes weights and becomes a model.
pub(super) struct Opened {
    /// By its name.
    pub(super) device: Device,
    pub(super) backend: &'static str,
    pub(super) level: String,
    pub(super) threads: usize,
    /// How the head is kept.
    pub(super) head: HeadType,
    /// What a layer of the model took for one token, where that was measured.
    #[cfg_attr(not(feature = "gpu"), expect(dead_code, reason = "nothing is compared"))]
    pub(super) layer: Option<Duration>,
    pub(super) taker: Taker,
    /// Ready once all that was queued is done; none where a refusal is told at once.
    pub(super) settled: Option<Settled>,
}

/// Whether a device has done all that was queued.
pub(super) type Settled = Box<dyn FnOnce() -> LocalBoxFuture<'static, Result<(), OpsError>>>;

/// What takes the weights.
pub(super) enum Taker {
    /// Those of all layers.
    Model(Box<dyn Receive>),
    /// Those of some.
    #[cfg(not(target_family = "wasm"))]
    Stage(AnyStageBuilder),
}

impl Taker {
    /// `ranked` has the same meaning as in [`TransformerOptions`].
    pub(super) fn new<B>(
        backend: B,
        sketch: &Sketch,
        place: &Place,
        ranked: bool,
    ) -> Result<Self, Error>
    where
        B: Backend + MaybeSend + 'static,
        B::Weight: MaybeSend,
        B::Prepared: MaybeSend,
        B::Cache: MaybeSend,
    {
        let cache_element = place.options.cache.into();
        let options = TransformerOptions { cache_element, ranked, ..<_>::default() };
        let Sketch { config, layout, .. } = sketch.clone();
        #[cfg(not(target_family = "wasm"))]
        if let Some(part) = place.part {
            let stage = StageBuilder::new(backend, config, &layout, part, options)?;
            return Ok(Self::Stage(stage.into()));
        }
        Ok(Self::Model(Box::new(Receiver {
            int8_head: place.int8_head(sketch),
            builder: TransformerBuilder::new(backend, config, layout, options)?,
        })))
    }

    /// What takes those of all layers.
    pub(super) fn model(self) -> Option<Box<dyn Receive>> {
        match self {
            Self::Model(receiver) => Some(receiver),
            #[cfg(not(target_family = "wasm"))]
            Self::Stage(_) => None,
        }
    }
}

/// Takes weights in any order.
pub(super) trait Receive: MaybeSend {
    fn take(&mut self, id: WeightId, weight: WeightData) -> Result<(), Error>;
    fn finish(self: Box<Self>) -> Result<Finished, Error>;
}

/// A model on its device, and the bytes of its weights.
pub(super) type Finished = (Box<dyn Forward>, usize);

/// A [`Receive`] over any backend.
struct Receiver<B: Backend> {
    builder: TransformerBuilder<B>,
    int8_head: Option<WeightId>,
}

impl<B> Receive for Receiver<B>
where
    B: Backend + MaybeSend + 'static,
    TransformerBuilder<B>: MaybeSend,
    Transformer<B>: Forward,
{
    fn take(&mut self, id: WeightId, weight: WeightData) -> Result<(), Error> {
        Ok(self.builder.add(id, as_kept(id, weight, self.int8_head)?)?)
    }

    fn finish(self: Box<Self>) -> Result<Finished, Error> {
        let model = self.builder.finish()?;
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
