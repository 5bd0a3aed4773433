//! `RetryLayer` over tonic: a real channel and a real server, and no generated code.
#![cfg(all(feature = "tower", feature = "http2"))]
#![allow(clippy::unwrap_used)]

mod codec;
mod server;

use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use http::Request;
use http::uri::PathAndQuery;
use ressac::policy::{Backoff, Jitter};
use ressac::tower::{Idempotent, ReplayBody, RetryLayer};
use ressac::{End, Partner, Policy, Reason};
use tokio::sync::mpsc;
use tonic::body::Body;
use tonic::codegen::tokio_stream::{Stream, StreamExt};
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Response, Status};
use tower::ServiceBuilder;

use codec::Text;
use server::{Answer, Server};

type Layered = tower::util::MapRequest<Channel, fn(Request<ReplayBody>) -> Request<Body>>;
type Client = tonic::client::Grpc<ressac::tower::Retry<Layered>>;

fn policy() -> Policy {
    let backoff = Backoff {
        base: Duration::from_millis(5),
        jitter: Jitter::None,
        ..Policy::sync().backoff
    };
    Policy {
        retries: 3,
        backoff,
        attempt_timeout: Duration::from_secs(20),
        ..Policy::sync()
    }
}

fn tonic_body(request: Request<ReplayBody>) -> Request<Body> {
    request.map(Body::new)
}

fn client(addr: SocketAddr, layer: RetryLayer) -> Client {
    let channel = Endpoint::from_shared(format!("http://{addr}"))
        .unwrap()
        .connect_lazy();
    let map: fn(Request<ReplayBody>) -> Request<Body> = tonic_body;
    let service = ServiceBuilder::new()
        .layer(layer)
        .map_request(map)
        .service(channel);
    tonic::client::Grpc::new(service)
}

fn layer() -> RetryLayer {
    RetryLayer::new(Partner::new(policy()))
}

fn reads() -> RetryLayer {
    layer().idempotent(|parts| parts.uri.path().starts_with("/test.Pay/"))
}

async fn unary(client: &mut Client, says: &str) -> Result<Response<String>, Status> {
    client.ready().await.unwrap();
    let request = tonic::Request::new(says.to_owned());
    client
        .unary(request, PathAndQuery::from_static("/test.Pay/Unary"), Text)
        .await
}

#[tokio::test]
async fn vr_7_unavailable_is_repeated_where_the_caller_allows_it() {
    let server = Server::start(&[
        Answer::Fails(Code::Unavailable, None),
        Answer::Fails(Code::ResourceExhausted, None),
        Answer::Fails(Code::DeadlineExceeded, None),
        Answer::Echo,
    ])
    .await;
    let reply = unary(&mut client(server.addr, reads()), "10 EUR")
        .await
        .unwrap();
    assert_eq!(reply.extensions().get::<End>().unwrap().attempts, 4);
    assert_eq!(reply.into_inner(), "10 EUR");
    // EX-1: the same message each time.
    assert_eq!(server.seen(), ["10 EUR"; 4]);
}

/// VR-1: every gRPC call is a POST, and UNAVAILABLE proves nothing.
#[tokio::test]
async fn vr_1_without_a_word_from_the_caller_a_call_is_made_once() {
    for code in [
        Code::Unavailable,
        Code::DeadlineExceeded,
        Code::ResourceExhausted,
    ] {
        let answers: &'static [Answer] = Box::leak(Box::new([Answer::Fails(code, None)]));
        let server = Server::start(answers).await;
        let status = unary(&mut client(server.addr, layer()), "10 EUR")
            .await
            .unwrap_err();
        // PX-4: the server's own words.
        assert_eq!(
            (status.code(), status.message()),
            (code, "as the test wants it")
        );
        assert_eq!(server.seen().len(), 1);
    }
}

#[tokio::test]
async fn what_another_attempt_cannot_mend_is_not_repeated() {
    for code in [
        Code::Cancelled,
        Code::Unknown,
        Code::InvalidArgument,
        Code::NotFound,
        Code::AlreadyExists,
        Code::PermissionDenied,
        Code::FailedPrecondition,
        Code::Aborted,
        Code::OutOfRange,
        Code::Unimplemented,
        Code::Internal,
        Code::DataLoss,
        Code::Unauthenticated,
    ] {
        let answers: &'static [Answer] = Box::leak(Box::new([Answer::Fails(code, None)]));
        let server = Server::start(answers).await;
        let status = unary(&mut client(server.addr, reads()), "x")
            .await
            .unwrap_err();
        assert_eq!((status.code(), server.seen().len()), (code, 1));
    }
}

