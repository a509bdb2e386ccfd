//! The connection to a client: writes that do not wait for ever, and an end at which the answer is read.
//!
//! A client may send a body that is refused before it is read. If the connection were closed then, the
//! system would answer the rest of the body with a reset, and many clients would not read the
//! answer. So the rest is read and dropped, up to a bound.

use std::{
    io::{self, ErrorKind},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    time::{Instant, Sleep, sleep},
};

/// Longest time in which the rest of a body is dropped.
const LINGER: Duration = Duration::from_secs(20);

/// Most bytes of it.
const MAX_DROPPED: usize = 256 << 20;

/// Bytes that are dropped at once.
const PIECE: usize = 16 << 10;

/// Bytes a second that a client takes, on average, of an answer that waits for it.
const MIN_RATE: u32 = 500;

/// Whether a body has not been read to its end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Unread(Arc<AtomicBool>);

/// A socket.
#[derive(Debug)]
pub(crate) struct ClientStream {
    socket: TcpStream,
    unread: Unread,
    patience: Patience,
    /// The end of the patience with a client that a write waits for, since a time.
    stalled: Option<(Pin<Box<Sleep>>, Instant)>,
    end: Option<End>,
}

/// How long writes still wait. Each wait takes from it, and each byte that a client has taken gives
/// something back, so that one that takes a byte now and then is given up, too.
#[derive(Clone, Copy, Debug)]
struct Patience {
    most: Duration,
    left: Duration,
}

/// The end of a connection: nothing more is written.
#[derive(Debug)]
struct End {
    time: Pin<Box<Sleep>>,
    dropped: usize,
}

/// A body that says whether it has been read to its end.
pub(crate) struct NotedBody {
    body: Incoming,
    unread: Unread,
}

impl ClientStream {
    pub(crate) fn new(socket: TcpStream, unread: Unread, write_timeout: Duration) -> Self {
        let patience = Patience { most: write_timeout, left: write_timeout };
        Self { socket, unread, patience, stalled: None, end: None }
    }

    /// Whether a client that a write waits for has had its time.
    fn stall(&mut self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let time = self.patience.left;
        let begin = || (Box::pin(sleep(time)), Instant::now());
        let (end, _) = self.stalled.get_or_insert_with(begin);
        end.as_mut().poll(context).map(|()| Err(ErrorKind::TimedOut.into()))
    }

    fn wrote(
        &mut self,
        written: Poll<io::Result<usize>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        if written.is_pending() {
            return self.stall(context);
        }
        if let Some((_, since)) = self.stalled.take() {
            self.patience.waited(since.elapsed());
        }
        if let Poll::Ready(Ok(bytes)) = written {
            self.patience.wrote(bytes);
        }
        written
    }
}

impl Patience {
    fn waited(&mut self, time: Duration) {
        self.left = self.left.saturating_sub(time);
    }

    fn wrote(&mut self, bytes: usize) {
        let earned = Duration::from_secs(bytes as u64) / MIN_RATE;
        self.left = self.left.saturating_add(earned).min(self.most);
    }
}

impl AsyncRead for ClientStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_read(context, buffer)
    }
}

impl AsyncWrite for ClientStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.socket).poll_write(context, bytes);
        self.wrote(written, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.socket).poll_write_vectored(context, parts);
        self.wrote(written, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(context)
    }

    /// Ends the answer. Where a body was not read, waits until its client has sent it or left.
    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Self { socket, unread, end, .. } = &mut *self;
        let end = if let Some(end) = end {
            end
        } else {
            ready!(Pin::new(&mut *socket).poll_shutdown(context))?;
            if !unread.0.load(Ordering::Relaxed) {
                return Poll::Ready(Ok(()));
            }
            end.insert(End { time: Box::pin(sleep(LINGER)), dropped: 0 })
        };
        while end.dropped < MAX_DROPPED && end.time.as_mut().poll(context).is_pending() {
            let mut piece = [0; PIECE];
            let mut piece = ReadBuf::new(&mut piece);
            let read = ready!(Pin::new(&mut *socket).poll_read(context, &mut piece));
            if read.is_err() || piece.filled().is_empty() {
                break;
            }
            end.dropped += piece.filled().len();
        }
        Poll::Ready(Ok(()))
    }
}

impl NotedBody {
    pub(crate) fn new(body: Incoming, unread: Unread) -> Self {
        unread.0.store(!body.is_end_stream(), Ordering::Relaxed);
        Self { body, unread }
    }
}

impl Body for NotedBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        // After an error there is nobody, or no frame, to read on.
        if !matches!(frame, Some(Ok(_))) || self.body.is_end_stream() {
            self.unread.0.store(false, Ordering::Relaxed);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIME: Duration = Duration::from_mins(1);

    /// Seconds until a client is given up that takes pieces of this size, one in this many seconds.
    fn seconds(piece: usize, pause: u64) -> Option<u64> {
        let mut patience = Patience { most: TIME, left: TIME };
        (1..10_000).map(|count| count * pause).find(|_| {
            let pause = Duration::from_secs(pause);
            let is_over = patience.left <= pause;
            patience.waited(pause);
            patience.wrote(piece);
            is_over
        })
    }

    #[test]
    fn a_client_may_pause_and_must_not_drip() {
        assert_eq!(seconds(0, 60), Some(60), "nothing is taken");
        assert_eq!(seconds(1, 5), Some(65), "a byte now and then");
        assert_eq!(seconds(250, 1), Some(119), "half the least rate");
        assert_eq!(seconds(500, 1), None);
        assert_eq!(seconds(30_000, 59), None, "long pauses and much between them");
        assert_eq!(seconds(1 << 20, 61), Some(61), "no pause is longer, whatever was taken");
    }
}
