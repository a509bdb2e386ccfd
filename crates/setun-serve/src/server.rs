//! A server on a socket, and its end.

use std::{future::IntoFuture, io, pin::pin, time::Duration};

use axum::{Router, serve::ListenerExt};
use futures::future::{Either, select};
use tokio::{
    net::TcpListener,
    time::{sleep, timeout},
};

use crate::lifecycle::Lifecycle;

/// Time in which connections close once no request is under way.
const CLOSING: Duration = Duration::from_secs(2);

/// Serves until [`Lifecycle::drain`] is called: then new requests get 503, and those under way may
/// end within the grace time. Whether all did; the others end with the runtime that they run on.
///
/// # Errors
///
/// None at present: what fails in a connection ends that one.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    lifecycle: Lifecycle,
    grace: Duration,
) -> io::Result<bool> {
    // Each token is a small write that should not wait for the next.
    let listener = listener.tap_io(|connection| {
        let _ = connection.set_nodelay(true);
    });
    let stop = stop(lifecycle.clone(), grace);
    let server = axum::serve(listener, router).with_graceful_shutdown(stop).into_future();
    let deadline = async {
        lifecycle.until_draining().await;
        sleep(grace.saturating_add(CLOSING)).await;
    };
    match select(pin!(server), pin!(deadline)).await {
        Either::Left((ended, _)) => ended.map(|()| lifecycle.requests() == 0),
        Either::Right(_) => Ok(lifecycle.requests() == 0),
    }
}

/// Until then connections are taken: requests of new ones get 503, too.
async fn stop(lifecycle: Lifecycle, grace: Duration) {
    lifecycle.until_draining().await;
    let _ = timeout(grace, lifecycle.until_idle()).await;
}
