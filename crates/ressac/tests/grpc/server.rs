//! A tonic server that answers in turn.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use tokio::net::TcpListener;
use tonic::body::Body;
use tonic::codegen::tokio_stream;
use tonic::server::{Grpc, NamedService};
use tonic::transport::server::TcpIncoming;
use tonic::{Code, Request, Response, Status, Streaming};
use tower::{Service, service_fn};

use crate::codec::Text;

/// How a unary call is answered.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Answer {
    Echo,
    /// With this push-back.
    Fails(Code, Option<&'static str>),
}

#[derive(Clone)]
pub(crate) struct Server {
    pub(crate) addr: SocketAddr,
    seen: Arc<Mutex<Vec<String>>>,
    answers: &'static [Answer],
}

impl Server {
    /// Answers unary calls by these in turn, the last of them again and again.
    pub(crate) async fn start(answers: &'static [Answer]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = Server {
            addr: listener.local_addr().unwrap(),
            seen: Arc::default(),
            answers,
        };
        let router = tonic::transport::Server::builder().add_service(server.clone());
        let serving = router.serve_with_incoming(TcpIncoming::from(listener));
        tokio::spawn(async move { serving.await.unwrap() });
        server
    }

    /// The messages of unary calls and the requests of streams, in order.
    pub(crate) fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }

    fn note(&self, message: &str) -> usize {
        let mut seen = self.seen.lock().unwrap();
        seen.push(message.to_owned());
        seen.len()
    }

    fn answer(&self, message: String) -> Result<Response<String>, Status> {
        let number = self.note(&message);
        match self.answers[(number - 1).min(self.answers.len() - 1)] {
            Answer::Echo => Ok(Response::new(message)),
            Answer::Fails(code, push_back) => {
                let mut status = Status::new(code, "as the test wants it");
                if let Some(millis) = push_back {
                    let value = millis.parse().unwrap();
                    status
                        .metadata_mut()
                        .insert("grpc-retry-pushback-ms", value);
                }
                Err(status)
            }
        }
    }

    async fn call(self, request: http::Request<Body>) -> http::Response<Body> {
        let mut grpc = Grpc::new(Text);
        match request.uri().path() {
            "/test.Pay/Unary" => {
                let unary = service_fn(move |request: Request<String>| {
                    std::future::ready(self.answer(request.into_inner()))
                });
                grpc.unary(unary, request).await
            }
            "/test.Pay/Stream" => {
                let stream = service_fn(move |request: Request<String>| {
                    let message = request.into_inner();
                    self.note(&message);
                    let mut parts: Vec<_> =
                        message.split(' ').map(|word| Ok(word.to_owned())).collect();
                    parts.push(Err(Status::unavailable("in the middle")));
                    std::future::ready(Ok(Response::new(tokio_stream::iter(parts))))
                });
                grpc.server_streaming(stream, request).await
            }
            _ => {
                let both = service_fn(|request: Request<Streaming<String>>| {
                    std::future::ready(Ok(Response::new(request.into_inner())))
                });
                grpc.streaming(both, request).await
            }
        }
    }
}

impl NamedService for Server {
    const NAME: &'static str = "test.Pay";
}

impl Service<http::Request<Body>> for Server {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let server = self.clone();
        Box::pin(async move { Ok(Server::call(server, request).await) })
    }
}
