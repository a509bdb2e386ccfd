//! Reads of large ranges by several threads.

use std::{fs::File, io, ops::Range, os::unix::fs::FileExt, thread};

/// Bytes from which on threads share a range: a few times what it takes to start them.
pub(crate) const SHARED_BYTES: u64 = 2 * PART as u64;

/// Bytes that a thread reads at least.
const PART: usize = 4 << 20;

/// Most threads that read.
const MAX_THREADS: usize = 4;

/// Replaces `bytes` by a range of a file, or as much of it as there is.
pub(crate) fn read_shared(file: &File, range: Range<u64>, bytes: &mut Vec<u8>) -> io::Result<()> {
    let available = file.metadata()?.len().saturating_sub(range.start);
    let length = range.end.saturating_sub(range.start).min(available);
    let length = usize::try_from(length).map_err(|_| io::ErrorKind::OutOfMemory)?;
    bytes.try_reserve(length.saturating_sub(bytes.len()))?;
    bytes.resize(length, 0); // what was read before is not made zero first
    let threads = thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS);
    let part = length.div_ceil(threads).max(PART);
    let read = |(index, part_bytes): (usize, &mut [u8])| {
        read_part(file, range.start + (index * part) as u64, part_bytes)
    };
    let mut parts = bytes.chunks_mut(part).enumerate();
    let first = parts.next();
    let read = thread::scope(|scope| {
        let spawn = |part| thread::Builder::new().spawn_scoped(scope, move || read(part));
        let others = parts.map(spawn).collect::<io::Result<Vec<_>>>()?;
        let first = first.map(read);
        let others = others
            .into_iter()
            .map(|other| other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        first.into_iter().chain(others).collect::<io::Result<Vec<_>>>()
    });
    // Where no thread can be started this one reads all; an error of the file comes again.
    let Ok(read) = read else {
        let read = read_part(file, range.start, bytes)?;
        bytes.truncate(read);
        return Ok(());
    };
    // A file that has become shorter ends in the first part that is not full.
    let full = read.iter().take_while(|read| **read == part).count();
    bytes.truncate(full * part + read.get(full).copied().unwrap_or(0));
    Ok(())
}

/// How many bytes there are from an offset on.
fn read_part(file: &File, offset: u64, bytes: &mut [u8]) -> io::Result<usize> {
    let mut read = 0;
    while read < bytes.len() {
        match file.read_at(&mut bytes[read..], offset + read as u64) {
            Ok(0) => break,
            Ok(count) => read += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(read)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_range_is_that_of_the_file_or_what_there_is_of_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("file");
        let content: Vec<u8> =
            (0..3 * PART + 77).map(|at| ((at * at) >> 7).to_le_bytes()[0]).collect();
        fs::write(&path, &content).expect("a file");
        let file = File::open(&path).expect("the file");
        let mut bytes = vec![7; 10];
        let end = content.len();
        let ranges = [
            0..0,
            0..5,
            3..PART,
            1..3 * PART,
            PART..end,
            end - 1..end + 9,
            end..end + 1,
            2..9 * end,
        ];
        for range in ranges {
            let expected = &content[range.start..range.end.min(end)];
            read_shared(&file, range.start as u64..range.end as u64, &mut bytes).expect("bytes");
            assert!(bytes == expected, "{range:?}: {} bytes", bytes.len());
        }
        read_shared(&file, 1 << 40..2 << 40, &mut bytes).expect("nothing");
        assert!(bytes.is_empty());
    }
}
