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
    time::{Sleep, sleep},
};

/// Longest time in which the rest of a body is dropped.
const LINGER: Duration = Duration::from_secs(20);

/// Most bytes of it.
const MAX_DROPPED: usize = 256 << 20;

/// Bytes that are dropped at once.
const PIECE: usize = 16 << 10;

/// Whether a body has not been read to its end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Unread(Arc<AtomicBool>);

/// A socket.
#[derive(Debug)]
pub(crate) struct ClientStream {
    socket: TcpStream,
    unread: Unread,
    /// Time without a byte after which a client that does not read is given up.
    write_timeout: Duration,
    /// Since when a write waits.
    stalled: Option<Pin<Box<Sleep>>>,
    end: Option<End>,
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
        Self { socket, unread, write_timeout, stalled: None, end: None }
    }

    /// Whether a client that a write waits for has had its time.
    fn stall(&mut self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let time = self.write_timeout;
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(sleep(time)));
        stalled.as_mut().poll(context).map(|()| Err(ErrorKind::TimedOut.into()))
    }

    fn wrote(
        &mut self,
        written: Poll<io::Result<usize>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        if written.is_pending() {
            return self.stall(context);
        }
        self.stalled = None;
        written
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