#[tokio::test]
async fn one_call_can_be_marked() {
    let server = Server::start(&[Answer::Fails(Code::Unavailable, None), Answer::Echo]).await;
    let mut client = client(server.addr, layer());
    client.ready().await.unwrap();
    let mut request = tonic::Request::new("x".to_owned());
    request.extensions_mut().insert(Idempotent);
    let path = PathAndQuery::from_static("/test.Pay/Unary");
    let reply = client.unary(request, path, Text).await.unwrap();
    assert_eq!((reply.into_inner(), server.seen().len()), ("x".into(), 2));
}

/// gRFC A6: a push-back is the least wait; a negative one says never.
#[tokio::test]
async fn ra_3_a_push_back_is_kept() {
    let server =
        Server::start(&[Answer::Fails(Code::Unavailable, Some("400")), Answer::Echo]).await;
    let start = Instant::now();
    unary(&mut client(server.addr, reads()), "x").await.unwrap();
    assert!(
        start.elapsed() >= Duration::from_millis(400),
        "{:?}",
        start.elapsed()
    );

    for never in ["-1", "soon"] {
        let answers = [Answer::Fails(Code::Unavailable, Some(never)), Answer::Echo];
        let server = Server::start(Box::leak(Box::new(answers))).await;
        let status = unary(&mut client(server.addr, reads()), "x")
            .await
            .unwrap_err();
        assert_eq!((status.code(), server.seen().len()), (Code::Unavailable, 1));
    }
}

/// After the last attempt the status is the server's, not one of ours.
#[tokio::test]
async fn the_last_status_is_returned() {
    let server = Server::start(&[Answer::Fails(Code::Unavailable, None)]).await;
    let status = unary(&mut client(server.addr, reads()), "x")
        .await
        .unwrap_err();
    assert_eq!((status.code(), server.seen().len()), (Code::Unavailable, 4));
    assert_eq!(status.message(), "as the test wants it");
}

/// A port where nobody listens: proven unsent, so any call is repeated; tonic's error says why.
#[tokio::test]
async fn a_refused_connection_is_repeated_whatever_the_call() {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    let any: SocketAddr = "127.0.0.1:0".parse().unwrap();
    socket.bind(&any.into()).unwrap();
    let addr = socket.local_addr().unwrap().as_socket().unwrap();
    let status = unary(&mut client(addr, layer()), "x").await.unwrap_err();
    let mut source = std::error::Error::source(&status);
    let error = loop {
        let current = source.expect("the reason stands in the chain");
        if let Some(error) = current.downcast_ref::<ressac::RetryError<ressac::tower::Failure>>() {
            break error;
        }
        source = current.source();
    };
    assert_eq!(
        (error.reason(), error.attempts()),
        (Reason::Exhausted, 4),
        "{error}"
    );
    assert_eq!(error.processed(), ressac::Processed::No);
}

/// PX-9: a reply that has begun is the answer; what breaks in it is not repeated, and all of it is
/// handed through as it comes.
#[tokio::test]
async fn px_9_a_stream_that_has_begun_is_not_repeated() {
    let server = Server::start(&[Answer::Echo]).await;
    let mut client = client(server.addr, reads());
    client.ready().await.unwrap();
    let path = PathAndQuery::from_static("/test.Pay/Stream");
    let request = tonic::Request::new("a b c".to_owned());
    let mut stream = client
        .server_streaming(request, path, Text)
        .await
        .unwrap()
        .into_inner();
    let mut words = Vec::new();
    let status = loop {
        match stream.next().await.unwrap() {
            Ok(word) => words.push(word),
            Err(status) => break status,
        }
    };
    assert_eq!(words, ["a", "b", "c"]);
    assert_eq!((status.code(), server.seen().len()), (Code::Unavailable, 1));
}

struct Words(mpsc::Receiver<String>);

impl Stream for Words {
    type Item = String;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<String>> {
        self.0.poll_recv(cx)
    }
}

/// PX-8: a call whose next message hangs on the reply to the last: nothing waits for its end.
#[tokio::test]
async fn px_8_a_conversation_is_not_waited_for() {
    let server = Server::start(&[Answer::Echo]).await;
    let mut client = client(server.addr, reads());
    client.ready().await.unwrap();
    let (says, words) = mpsc::channel(1);
    says.send("one".to_owned()).await.unwrap();
    let path = PathAndQuery::from_static("/test.Pay/Both");
    let call = client.streaming(tonic::Request::new(Words(words)), path, Text);
    let call = tokio::time::timeout(Duration::from_secs(20), call);
    let mut replies = call
        .await
        .expect("it waits for the end")
        .unwrap()
        .into_inner();
    assert_eq!(replies.next().await.unwrap().unwrap(), "one");
    says.send("two".to_owned()).await.unwrap();
    assert_eq!(replies.next().await.unwrap().unwrap(), "two");
    drop(says);
    assert!(replies.next().await.is_none());
}
