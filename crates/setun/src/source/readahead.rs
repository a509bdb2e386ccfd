//! Reads of a file ahead of demand, on a thread.

use std::{
    io::Read,
    ops::Range,
    sync::mpsc::{Receiver, Sender, channel},
    thread::{self, JoinHandle},
};

/// Bytes that are read at a time.
const PIECE: usize = 1 << 20;

/// Most pieces that there are: a gibibyte.
const MAX_PIECES: usize = 1 << 10;

type Piece = Vec<u8>;

/// What comes next of a file. The thread ends with this, which waits for it.
#[derive(Debug)]
pub(crate) struct Readahead {
    position: u64, // of what comes next
    piece: Piece,
    taken: usize,                                     // of the piece
    pieces: Option<(Receiver<Piece>, Sender<Piece>)>, // that come, and where they are used again
    thread: Option<JoinHandle<()>>,
}

impl Readahead {
    /// Reads on from where the file is, and that is `position`, by about `bytes` bytes; none
    /// where a thread is not to be had.
    pub(crate) fn start(
        file: impl Read + Send + 'static,
        position: u64,
        bytes: usize,
    ) -> Option<Self> {
        let (sender, pieces) = channel();
        let (spare, spares) = channel();
        for _ in 0..bytes.div_ceil(PIECE).min(MAX_PIECES) {
            let _ = spare.send(vec![]); // `spares` is here
        }
        let name = thread::Builder::new().name("setun-readahead".into());
        let thread = name.spawn(move || read_on(file, &spares, &sender)).ok()?;
        let pieces = Some((pieces, spare));
        Some(Self { position, piece: vec![], taken: 0, pieces, thread: Some(thread) })
    }

    /// Whether a range is what comes next, or follows closely.
    pub(crate) fn is_next(&self, range: &Range<u64>) -> bool {
        (self.position..=self.position + PIECE as u64).contains(&range.start)
    }

    /// Appends the bytes of a range that [`is_next`](Self::is_next). False where the file has
    /// ended before its end, or failed: nothing comes from here any more.
    pub(crate) fn take(&mut self, range: Range<u64>, bytes: &mut Vec<u8>) -> bool {
        self.pass(range.start, |_| {}) && self.pass(range.end, |part| bytes.extend_from_slice(part))
    }

    /// Goes on to a position.
    fn pass(&mut self, end: u64, mut hand: impl FnMut(&[u8])) -> bool {
        while self.position < end {
            if self.taken == self.piece.len() && !self.next_piece() {
                return false;
            }
            let rest = &self.piece[self.taken..];
            let wanted = usize::try_from(end - self.position).unwrap_or(usize::MAX);
            let part = &rest[..rest.len().min(wanted)];
            hand(part);
            self.taken += part.len();
            self.position += part.len() as u64;
        }
        true
    }

    fn next_piece(&mut self) -> bool {
        let Some((pieces, spares)) = &self.pieces else { return false };
        let Ok(piece) = pieces.recv() else { return false };
        // A thread that has ended needs none.
        let _ = spares.send(std::mem::replace(&mut self.piece, piece));
        self.taken = 0;
        true
    }
}

impl Drop for Readahead {
    fn drop(&mut self) {
        self.pieces = None; // the thread ends
        if let Some(thread) = self.thread.take() {
            let _ = thread.join(); // one that has panicked has ended, too
        }
    }
}

/// Fills spare pieces until the file ends or fails, or the reader is gone.
fn read_on(mut file: impl Read, spares: &Receiver<Piece>, pieces: &Sender<Piece>) {
    while let Ok(mut piece) = spares.recv() {
        piece.clear();
        let read = file.by_ref().take(PIECE as u64).read_to_end(&mut piece);
        if !read.is_ok_and(|bytes| bytes > 0) || pieces.send(piece).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::{self, Cursor, ErrorKind},
        sync::Arc,
    };

    use super::*;

    const LEN: usize = 5 * PIECE + 77;

    fn content() -> Vec<u8> {
        (0..LEN).map(|at| ((at * at) >> 7).to_le_bytes()[0]).collect()
    }

    /// Gives out `left` bytes, and then fails.
    struct Failing {
        file: Cursor<Vec<u8>>,
        left: usize,
        _held: Arc<()>,
    }

    impl Read for Failing {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            let most = out.len().min(self.left);
            if most == 0 {
                return Err(ErrorKind::TimedOut.into());
            }
            let read = self.file.read(&mut out[..most])?;
            self.left -= read;
            Ok(read)
        }
    }

    #[test]
    fn ranges_are_those_of_the_file() {
        let content = content();
        for bytes in [1, PIECE, 3 * PIECE, 100 * PIECE] {
            let mut ahead =
                Readahead::start(Cursor::new(content.clone()), 0, bytes).expect("a thread");
            let mut start = 0;
            for len in [0, 1, 100, PIECE - 101, 2 * PIECE + 5, 7, PIECE] {
                let end = start + len;
                let (range, mut found) = (start as u64..end as u64, vec![]);
                assert!(ahead.is_next(&range) && ahead.take(range, &mut found));
                assert_eq!(found, content[start..end]);
                start = end + 3;
            }
            let (whole, mut found) = (start as u64..LEN as u64 + 1, vec![]);
            assert!(!ahead.is_next(&(0..1)) && !ahead.is_next(&(LEN as u64..LEN as u64)));
            assert!(ahead.is_next(&whole) && !ahead.take(whole, &mut found), "beyond the end");
        }
    }

    #[test]
    fn a_file_that_fails_gives_what_came_before_and_its_thread_ends() {
        let held = Arc::new(());
        let (file, left) = (Cursor::new(content()), 2 * PIECE + 10);
        let failing = Failing { file, left, _held: Arc::clone(&held) };
        let mut ahead = Readahead::start(failing, 0, 8 * PIECE).expect("a thread");
        let mut found = vec![];
        assert!(ahead.take(0..2 * PIECE as u64, &mut found));
        assert_eq!(found, content()[..2 * PIECE]);
        assert!(!ahead.take(2 * PIECE as u64..2 * PIECE as u64 + 1, &mut found));
        drop(ahead);
        assert_eq!(Arc::strong_count(&held), 1);
    }

    #[test]
    fn no_thread_is_left_and_no_more_is_read_than_was_said() {
        let held = Arc::new(());
        let (file, left) = (Cursor::new(content()), LEN);
        let failing = Failing { file, left, _held: Arc::clone(&held) };
        let mut ahead = Readahead::start(failing, 0, 2 * PIECE).expect("a thread");
        assert!(ahead.take(0..10, &mut vec![]));
        drop(ahead);
        assert_eq!(Arc::strong_count(&held), 1, "it does not wait for anybody");
    }
}
