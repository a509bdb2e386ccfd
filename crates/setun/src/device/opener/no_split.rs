//! Refusal to split a model's layers: WebAssembly keeps them together, as its code is downloaded.

use crate::{
    device::{Device, opened::OpenedDevice, placement::Placement, unavailable},
    error::Error,
    header::ModelHeader,
};

/// Shares of a model's layers, of which there are none.
pub(super) enum Split {}

impl Split {
    /// Refuses.
    pub(super) fn new(shares: &[(Device, usize)], _: &ModelHeader) -> Result<Self, Error> {
        let name = Device::Split(shares.to_vec()).to_string();
        Err(unavailable(&name, "WebAssembly keeps the layers of a model together".into()))
    }

    pub(super) fn can_shrink(&self) -> bool {
        match *self {}
    }

    pub(super) fn shrink(&mut self, _: &ModelHeader) {
        match *self {}
    }

    #[expect(clippy::unused_async, reason = "elsewhere it waits")]
    pub(super) async fn open(
        &mut self,
        _: &ModelHeader,
        _: &Placement,
    ) -> Result<OpenedDevice, Error> {
        match *self {}
    }
}
