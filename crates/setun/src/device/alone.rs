//! The choice where this build reaches no GPU.

use super::{
    DeviceReport, DeviceVerdict,
    load::{Place, open_cpu},
    open::Opened,
};
use crate::{error::Error, reader::Sketch};

/// Opens the best level of the processor.
#[expect(clippy::unused_async, reason = "with a GPU it waits")]
pub(super) async fn open(sketch: &Sketch, place: &Place) -> Result<(Opened, DeviceReport), Error> {
    let opened = open_cpu(sketch, place)?;
    let reason = "no GPU that can be used is here";
    let chosen = DeviceVerdict::chosen(opened.backend, &opened.level, reason);
    Ok((opened, DeviceReport { devices: vec![chosen] }))
}
