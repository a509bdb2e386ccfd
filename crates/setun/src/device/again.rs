//! Loading a model once more, on a device that was lost.

use futures::future::{FutureExt, LocalBoxFuture};
use setun_engine::{Error as EngineError, ReloadModel};
use setun_model::Model as Forward;

use super::{DeviceOptions, load::load_onto};
use crate::{bytes::Origin, error::Error, reader::ModelReader};

/// Reads a model again from where it came.
pub(crate) struct Again {
    origin: Origin,
    options: DeviceOptions,
}

impl Again {
    /// The options name the device: what was chosen once is not measured again.
    pub(super) fn new(origin: Origin, options: DeviceOptions) -> Self {
        Self { origin, options }
    }

    async fn load(&self) -> Result<Box<dyn Forward>, Error> {
        let reader = ModelReader::over(self.origin.clone()).await?;
        Ok(load_onto(reader.into(), self.options.clone()).await?.placed.model)
    }
}

impl ReloadModel for Again {
    fn reload(&mut self) -> LocalBoxFuture<'_, Result<Box<dyn Forward>, EngineError>> {
        self.load().map(|model| Ok(model?)).boxed_local()
    }
}
