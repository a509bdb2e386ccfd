//! The image of a container's weights, named once it is written.

use std::ops::Range;

use super::unwritable;
use crate::{
    container::{
        Head, ImageEntry, Manifest, head, hex,
        raw::{RawImage, RawManifest},
    },
    error::CheckpointError,
    json,
};

/// The first bytes of a container's file, head and manifest, with an image that the file ends with.
/// They are as long as before: written with [`Options::image`] they have
/// room for it.
///
/// # Errors
///
/// If they are damaged, the container has several files or an image, an image does not fit there, or
/// the manifest has no room.
///
/// [`Options::image`]: super::Options::image
pub fn with_image(
    file: &str,
    first: &[u8],
    image: &ImageEntry,
) -> Result<Vec<u8>, CheckpointError> {
    let found = Head::parse(file, first)?;
    let place = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(first.len());
    let manifest = &first[place(found.manifest().start)..place(found.manifest().end)];
    Manifest::parse(file, &found, manifest)?;
    let mut raw: RawManifest = json::read(file, manifest)?;
    let [part] = raw.parts.as_mut_slice() else {
        let what = "an image of the weights in one of several files".to_owned();
        return Err(unwritable(what, "write one file"));
    };
    if raw.image.is_some() {
        let what = "an image of the weights beside the one that it has".to_owned();
        return Err(unwritable(what, "convert the model again"));
    }
    let Range { start: offset, end } = image.stored;
    part.bytes = end;
    let (bytes, sha256) = (end.saturating_sub(offset), hex(&image.sha256));
    raw.image = Some(RawImage { offset, bytes, sha256 });
    let mut json = json::write(file, &raw)?;
    if json.len() > manifest.len() {
        let what = "an image of the weights, for which its manifest has no room".to_owned();
        return Err(unwritable(what, "convert the model again"));
    }
    json.resize(manifest.len(), b' ');
    let first = [head::of(&json), json].concat();
    let found = Head::parse(file, &first)?;
    Manifest::parse(file, &found, &first[place(found.manifest().start)..])?;
    Ok(first)
}
