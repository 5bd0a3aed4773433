//! The accept loop: HTTP/1.1 with a limit on every time and number that a stranger controls.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;

use tokio::sync::{Semaphore, watch};

/// From accept to the last byte of a request's head.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// From the head to the last byte of the answer: a body that trickles holds no place for ever.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);
/// Connections at a time; the next one waits in the kernel's queue.
const MAX_CONNECTIONS: usize = 1_024;
/// Bytes of a request's head.
const MAX_HEAD: usize = 64 * 1024;
/// What open requests get at a stop.
const DRAIN: Duration = Duration::from_secs(2);

/// Serves until `stop` says so, then lets open requests end.
pub(crate) async fn serve(listener: TcpListener, router: Router, mut stop: watch::Receiver<bool>) {
    let router = router.layer(axum::middleware::from_fn(limit_time));
    let graceful = GracefulShutdown::new();
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        // A stop must not wait for one of a thousand silent connections to end.
        let place = tokio::select! {
            _ = stop.changed() => break,
            place = Arc::clone(&places).acquire_owned() => place,
        };
        let Ok(place) = place else {
            break;
        };
        let stream = tokio::select! {
            _ = stop.changed() => break,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                Err(error) => {
                    tracing::warn!(%error, "cannot accept connections");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
            },
        };
        // Small answers must not wait for more to send; a failure here costs only that.
        let _ = stream.set_nodelay(true);
        let service = TowerToHyperService::new(router.clone());
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIMEOUT)
            .max_buf_size(MAX_HEAD)
            .serve_connection(TokioIo::new(stream), service);
        let connection = graceful.watch(connection);
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection ended badly");
            }
            drop(place);
        });
    }
    drop(listener);
    if tokio::time::timeout(DRAIN, graceful.shutdown())
        .await
        .is_err()
    {
        tracing::warn!("open requests were cut off by the stop");
    }
}

async fn limit_time(
    request: axum::extract::Request,
    next: axum::middleware::Next,
) -> axum::response::Response {
    match tokio::time::timeout(REQUEST_TIMEOUT, next.run(request)).await {
        Ok(response) => response,
        Err(_) => crate::api::too_slow(),
    }
}
