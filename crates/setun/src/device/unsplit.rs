//! Where layers stay together: in WebAssembly, whose code is downloaded.

use super::{
    Device,
    load::{LoadedModel, Place},
    unavailable,
};
use crate::{error::Error, input::ModelInput, reader::Sketch};

/// Refuses.
#[expect(clippy::unused_async, reason = "elsewhere it loads")]
pub(super) async fn load(
    _: &mut ModelInput,
    _: &Sketch,
    place: &Place,
    _: &[(Device, usize)],
    _: bool,
) -> Result<LoadedModel, Error> {
    let name = place.options.device.to_string();
    Err(unavailable(&name, "WebAssembly keeps the layers of a model together".into()))
}
