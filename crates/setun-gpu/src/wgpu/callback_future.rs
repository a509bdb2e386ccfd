//! Futures of what `wgpu` passes to a callback.

use std::{
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll, Waker},
};

struct State<T> {
    value: Option<T>,
    waker: Option<Waker>,
}

/// Ready once its callback is called.
pub(super) struct CallbackFuture<T>(Arc<Mutex<State<T>>>);

/// A callback, and the future of what it is called with.
pub(super) fn callback_future<T>() -> (impl FnOnce(T), CallbackFuture<T>) {
    let state = Arc::new(Mutex::new(State { value: None, waker: None }));
    let future = CallbackFuture(Arc::clone(&state));
    let resolve = move |what| {
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        state.value = Some(what);
        if let Some(waker) = state.waker.take() {
            waker.wake();
        }
    };
    (resolve, future)
}

impl<T> Future for CallbackFuture<T> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(what) = state.value.take() {
            return Poll::Ready(what);
        }
        state.waker = Some(context.waker().clone());
        Poll::Pending
    }
}
