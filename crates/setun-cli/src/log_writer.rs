//! Writer of a server's log: one thread writes the lines, and no other thread waits for it.
//!
//! A full disk, a closed pipe and a pipe without a reader delay no request and no signal.
//! Lines that find no room, or cannot be written, are dropped and counted.

use std::{
    io::{self, Write},
    panic,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, AtomicUsize, Ordering},
        mpsc::{self, Receiver, Sender, SyncSender},
    },
    thread,
    time::Duration,
};

use crate::terminal::EscapedStderr;

/// Most bytes of lines that wait.
const MAX_WAITING: usize = 1 << 20;

/// Bytes that the queue counts for a line in addition to its text.
const LINE: usize = 64;

/// Longest time that the end of the process waits for lines.
const FLUSH: Duration = Duration::from_millis(500);

/// The log of this process, once it is a server.
static QUEUE: OnceLock<LogQueue> = OnceLock::new();

/// Lines for a thread that writes them.
struct LogQueue {
    entries: Sender<Entry>,
    waiting: Arc<AtomicUsize>,
    dropped: Arc<AtomicU64>,
}

enum Entry {
    Line(Vec<u8>),
    /// Answered once what came before is written.
    Flush(SyncSender<()>),
}

/// Starts the thread that writes the log, and gives the count of lines that are dropped. Where there is no
/// thread, lines are written where they come from, as before.
#[cfg_attr(not(feature = "serve"), expect(dead_code, reason = "a server alone starts it"))]
pub(crate) fn start() -> Arc<AtomicU64> {
    let dropped = Arc::default();
    let Ok(stderr) = EscapedStderr::of_its_own() else { return dropped };
    let Ok(queue) = LogQueue::new(stderr, Arc::clone(&dropped)) else { return dropped };
    if QUEUE.set(queue).is_ok() {
        // The usual hook writes to standard error, and waits for its reader.
        panic::set_hook(Box::new(|panicked| {
            push(format!("{panicked}\n").as_bytes());
        }));
    }
    dropped
}

/// Hands a line to the thread; false where there is none.
pub(crate) fn push(line: &[u8]) -> bool {
    QUEUE.get().inspect(|queue| queue.push(line)).is_some()
}

/// Waits until the lines are written, but not for a reader that has stopped.
pub(crate) fn flush() {
    QUEUE.get().into_iter().for_each(LogQueue::flush);
}

impl LogQueue {
    fn new(writer: impl Write + Send + 'static, dropped: Arc<AtomicU64>) -> io::Result<Self> {
        let (entries, taken) = mpsc::channel();
        let waiting = Arc::default();
        let queue = Self { entries, waiting: Arc::clone(&waiting), dropped: Arc::clone(&dropped) };
        let write = move || write_all(&taken, writer, &waiting, &dropped);
        thread::Builder::new().name("log".to_owned()).spawn(write)?;
        Ok(queue)
    }

    fn push(&self, line: &[u8]) {
        let bytes = line.len() + LINE;
        let fits = |waiting: usize| waiting.checked_add(bytes).filter(|sum| *sum <= MAX_WAITING);
        let is_taken = self.waiting.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits);
        if is_taken.is_err() || self.entries.send(Entry::Line(line.to_vec())).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn flush(&self) {
        let (written, wait) = mpsc::sync_channel(1);
        if self.entries.send(Entry::Flush(written)).is_ok() {
            let _ = wait.recv_timeout(FLUSH); // what nobody reads is lost
        }
    }
}

/// Writes lines until their senders are gone.
fn write_all(
    entries: &Receiver<Entry>,
    mut writer: impl Write,
    waiting: &AtomicUsize,
    dropped: &AtomicU64,
) {
    for entry in entries {
        match entry {
            Entry::Line(line) => {
                if writer.write_all(&line).is_err() {
                    dropped.fetch_add(1, Ordering::Relaxed);
                }
                waiting.fetch_sub(line.len() + LINE, Ordering::Relaxed);
            }
            Entry::Flush(written) => drop(written.send(())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A writer that takes a line for each turn that it gets, and one that fails.
    struct Slow(Receiver<()>, Sender<Vec<u8>>);

    struct Full;

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let _ = self.0.recv(); // the end of turns lets everything through
            let _ = self.1.send(bytes.to_vec());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::StorageFull.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn what_a_reader_does_not_take_is_dropped_and_nobody_waits() {
        let ((turns, turn), (written, lines)) = (mpsc::channel(), mpsc::channel());
        let dropped = Arc::default();
        let queue = LogQueue::new(Slow(turn, written), Arc::clone(&dropped)).expect("a thread");
        let line = [b'a'; 1000];
        let fit = MAX_WAITING / (line.len() + LINE);
        (0..fit + 100).for_each(|_| queue.push(&line));
        let lost = dropped.load(Ordering::Relaxed);
        assert_eq!(lost, 100, "the line that is being written counts");
        drop(turns);
        queue.flush();
        queue.push(b"later");
        let all: Vec<_> = (0..=fit).map(|_| lines.recv().expect("a line")).collect();
        assert!(all[..fit].iter().all(|found| *found == line));
        assert_eq!(all[fit], b"later", "there is room again");
        assert_eq!(dropped.load(Ordering::Relaxed), lost);
    }

    #[test]
    fn what_cannot_be_written_is_dropped() {
        let dropped = Arc::default();
        let queue = LogQueue::new(Full, Arc::clone(&dropped)).expect("a thread");
        (0..3).for_each(|_| queue.push(b"line"));
        let (written, wait) = mpsc::sync_channel(1);
        queue.entries.send(Entry::Flush(written)).expect("a thread");
        wait.recv().expect("it goes on");
        assert_eq!(dropped.load(Ordering::Relaxed), 3);
        assert_eq!(queue.waiting.load(Ordering::Relaxed), 0);
    }
}
