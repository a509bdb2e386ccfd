//! A server on a socket, and its end.

use std::{convert::Infallible, future::pending, io, pin::pin, time::Duration};

use axum::{Router, body::Body, response::IntoResponse};
use futures::future::{Either, FutureExt, select};
use hyper::{
    body::Incoming,
    server::conn::http1,
    service::{Service, service_fn},
};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
    time::{sleep, timeout},
};
use tracing::{debug, warn};

use crate::{
    client_stream::{ClientStream, NotedBody, Unread},
    connection_places::Places,
    error::ApiError,
    lifecycle::Lifecycle,
    limits::Limits,
    router::OPEN,
};

/// Time in which connections close once no request is under way.
const CLOSING: Duration = Duration::from_secs(2);

/// Time after which a connection is taken again where the system has refused one.
const PAUSE: Duration = Duration::from_millis(100);

/// Serves until [`Lifecycle::drain`] is called: then new requests get 503, and those under way may
/// end within the grace time. Whether all did; the others end with an error of the same kind.
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
    serve_with(listener, router, lifecycle, grace, Limits::default()).await
}

/// As [`serve`], within the limits of connections.
///
/// # Errors
///
/// None at present: what fails in a connection ends that one.
pub async fn serve_with(
    listener: TcpListener,
    router: Router,
    lifecycle: Lifecycle,
    grace: Duration,
    limits: Limits,
) -> io::Result<bool> {
    let (stop, stopped) = watch::channel(false);
    let stop_taking = stop_taking(lifecycle.clone(), grace);
    let taking = take_connections(&listener, router, limits, stopped);
    let is_whole = match select(pin!(stop_taking), pin!(taking)).await {
        Either::Left((is_whole, _)) => is_whole,
        Either::Right((never, _)) => match never {},
    };
    drop(listener);
    stop.send_replace(true); // connections without a request close
    let _ = timeout(CLOSING, stop.closed()).await;
    Ok(is_whole && lifecycle.requests() == 0)
}

/// Until then connections are taken: requests of new ones get 503, too. Whether the requests under
/// way ended within the grace time; the texts of the others are cut off.
async fn stop_taking(lifecycle: Lifecycle, grace: Duration) -> bool {
    lifecycle.until_draining().await;
    let is_whole = timeout(grace, lifecycle.until_idle()).await.is_ok();
    if !is_whole {
        lifecycle.cut_off();
    }
    is_whole
}

/// Takes connections, each in a task of its own, until it is dropped.
async fn take_connections(
    listener: &TcpListener,
    router: Router,
    limits: Limits,
    stopped: watch::Receiver<bool>,
) -> Infallible {
    let places = Places::new(&limits);
    loop {
        let place = places.wait().await;
        match listener.accept().await {
            Ok((stream, _)) => {
                let place = places.better(place);
                let (limits, is_spare) = (place.limits(limits), place.is_spare);
                let connection =
                    connection(stream, router.clone(), limits, is_spare, stopped.clone());
                tokio::spawn(connection.map(|()| drop(place)));
            }
            // It was reset before it was taken, or there are no descriptors left.
            Err(error) => {
                warn!(target: "setun_serve", %error, "no connection was taken");
                sleep(PAUSE).await;
            }
        }
    }
}

/// Serves a connection to its end. Once the server stops, its request is the last. A spare one has one
/// request, which asks whether the server runs.
async fn connection(
    stream: TcpStream,
    router: Router,
    limits: Limits,
    is_spare: bool,
    mut stopped: watch::Receiver<bool>,
) {
    // Each token is a small write that should not wait for the next.
    let _ = stream.set_nodelay(true);
    let unread = Unread::default();
    let stream = ClientStream::new(stream, unread.clone(), limits.write_timeout);
    let router = TowerToHyperService::new(router);
    let service = service_fn(move |request: hyper::Request<Incoming>| {
        let request = request.map(|body| Body::new(NotedBody::new(body, unread.clone())));
        let is_refused = is_spare && !OPEN.contains(&request.uri().path());
        let router = router.clone();
        async move {
            if is_refused {
                let error = ApiError::too_many("as many connections are open as may be");
                return Ok(error.into_response());
            }
            router.call(request).await
        }
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(limits.header_timeout);
    builder.keep_alive(!is_spare);
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
    let stop = async {
        if stopped.wait_for(|stopped| *stopped).await.is_err() {
            pending::<()>().await; // the server was dropped, and its runtime ends
        }
    };
    let ended = match select(connection.as_mut(), pin!(stop)).await {
        Either::Left((ended, _)) => ended,
        Either::Right(_) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        debug!(target: "setun_serve", %error, "a connection has ended");
    }
}
