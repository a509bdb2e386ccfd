//! Mapping a buffer as a future: `wgpu` calls back.

use std::{
    future::Future,
    ops::Range,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll, Waker},
};

type Outcome = Result<(), wgpu::BufferAsyncError>;

#[derive(Default)]
struct State {
    outcome: Option<Outcome>,
    waker: Option<Waker>,
}

/// Ready once the buffer is mapped.
pub(super) struct Mapped(Arc<Mutex<State>>);

/// Asks for bytes of a buffer to be mapped for reading.
pub(super) fn map(buffer: &wgpu::Buffer, bytes: Range<u64>) -> Mapped {
    let state = Arc::new(Mutex::new(State::default()));
    let told = Arc::clone(&state);
    buffer.map_async(wgpu::MapMode::Read, bytes, move |outcome| {
        let mut state = told.lock().unwrap_or_else(PoisonError::into_inner);
        state.outcome = Some(outcome);
        if let Some(waker) = state.waker.take() {
            waker.wake();
        }
    });
    Mapped(state)
}

impl Future for Mapped {
    type Output = Outcome;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Outcome> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let outcome = state.outcome.take();
        if outcome.is_none() {
            state.waker = Some(context.waker().clone());
        }
        outcome.map_or(Poll::Pending, Poll::Ready)
    }
}
