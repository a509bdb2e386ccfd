//! What `wgpu` tells by a callback, as a future.

use std::{
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll, Waker},
};

struct State<T> {
    told: Option<T>,
    waker: Option<Waker>,
}

/// Ready once its callback is called.
pub(super) struct Told<T>(Arc<Mutex<State<T>>>);

/// A callback, and the future of what it is called with.
pub(super) fn told<T>() -> (impl FnOnce(T), Told<T>) {
    let state = Arc::new(Mutex::new(State { told: None, waker: None }));
    let told = Told(Arc::clone(&state));
    let tell = move |what| {
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        state.told = Some(what);
        if let Some(waker) = state.waker.take() {
            waker.wake();
        }
    };
    (tell, told)
}

impl<T> Future for Told<T> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(what) = state.told.take() {
            return Poll::Ready(what);
        }
        state.waker = Some(context.waker().clone());
        Poll::Pending
    }
}
