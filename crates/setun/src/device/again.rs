//! Loading a model once more, on a device that was lost.

use futures::future::{FutureExt, LocalBoxFuture};
use setun_model::{MaybeSend, Model as Forward};

use super::{DeviceOptions, load::load_onto};
use crate::{bytes::Origin, error::Error, reader::ModelReader};

/// Makes a model anew after its device was lost.
pub(crate) trait Revive: MaybeSend {
    /// The model, with nothing in its cache.
    fn revive(&mut self) -> LocalBoxFuture<'_, Result<Box<dyn Forward>, Error>>;
}

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

impl Revive for Again {
    fn revive(&mut self) -> LocalBoxFuture<'_, Result<Box<dyn Forward>, Error>> {
        self.load().boxed_local()
    }
}
