//! What an engine can be made of.

use setun_ops::{WeightData, WeightId};

use crate::{
    bytes::Origin,
    error::Error,
    load::About,
    model::Model,
    reader::{ModelReader, Sketch},
};

/// What an [`Engine`](crate::Engine::builder) can be made of.
pub enum ModelInput {
    /// A model in memory.
    Model(Box<Model>),
    /// One whose weights are still to be read.
    Reader(Box<ModelReader>),
}

impl From<Model> for ModelInput {
    fn from(model: Model) -> Self {
        Self::Model(Box::new(model))
    }
}

impl From<ModelReader> for ModelInput {
    fn from(reader: ModelReader) -> Self {
        Self::Reader(Box::new(reader))
    }
}

impl ModelInput {
    /// What is known of it without its weights.
    pub(crate) fn sketch(&self) -> Result<Sketch, Error> {
        match self {
            Self::Model(model) => Ok(Sketch {
                config: model.about.config.clone(),
                layout: model.weights.layout.clone(),
                kinds: model.weights.kinds(),
            }),
            Self::Reader(reader) => reader.sketch(),
        }
    }

    /// Hands out all weights. Where it is to `keep` those in memory, it hands out copies.
    pub(crate) async fn weights(
        &mut self,
        keep: bool,
        mut take: impl FnMut(WeightId, WeightData) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let ids = (0..).map(WeightId);
        match self {
            Self::Reader(reader) => reader.stream(take).await,
            Self::Model(model) if keep => {
                let mut weights = ids.zip(&model.weights.data);
                weights.try_for_each(|(id, weight)| take(id, weight.clone()))
            }
            Self::Model(model) => {
                let data = std::mem::take(&mut model.weights.data);
                ids.zip(data).try_for_each(|(id, weight)| take(id, weight))
            }
        }
    }

    /// How much may be read ahead from now on.
    pub(crate) async fn prefetch(&self, bytes: usize) {
        let origin = match self {
            Self::Model(model) => model.origin.as_ref(),
            Self::Reader(reader) => Some(reader.origin()),
        };
        if let Some(origin) = origin {
            origin.bytes().await.prefetch(bytes);
        }
    }

    /// The same once more.
    pub(crate) async fn again(&self) -> Result<Self, Error> {
        match self {
            Self::Model(model) => {
                let Model { about, weights, origin } = &**model;
                let (about, weights, origin) = (about.clone(), weights.clone(), origin.clone());
                Ok(Model { about, weights, origin }.into())
            }
            Self::Reader(reader) => Ok(reader.again().await?.into()),
        }
    }

    /// Makes ready to hand out all weights once more, where they were kept.
    pub(crate) async fn rewind(&mut self) -> Result<(), Error> {
        if let Self::Reader(reader) = self {
            reader.rewind().await?;
        }
        Ok(())
    }

    /// All but the weights, and where they can be read again.
    pub(crate) fn into_parts(self) -> (About, Option<Origin>) {
        match self {
            Self::Model(model) => (model.about, model.origin),
            Self::Reader(reader) => {
                let (about, origin) = reader.into_parts();
                (about, Some(origin))
            }
        }
    }
}
