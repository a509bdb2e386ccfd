//! A device that is ready to take a model's weights.

use std::time::Duration;

use futures::future::LocalBoxFuture;
use setun_model::{
    MaybeSend, Model as Forward, Transformer, TransformerBuilder, TransformerOptions,
};
use setun_ops::{Backend, DenseMatrix, OpsError, WeightData, WeightId, dense::DenseValues};

use super::{HeadType, load::Place};
use crate::{error::Error, reader::Sketch};

/// A device that takes weights and becomes a model.
pub(super) struct Opened {
    pub(super) backend: &'static str,
    pub(super) level: String,
    pub(super) threads: usize,
    /// What a layer of the model took for one token, where that was measured.
    pub(super) layer: Option<Duration>,
    pub(super) receiver: Box<dyn Receive>,
    /// Ready once all that was queued is done; none where a refusal is told at once.
    pub(super) settled: Option<Settled>,
}

/// Whether a device has done all that was queued.
pub(super) type Settled = Box<dyn FnOnce() -> LocalBoxFuture<'static, Result<(), OpsError>>>;

/// Takes weights in any order.
pub(super) trait Receive: MaybeSend {
    fn take(&mut self, id: WeightId, weight: WeightData) -> Result<(), Error>;
    fn finish(self: Box<Self>) -> Result<Finished, Error>;
}

/// A model on its device, and the bytes of its weights.
pub(super) type Finished = (Box<dyn Forward>, usize);

/// A [`Receive`] over any backend.
pub(super) struct Receiver<B: Backend> {
    builder: TransformerBuilder<B>,
    int8_head: Option<WeightId>,
}

impl<B: Backend> Receiver<B> {
    /// `ranked` has the same meaning as in [`TransformerOptions`].
    pub(super) fn new(
        backend: B,
        sketch: &Sketch,
        place: &Place,
        ranked: bool,
    ) -> Result<Self, Error> {
        let cache_element = place.options.cache.into();
        let options = TransformerOptions { cache_element, ranked, ..<_>::default() };
        let (config, layout) = (sketch.config.clone(), sketch.layout.clone());
        let int8_head = (place.head == HeadType::Int8).then_some(layout.head);
        Ok(Self { builder: TransformerBuilder::new(backend, config, layout, options)?, int8_head })
    }
}

impl<B> Receive for Receiver<B>
where
    B: Backend + MaybeSend + 'static,
    TransformerBuilder<B>: MaybeSend,
    Transformer<B>: Forward,
{
    fn take(&mut self, id: WeightId, weight: WeightData) -> Result<(), Error> {
        let weight = match weight {
            // A tied embedding becomes the same table.
            WeightData::Dense(table) if self.int8_head == Some(id) => {
                WeightData::Dense(to_int8(table)?)
            }
            weight => weight,
        };
        Ok(self.builder.add(id, weight)?)
    }

    fn finish(self: Box<Self>) -> Result<Finished, Error> {
        let model = self.builder.finish()?;
        let bytes = model.memory().weights();
        Ok((Box::new(model), bytes))
    }
}

fn to_int8(table: DenseMatrix) -> Result<DenseMatrix, Error> {
    match table.values() {
        DenseValues::Int8Rows { .. } => Ok(table),
        _ => Ok(table.to_int8_rows().map_err(setun_model::ModelError::from)?),
    }
}
