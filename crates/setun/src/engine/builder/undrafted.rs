//! No drafts, where a page would have to download two models.

use super::{
    Limits, Owner,
    source::{Placed, Source},
};
use crate::{device::DeviceOptions, error::Error};

/// There is none.
pub(super) enum Draft {}

#[expect(clippy::unused_async, reason = "a draft that is there is loaded")]
pub(super) async fn load(
    _: Option<Source>,
    _: &DeviceOptions,
    models: &[Placed],
) -> Result<Vec<Option<Draft>>, Error> {
    Ok(models.iter().map(|_| None).collect())
}

pub(super) fn bytes(_: Option<&Draft>) -> (usize, usize) {
    (0, 0)
}

pub(super) fn attach(_: Owner, draft: Draft, _: &Limits, _: usize) -> Result<Owner, Error> {
    match draft {}
}
