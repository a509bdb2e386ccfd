//! One file that is written front to back.

use std::{
    fs::File,
    io::{BufWriter, Write},
    path::Path,
};

use super::{Destination, write_error};
use crate::error::CliError;

/// Bytes between writes.
const BUFFER: usize = 1 << 20;

/// Writes one file front to back. A device or a pipe is written as it is.
///
/// # Errors
///
/// If the file is there and `force` is not given, it cannot be written, or `write` fails: then
/// nothing of it is left.
pub fn export(
    path: &Path,
    force: bool,
    write: impl FnOnce(&mut (dyn Write + Send)) -> Result<(), CliError>,
) -> Result<(), CliError> {
    let failed = write_error(path);
    if is_stream(path) {
        let file = File::options().write(true).open(path).map_err(&failed)?;
        let mut writer = BufWriter::with_capacity(BUFFER, file);
        write(&mut writer)?;
        return writer.flush().map_err(failed);
    }
    let (mut destination, name) = Destination::file(path, force)?;
    let mut writer = BufWriter::with_capacity(BUFFER, destination.part(&name)?);
    write(&mut writer)?;
    writer.flush().map_err(failed)?;
    drop(writer);
    destination.publish(&name, &[])
}

/// Whether an export to this path could begin, before the work of its content.
///
/// # Errors
///
/// If it could not.
pub fn check_export(path: &Path, force: bool) -> Result<(), CliError> {
    if is_stream(path) {
        return Ok(());
    }
    let (destination, name) = Destination::file(path, force)?;
    destination.check(&name)
}

/// Whether a path is a device or a pipe.
fn is_stream(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| !found.is_file() && !found.is_dir())
}
