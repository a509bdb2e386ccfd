//! Forms (`multipart/form-data`) that are read piece by piece.

use std::{
    fmt,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use axum::{
    body::Bytes,
    extract::Request,
    http::header::{CONTENT_ENCODING, CONTENT_TYPE},
};
use futures::{Stream, StreamExt, stream::BoxStream};
use multer::{Constraints, Field, Multipart, SizeLimit, parse_boundary};

use crate::{app::paced, error::ApiError};

/// Largest piece that the parser gets, in bytes: it keeps what it has not given out.
const PIECE: usize = 64 << 10;

/// Most bytes that the parser keeps: headers of a field that do not end.
const MAX_UNREAD: usize = 256 << 10;

/// Longest value of a field that is no file, in bytes.
const MAX_VALUE: usize = 1 << 10;

/// The fields of a form, one after the other.
pub(super) struct Form {
    multipart: Multipart<'static>,
    unread: Arc<AtomicUsize>,
}

/// A field. It has to be read before the next.
pub(super) struct FormField {
    field: Field<'static>,
    unread: Arc<AtomicUsize>,
}

impl Form {
    /// The form of a body with a limit of bytes, which may not pause for longer than this.
    pub(super) fn of(request: Request, most: u64, time: Duration) -> Result<Self, ApiError> {
        let headers = request.headers();
        if headers.contains_key(CONTENT_ENCODING) {
            return Err(ApiError::invalid("content-encoding", "a form comes without"));
        }
        let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        let boundary = kind.and_then(|kind| parse_boundary(kind).ok()).ok_or_else(|| {
            ApiError::invalid("content-type", "expected multipart/form-data with a boundary")
        })?;
        let unread = Arc::new(AtomicUsize::new(0));
        let body = paced(request.into_body(), time).boxed();
        let pieces =
            Pieces { body, rest: Bytes::new(), unread: Arc::clone(&unread), is_given: false };
        let limits = Constraints::new().size_limit(SizeLimit::new().whole_stream(most));
        Ok(Self { multipart: Multipart::with_constraints(pieces, boundary, limits), unread })
    }

    pub(super) async fn next(&mut self) -> Result<Option<FormField>, ApiError> {
        let field = self.multipart.next_field().await.map_err(refused)?;
        self.unread.store(0, Ordering::Relaxed);
        let unread = Arc::clone(&self.unread);
        Ok(field.map(|field| FormField { field, unread }))
    }
}

impl FormField {
    pub(super) fn name(&self) -> String {
        self.field.name().unwrap_or_default().to_owned()
    }

    pub(super) fn filename(&self) -> Option<&str> {
        self.field.file_name()
    }

    pub(super) async fn piece(&mut self) -> Result<Option<Bytes>, ApiError> {
        let piece = self.field.chunk().await.map_err(refused)?;
        self.unread.store(0, Ordering::Relaxed);
        Ok(piece)
    }

    /// The whole value, which is short.
    pub(super) async fn text(mut self) -> Result<String, ApiError> {
        let mut text = vec![];
        while let Some(piece) = self.piece().await? {
            text.extend_from_slice(&piece);
            if text.len() > MAX_VALUE {
                let reason = format!("expected {MAX_VALUE} bytes or less");
                return Err(ApiError::invalid(&self.name(), reason));
            }
        }
        String::from_utf8(text).map_err(|_| ApiError::invalid(&self.name(), "expected UTF-8"))
    }
}

/// A body in small pieces, one each time that the parser asks.
///
/// The parser asks until nothing is there, and keeps all of it. So after a piece there is nothing, and the task
/// goes on at once.
struct Pieces {
    body: BoxStream<'static, Result<Bytes, ApiError>>,
    rest: Bytes,
    unread: Arc<AtomicUsize>,
    is_given: bool,
}

impl Stream for Pieces {
    type Item = Result<Bytes, Carried>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if std::mem::take(&mut self.is_given) {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        while self.rest.is_empty() {
            match ready!(self.body.poll_next_unpin(context)) {
                None => return Poll::Ready(None),
                Some(Err(error)) => return Poll::Ready(Some(Err(Carried(error)))),
                Some(Ok(piece)) => self.rest = piece,
            }
        }
        let end = self.rest.len().min(PIECE);
        let piece = self.rest.split_to(end);
        self.is_given = true;
        if self.unread.fetch_add(piece.len(), Ordering::Relaxed) > MAX_UNREAD {
            return Poll::Ready(Some(Err(Carried(broken("the headers of a field are too long")))));
        }
        Poll::Ready(Some(Ok(piece)))
    }
}

/// An error that passes the parser.
#[derive(Debug)]
struct Carried(ApiError);

impl fmt::Display for Carried {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.0.message())
    }
}

impl std::error::Error for Carried {}

fn broken(reason: &str) -> ApiError {
    ApiError::invalid("body", format!("the form cannot be read: {reason}"))
}

fn refused(error: multer::Error) -> ApiError {
    match error {
        multer::Error::StreamReadFailed(error) => match error.downcast::<Carried>() {
            Ok(carried) => carried.0,
            Err(error) => broken(&error.to_string()),
        },
        multer::Error::StreamSizeExceeded { limit } => {
            ApiError::body_too_large(usize::try_from(limit).unwrap_or(usize::MAX))
        }
        multer::Error::IncompleteStream | multer::Error::IncompleteFieldData { .. } => {
            ApiError::broken_body()
        }
        error => broken(&error.to_string()),
    }
}
