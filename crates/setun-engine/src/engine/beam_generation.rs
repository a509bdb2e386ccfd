//! A beam search that an engine runs.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use futures::{Stream, channel::oneshot};

use crate::{
    beams::BeamText,
    error::Error,
    event::{Done, Event},
    stream::{CancelHandle, GenerationStream},
};

/// What a search has found.
#[derive(Clone, Debug, PartialEq)]
pub struct BeamTexts {
    /// The best first: [`num_return_sequences`](crate::BeamOptions::num_return_sequences), or fewer if there are not
    /// this many.
    pub texts: Vec<BeamText>,
    /// How the search ended: as its best text did, or before its time. Tokens are those of all
    /// these texts; the seed means nothing.
    pub done: Done,
}

/// A beam search under way: a future of its texts. Dropping it ends the search and frees its
/// memory.
#[derive(Debug)]
pub struct BeamGeneration {
    stream: GenerationStream,
    texts: oneshot::Receiver<Vec<BeamText>>,
}

impl BeamGeneration {
    pub(crate) fn new(stream: GenerationStream, texts: oneshot::Receiver<Vec<BeamText>>) -> Self {
        Self { stream, texts }
    }

    /// A handle that ends the search, which then gives what it has.
    #[must_use]
    pub fn cancel_handle(&self) -> CancelHandle {
        self.stream.cancel_handle()
    }

    /// Waits for the end. Not for use inside an async task.
    ///
    /// # Errors
    ///
    /// As the search's own.
    #[cfg(not(target_family = "wasm"))]
    pub fn wait(self) -> Result<BeamTexts, Error> {
        pollster::block_on(self)
    }
}

impl Future for BeamGeneration {
    type Output = Result<BeamTexts, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        loop {
            // The texts are there before the last event is.
            match ready!(Pin::new(&mut self.stream).poll_next(context)) {
                Some(Ok(Event::Done(done))) => {
                    let texts = self.texts.try_recv().ok().flatten().unwrap_or_default();
                    return Poll::Ready(Ok(BeamTexts { texts, done }));
                }
                Some(Ok(Event::Progress(_) | Event::Prompt(_) | Event::Text(_))) => {}
                Some(Err(error)) => return Poll::Ready(Err(error)),
                None => return Poll::Ready(Err(Error::Disposed)),
            }
        }
    }
}
