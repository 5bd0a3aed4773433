//! The contenders, each a client that makes one call, and the server they call: a process of its own.
#![allow(
    dead_code,
    missing_docs,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::print_stdout
)]

use std::convert::Infallible;
use std::future::Future;
use std::io::{BufRead, BufReader};
use std::pin::Pin;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Response;
use http_body_util::Full;
use hyper::service::service_fn;
use ressac::{Idempotency, Partner, Policy};
use tower::retry::budget::{Budget as _, TpsBudget};
use tower::{Service, ServiceExt};

/// Says that this process is the server.
const SERVER: &str = "RESSAC_BENCH_SERVER";

/// As every program should have one; the same for all.
const LIMIT: Duration = Duration::from_secs(10);

const PAYMENT: &str = r#"{"amount":1999,"currency":"EUR"}"#;

/// The server's process; it ends with this.
pub struct Server {
    child: Child,
    pub url: String,
}

impl Server {
    pub fn start() -> Server {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .env(SERVER, "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let url = format!("http://{}/payments", line.trim());
        Server { child, url }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Serves, where this process is the server; it does not return then.
pub fn serve_if_asked() {
    if std::env::var_os(SERVER).is_none() {
        return;
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        println!("{}", listener.local_addr().unwrap());
        // The parent holds the other end of standard input: when it goes, so does this.
        std::thread::spawn(|| {
            let _ = std::io::stdin().lines().count();
            std::process::exit(0);
        });
        while let Ok((socket, _)) = listener.accept().await {
            let _ = socket.set_nodelay(true);
            let service = service_fn(|_| async {
                Ok::<_, Infallible>(Response::new(Full::new(Bytes::from_static(&[b'x'; 64]))))
            });
            let io = hyper_util::rt::TokioIo::new(socket);
            tokio::spawn(hyper::server::conn::http1::Builder::new().serve_connection(io, service));
        }
    });
    std::process::exit(0);
}

pub type Call = Pin<Box<dyn Future<Output = usize> + Send>>;

/// Makes calls. All return the number of bytes of the reply's body, and all are boxed once.
pub struct Contender {
    pub name: &'static str,
    pub call: Box<dyn Fn() -> Call + Send + Sync>,
}

/// What reqwest is built with, the same for all.
fn inner() -> reqwest::Client {
    let partner = Partner::new(Policy::sync());
    ressac::reqwest::Client::builder_for(&partner)
        .no_proxy()
        .build()
        .unwrap()
}

fn request(client: &reqwest::Client, url: &reqwest::Url) -> reqwest::RequestBuilder {
    client.post(url.clone()).timeout(LIMIT).body(PAYMENT)
}

async fn read(reply: reqwest::Response) -> usize {
    reply.bytes().await.unwrap().len()
}

pub fn contenders(url: &str) -> Vec<Contender> {
    let url: reqwest::Url = url.parse().unwrap();
    vec![
        bare(url.clone()),
        ressac(
            "reqwest + ressac, all parts on",
            Partner::new(Policy::sync()),
            url.clone(),
        ),
        ressac("the same, with an idempotency key", keyed(), url.clone()),
        middleware(url.clone()),
        tower_stack(url),
    ]
}

fn keyed() -> Partner {
    let builder = Partner::builder(Policy::sync());
    builder
        .idempotency(Idempotency::header("Idempotency-Key"))
        .build()
        .unwrap()
}

fn bare(url: reqwest::Url) -> Contender {
    let client = inner();
    let call = move || -> Call {
        let sending = request(&client, &url).send();
        Box::pin(async move { read(sending.await.unwrap()).await })
    };
    Contender {
        name: "bare reqwest",
        call: Box::new(call),
    }
}

fn ressac(name: &'static str, partner: Partner, url: reqwest::Url) -> Contender {
    let client = ressac::reqwest::Client::from_reqwest(inner(), partner);
    let call = move || -> Call {
        let sending = client.post(url.clone()).timeout(LIMIT).body(PAYMENT).send();
        Box::pin(async move { read(sending.await.unwrap()).await })
    };
    Contender {
        name,
        call: Box::new(call),
    }
}

fn middleware(url: reqwest::Url) -> Contender {
    use reqwest_retry::policies::ExponentialBackoff;
    let policy = ExponentialBackoff::builder().build_with_max_retries(5);
    let retry = reqwest_retry::RetryTransientMiddleware::new_with_policy(policy);
    let client = reqwest_middleware::ClientBuilder::new(inner())
        .with(retry)
        .build();
    let call = move || -> Call {
        let sending = client.post(url.clone()).timeout(LIMIT).body(PAYMENT).send();
        Box::pin(async move { read(sending.await.unwrap()).await })
    };
    Contender {
        name: "reqwest-middleware + reqwest-retry",
        call: Box::new(call),
    }
}

#[derive(Clone)]
struct Budgeted(Arc<TpsBudget>);

impl tower::retry::Policy<reqwest::Request, reqwest::Response, reqwest::Error> for Budgeted {
    type Future = std::future::Ready<()>;

    fn retry(
        &mut self,
        _: &mut reqwest::Request,
        result: &mut Result<reqwest::Response, reqwest::Error>,
    ) -> Option<Self::Future> {
        let failed = !matches!(result, Ok(reply) if !reply.status().is_server_error());
        if !failed {
            self.0.deposit();
            return None;
        }
        self.0.withdraw().then(|| std::future::ready(()))
    }

    fn clone_request(&mut self, request: &reqwest::Request) -> Option<reqwest::Request> {
        request.try_clone()
    }
}

/// tower's retry with its budget, around a breaker.
fn tower_stack(url: reqwest::Url) -> Contender {
    let client = inner();
    let budget = Arc::new(TpsBudget::new(Duration::from_secs(10), 1, 0.1));
    let breaker = recloser::AsyncRecloser::from(recloser::Recloser::custom().build());
    let sending = client.clone();
    let service = tower::service_fn(move |request: reqwest::Request| {
        let (client, breaker) = (sending.clone(), breaker.clone());
        async move {
            match breaker.call(client.execute(request)).await {
                Ok(reply) => Ok(reply),
                Err(recloser::Error::Inner(error)) => Err(error),
                Err(recloser::Error::Rejected) => panic!("the breaker is open in a benchmark"),
            }
        }
    });
    let service = tower::retry::Retry::new(Budgeted(budget), service);
    let call = move || -> Call {
        let request = request(&client, &url).build().unwrap();
        let mut service = service.clone();
        Box::pin(
            async move { read(service.ready().await.unwrap().call(request).await.unwrap()).await },
        )
    };
    Contender {
        name: "tower retry with budget + recloser",
        call: Box::new(call),
    }
}

pub fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// A setting of the run, by the environment. `cargo test` runs a benchmark too, to see that it does;
/// then it is a short one.
pub fn setting(name: &str, default: usize, short: usize) -> usize {
    let default = if std::env::args().any(|arg| arg == "--bench") {
        default
    } else {
        short
    };
    std::env::var(name)
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(default)
}
