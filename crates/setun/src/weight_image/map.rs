//! The bytes of a file in memory, mapped where the system can.
#![cfg_attr(unix, expect(unsafe_code, reason = "a file is mapped by a system call"))]

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    ops::Range,
};

use setun_ops::aligned::{Aligned, NoMemory, SharedBytes};

/// Bytes of a file, which it has. Where it cannot be mapped, as one that is larger than the addresses
/// that are free, they are read.
pub(super) fn map(file: &File, part: Range<u64>) -> io::Result<SharedBytes> {
    #[cfg(unix)]
    if let (Ok(start), Ok(end)) = (usize::try_from(part.start), usize::try_from(part.end))
        && let Some(map) = Map::new(file, end)
    {
        let found = SharedBytes::new(map).slice(start..end);
        return found.ok_or_else(|| io::ErrorKind::UnexpectedEof.into());
    }
    read(file, part).map(SharedBytes::new)
}

fn read(mut file: &File, part: Range<u64>) -> io::Result<Aligned<u8>> {
    let no_memory = |NoMemory { .. }| io::ErrorKind::OutOfMemory;
    let bytes = usize::try_from(part.end - part.start).map_err(|_| io::ErrorKind::OutOfMemory)?;
    let mut memory = Aligned::zeroed(bytes).map_err(no_memory)?;
    file.seek(SeekFrom::Start(part.start))?; // its index has been read
    file.read_exact(&mut memory)?;
    Ok(memory)
}

/// A file that is mapped, to be read.
#[cfg(unix)]
struct Map {
    start: std::ptr::NonNull<u8>,
    bytes: usize,
}

#[cfg(unix)]
impl Map {
    fn new(file: &File, bytes: usize) -> Option<Self> {
        use std::os::fd::AsRawFd;

        // A slice has at most this many bytes.
        if bytes == 0 || isize::try_from(bytes).is_err() {
            return None;
        }
        let (protection, flags) = (libc::PROT_READ, libc::MAP_SHARED);
        // SAFETY: a new map at a place that the system chooses, of a file that is open.
        let start = unsafe {
            libc::mmap(std::ptr::null_mut(), bytes, protection, flags, file.as_raw_fd(), 0)
        };
        let start = (start != libc::MAP_FAILED).then_some(start)?;
        Some(Self { start: std::ptr::NonNull::new(start.cast())?, bytes })
    }
}

#[cfg(unix)]
impl AsRef<[u8]> for Map {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: this number of bytes is mapped there until this is dropped. A file that is written to
        // under the map would break the promise of a slice; an image is written under another name,
        // made read-only and renamed, and who names one says that nobody writes to it
        // (`docs/design/loading.md`). What harm remains is bounded: sizes and scales are copied
        // before they are checked, and no value that stays mapped is an index or a length.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.bytes) }
    }
}

#[cfg(unix)]
impl Drop for Map {
    fn drop(&mut self) {
        // SAFETY: this is the map that was made, and nobody borrows from it any more.
        let _failed = unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

// SAFETY: the bytes are only read, and may be by any thread.
#[cfg(unix)]
unsafe impl Send for Map {}
// SAFETY: as above.
#[cfg(unix)]
unsafe impl Sync for Map {}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_file_is_the_same_mapped_and_read() {
        let mut file = tempfile::tempfile().expect("a file");
        let content: Vec<u8> = (0..70_000_u32).flat_map(u32::to_le_bytes).collect();
        file.write_all(&content).expect("written");
        let end = content.len() as u64;
        for start in [0, 4096] {
            let expected = &content[usize::try_from(start).expect("small")..];
            assert!(*map(&file, start..end).expect("mapped") == *expected);
            // Wherever it was read before: at its end, here.
            assert!(*read(&file, start..end).expect("read") == *expected);
        }
        assert!(read(&file, 0..end + 1).is_err(), "it has fewer bytes");
        assert_eq!(map(&tempfile::tempfile().expect("a file"), 0..0).expect("nothing").len(), 0);
    }

    #[test]
    fn a_file_that_is_larger_than_the_memory_is_an_error() {
        let file = tempfile::tempfile().expect("a file");
        let error = read(&file, 0..u64::MAX).expect_err("too large");
        assert_eq!(error.kind(), io::ErrorKind::OutOfMemory);
    }
}
