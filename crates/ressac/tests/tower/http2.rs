//! HTTP/2: what is refused was not processed (RFC 9113 §8.7).

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Instant;

use bytes::Bytes;
use h2::Reason as Code;
use http::{HeaderMap, Method, Request, Response};
use http_body::{Body, Frame};
use ressac::tower::Idempotent;
use ressac::{Processed, Reason};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tower::ServiceExt;

use crate::support::{end, full, h2_client, plain, text};

#[derive(Clone, Copy, Debug)]
enum Does {
    Resets(Code),
    Answers(u16),
}

/// What arrived: method, body, trailers.
type Seen = Arc<Mutex<Vec<(Method, Bytes, Option<HeaderMap>)>>>;

/// Does these in turn with each request, on whatever connection.
async fn server(turns: &'static [Does]) -> (SocketAddr, Seen) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (addr, seen) = (listener.local_addr().unwrap(), Seen::default());
    let log = Arc::clone(&seen);
    tokio::spawn(async move {
        loop {
            let (socket, _) = listener.accept().await.unwrap();
            tokio::spawn(serve(socket, turns, Arc::clone(&log)));
        }
    });
    (addr, seen)
}

async fn serve(socket: TcpStream, turns: &'static [Does], seen: Seen) {
    let mut connection = h2::server::handshake(socket).await.unwrap();
    while let Some(Ok((request, mut respond))) = connection.accept().await {
        let seen = Arc::clone(&seen);
        tokio::spawn(async move {
            let (parts, mut body) = request.into_parts();
            let mut bytes = Vec::new();
            while let Some(Ok(data)) = body.data().await {
                bytes.extend_from_slice(&data);
            }
            let trailers = body.trailers().await.ok().flatten();
            let number = {
                let mut seen = seen.lock().unwrap();
                seen.push((parts.method, bytes.into(), trailers));
                seen.len()
            };
            match turns[(number - 1).min(turns.len() - 1)] {
                Does::Resets(code) => respond.send_reset(code),
                Does::Answers(status) => {
                    let head = Response::builder().status(status).body(()).unwrap();
                    let mut stream = respond.send_response(head, false).unwrap();
                    stream.send_data(Bytes::from_static(b"done"), true).unwrap();
                }
            }
        });
    }
}

fn request(method: Method, addr: SocketAddr) -> Request<http_body_util::Full<Bytes>> {
    let uri = format!("http://{addr}/pay");
    Request::builder()
        .method(method)
        .uri(uri)
        .body(full("10 EUR"))
        .unwrap()
}

/// VR-8: it goes again at once, whatever its method.
#[tokio::test]
async fn vr_8_a_refused_stream_was_not_processed() {
    let (addr, seen) = server(&[Does::Resets(Code::REFUSED_STREAM), Does::Answers(200)]).await;
    let reply = h2_client(&plain())
        .oneshot(request(Method::POST, addr))
        .await
        .unwrap();
    let came_to = end(&reply);
    assert_eq!((came_to.reason, came_to.attempts), (Reason::Delivered, 2));
    assert_eq!(text(reply).await, "done");
    let seen = seen.lock().unwrap();
    assert_eq!(seen.len(), 2);
    assert!(
        seen.iter()
            .all(|(method, body, _)| method == Method::POST && body == "10 EUR")
    );
}

#[tokio::test]
async fn any_other_reset_proves_nothing() {
    for code in [Code::INTERNAL_ERROR, Code::CANCEL, Code::ENHANCE_YOUR_CALM] {
        let turns: &'static [Does] = Box::leak(Box::new([Does::Resets(code), Does::Answers(200)]));
        let (addr, seen) = server(turns).await;
        let error = h2_client(&plain())
            .oneshot(request(Method::POST, addr))
            .await
            .unwrap_err();
        assert_eq!(error.reason(), Reason::Ambiguous, "{code:?}: {error}");
        assert_eq!((error.processed(), error.attempts()), (Processed::Maybe, 1));
        assert_eq!(seen.lock().unwrap().len(), 1);
        let reply = h2_client(&plain())
            .oneshot(request(Method::GET, addr))
            .await
            .unwrap();
        assert_eq!(reply.status(), 200);
    }
}

/// A `GOAWAY` whose last stream is below ours: the server says that it never looked at ours.
#[tokio::test]
async fn vr_8_a_goaway_below_our_stream_was_not_processed() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let seen = Seen::default();
    let log = Arc::clone(&seen);
    let away = tokio::spawn(async move {
        let (mut first, _) = listener.accept().await.unwrap();
        let head = go_away(&mut first).await;
        let (second, _) = listener.accept().await.unwrap();
        serve(second, &[Does::Answers(200)], log).await;
        head
    });
    let start = Instant::now();
    let client = h2_client(&plain());
    let reply = client
        .clone()
        .oneshot(request(Method::POST, addr))
        .await
        .unwrap();
    assert_eq!(
        (reply.status().as_u16(), end(&reply).reason),
        (200, Reason::Delivered)
    );
    assert_eq!(text(reply).await, "done");
    assert_eq!(seen.lock().unwrap().len(), 1, "after {:?}", start.elapsed());
    drop(client);
    assert!(
        away.await.unwrap(),
        "the first connection got the request too"
    );
}

/// Reads up to the request's HEADERS, then says GOAWAY with last stream 0 and no error. Answers
/// whether there were any.
async fn go_away(socket: &mut TcpStream) -> bool {
    let mut preface = [0; 24];
    socket.read_exact(&mut preface).await.unwrap();
    // An empty SETTINGS.
    socket
        .write_all(&[0, 0, 0, 4, 0, 0, 0, 0, 0])
        .await
        .unwrap();
    loop {
        let mut head = [0; 9];
        if socket.read_exact(&mut head).await.is_err() {
            return false;
        }
        let length = usize::from(head[1]) << 8 | usize::from(head[2]);
        let mut payload = vec![0; length];
        socket.read_exact(&mut payload).await.unwrap();
        if head[3] == 1 {
            break;
        }
    }
    let frame = [0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    socket.write_all(&frame).await.unwrap();
    // Until the client has taken note, and closes.
    let mut rest = Vec::new();
    let _ = socket.read_to_end(&mut rest).await;
    true
}

/// Trailers of a request are part of it.
#[tokio::test]
async fn trailers_are_sent_again() {
    struct WithTrailers(Vec<Frame<Bytes>>);
    impl Body for WithTrailers {
        type Data = Bytes;
        type Error = std::convert::Infallible;
        fn poll_frame(
            mut self: Pin<&mut Self>,
            _cx: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
            Poll::Ready(self.0.pop().map(Ok))
        }
    }
    let (addr, seen) = server(&[Does::Answers(503), Does::Answers(200)]).await;
    let mut trailers = HeaderMap::new();
    trailers.insert("checksum", "7".parse().unwrap());
    let body = WithTrailers(vec![
        Frame::trailers(trailers.clone()),
        Frame::data(Bytes::from_static(b"10 EUR")),
    ]);
    let mut request = Request::post(format!("http://{addr}/pay"))
        .body(body)
        .unwrap();
    request.extensions_mut().insert(Idempotent);
    let reply = h2_client(&plain()).oneshot(request).await.unwrap();
    assert_eq!(end(&reply).attempts, 2);
    let seen = seen.lock().unwrap();
    assert_eq!(seen.len(), 2);
    for (_, body, sent) in seen.iter() {
        assert_eq!(body, "10 EUR");
        assert_eq!(sent.as_ref(), Some(&trailers));
    }
}
