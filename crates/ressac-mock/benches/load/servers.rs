//! The servers that run in this process, and the requests that they are sent.

use std::convert::Infallible;
use std::fmt::Write as _;

use bytes::Bytes;
use http_body_util::Full;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use ressac_mock::{Mock, Options, Scenario};

use crate::Contender;

/// Routes that tokens are spread over.
const ROUTES: usize = 4;

pub(crate) fn plain(_: usize) -> String {
    "GET /hello HTTP/1.1\r\nHost: m\r\n\r\n".to_owned()
}

/// Three requests for each token: `503 x2, 200`.
fn per_token(i: usize) -> String {
    let token = i / 3;
    format!(
        "GET /{}/t{token}/pay HTTP/1.1\r\nHost: m\r\n\r\n",
        token % ROUTES
    )
}

fn mock(script: &str) -> Mock {
    let text =
        format!("version = 1\n[[listener]]\nname = \"plain\"\n[[route]]\nname = \"r\"\n{script}\n");
    let options = Options {
        control: None,
        ..Options::default()
    };
    Mock::start_blocking_with(Scenario::parse(&text).unwrap(), options).unwrap()
}

pub(crate) fn mock_200() -> Contender {
    let mock = mock("path = \"/hello\"\nscript = \"200 text=\\\"Hello, World!\\\" x*\"");
    Contender {
        name: "ressac-mock: `200`",
        addr: mock.addr(),
        request: plain,
        sent: 0,
        share: 1,
        process: None,
        _alive: Box::new(mock),
    }
}

pub(crate) fn mock_per_token() -> Contender {
    // A route keeps 100 000 tokens, and a run needs more: the first path segment chooses one of
    // several routes.
    let mut routes = String::from("path = \"/never\"\nscript = \"200\"\n");
    for i in 0..ROUTES {
        let _ = write!(
            routes,
            "[[route]]\nname = \"r{i}\"\npath = \"/{i}/{{token}}/pay\"\nscope = \"token\"\n\
             script = \"503 x2, 200\"\n"
        );
    }
    let mock = mock(&routes);
    Contender {
        name: "ressac-mock: `503 x2, 200` per token",
        addr: mock.addr(),
        request: per_token,
        sent: 0,
        share: 1,
        process: None,
        _alive: Box::new(mock),
    }
}

pub(crate) fn hyper() -> Contender {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let addr = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let serve = async move {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                stream.set_nodelay(true).unwrap();
                tokio::task::spawn_local(async move {
                    let hello = |_: Request<hyper::body::Incoming>| async {
                        let body = Full::new(Bytes::from_static(b"Hello, World!"));
                        Ok::<_, Infallible>(Response::new(body))
                    };
                    // A client that goes away is none of the server's business.
                    let _ = hyper::server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), service_fn(hello))
                        .await;
                });
            }
        };
        let local = tokio::task::LocalSet::new();
        local.block_on(&runtime, serve);
    });
    Contender {
        name: "hyper: hello world",
        addr,
        request: plain,
        sent: 0,
        share: 1,
        process: None,
        _alive: Box::new(()),
    }
}

pub(crate) fn wiremock_rs() -> Contender {
    use wiremock::matchers::{method, path};
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let server = runtime.block_on(async {
        let server = wiremock::MockServer::start().await;
        let reply = wiremock::ResponseTemplate::new(200).set_body_string("Hello, World!");
        wiremock::Mock::given(method("GET"))
            .and(path("/hello"))
            .respond_with(reply)
            .mount(&server)
            .await;
        server
    });
    Contender {
        name: "wiremock-rs: `200`",
        addr: *server.address(),
        request: plain,
        sent: 0,
        share: 1,
        process: None,
        _alive: Box::new((server, runtime)),
    }
}
