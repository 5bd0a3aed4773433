//! A retrying proxy that the suite is tried on: right, or with one fault.
//!
//! `prove-proxy [--mutant NAME]` listens on `PROVE_LISTEN` and sends on to `PROVE_UPSTREAM`, in the
//! version of HTTP that `PROVE_HTTP` names, over TLS where the URL says so. The engine of
//! `ressac-policy` decides every retry, by what `ressac-http` holds for proven. A request body is
//! kept up to a limit, so that it can be sent again; a reply is passed on as it comes, and from its
//! first byte on nothing is sent again.

mod arriving;
mod body;
mod call;
mod fault;
mod headers;
mod http1;
mod http2;
mod passed;
mod policy;
mod proxy;
mod shared;
mod told;
#[cfg(feature = "library")]
#[path = "../prove_client/unverified.rs"]
mod unverified;
mod upstream;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1::Builder;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use crate::fault::Fault;
use crate::proxy::Proxy;
use crate::told::Told;

/// Connections at a time; more wait until one ends.
const MOST_CONNECTIONS: usize = 10_000;
/// For the head of a request.
const HEAD_TIME: Duration = Duration::from_secs(30);
/// Between two attempts to accept, where the system has no more sockets.
const BREATH: Duration = Duration::from_millis(50);

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mutant = match &arguments[..] {
        [] => None,
        [flag, name] if flag == "--mutant" => Some(name.as_str()),
        _ => {
            eprintln!("prove-proxy: write `prove-proxy [--mutant NAME]`");
            return ExitCode::from(64);
        }
    };
    let Ok(runtime) = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
    else {
        return ExitCode::from(70);
    };
    let code = match runtime.block_on(run(Fault::named(mutant))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("prove-proxy: {error}");
            ExitCode::from(64)
        }
    };
    runtime.shutdown_background();
    code
}

/// Serves until SIGTERM.
async fn run(fault: Fault) -> Result<(), String> {
    let told = Told::environment();
    let listen = told.get("listen").ok_or("PROVE_LISTEN is not set")?;
    let proxy = Arc::new(Proxy::new(&told, fault)?);
    let listener = TcpListener::bind(&listen)
        .await
        .map_err(|e| format!("cannot listen on {listen}: {e}"))?;
    let places = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    let serve = async {
        loop {
            let Ok(place) = Arc::clone(&places).acquire_owned().await else {
                return;
            };
            match listener.accept().await {
                Ok((socket, _)) => {
                    let proxy = Arc::clone(&proxy);
                    tokio::spawn(async move {
                        connection(proxy, socket).await;
                        drop(place);
                    });
                }
                Err(_) => tokio::time::sleep(BREATH).await,
            }
        }
    };
    tokio::select! {
        () = serve => {}
        () = terminated() => {}
    }
    Ok(())
}

/// Where downstream goes away, hyper drops the service's future, and with it the operation.
async fn connection(proxy: Arc<Proxy>, socket: TcpStream) {
    let _ = socket.set_nodelay(true);
    let service = service_fn(|request| {
        let proxy = Arc::clone(&proxy);
        async move {
            if !proxy.fault.is("keeps-trying-after-downstream-left") {
                return Ok(call::forward(proxy, request).await);
            }
            tokio::spawn(call::forward(proxy, request)).await
        }
    });
    // What breaks a connection is downstream's affair.
    let _ = Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .serve_connection(TokioIo::new(socket), service)
        .await;
}

/// SIGTERM.
async fn terminated() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut term) = signal(SignalKind::terminate()) {
            term.recv().await;
            return;
        }
    }
    std::future::pending::<()>().await;
}
