//! Bodies: sent again whole, or not at all.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Method, Request};
use http_body::{Body, Frame};
use ressac::{Blame, Processed, Reason};
use tower::ServiceExt;

use crate::support::{BUSY, OK, SLOW_DOWN, Server, client, end, full, plain, refused, text};

/// A stream of so many kilobytes that does not say how long it is.
struct Kilobytes(usize);

impl Body for Kilobytes {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.0 == 0 {
            return Poll::Ready(None);
        }
        self.0 -= 1;
        Poll::Ready(Some(Ok(Frame::data(Bytes::from(vec![b'k'; 1_024])))))
    }
}

fn put<B>(url: &str, body: B) -> Request<B> {
    Request::builder()
        .method(Method::PUT)
        .uri(url)
        .body(body)
        .unwrap()
}

fn kilobytes(request: &str) -> usize {
    request
        .split_once("\r\n\r\n")
        .unwrap()
        .1
        .matches('k')
        .count()
        / 1_024
}

/// EX-1, EX-4: a stream that fits is kept and sent again.
#[tokio::test]
async fn ex_1_a_stream_that_fits_is_sent_again() {
    let server = Server::start(&[BUSY, OK]).await;
    let layer = plain().body_limit(4 * 1_024);
    let reply = client(&layer)
        .oneshot(put(&server.url(), Kilobytes(4)))
        .await
        .unwrap();
    assert_eq!(end(&reply).attempts, 2);
    let sent: Vec<_> = server
        .requests()
        .iter()
        .map(|sent| kilobytes(sent))
        .collect();
    assert_eq!(sent, [4, 4]);
}

/// EX-4, PX-7: one that does not is sent once, whole; only a needed retry ends for it.
#[tokio::test]
async fn ex_4_a_stream_over_the_limit_is_sent_once() {
    let layer = plain().body_limit(4 * 1_024);
    let server = Server::start(&[OK]).await;
    let reply = client(&layer)
        .oneshot(put(&server.url(), Kilobytes(100)))
        .await
        .unwrap();
    assert_eq!((end(&reply).attempts, text(reply).await), (1, "ok".into()));
    assert_eq!(kilobytes(&server.requests()[0]), 100);

    for busy in [BUSY, SLOW_DOWN] {
        let turns: &'static [_] = Box::leak(Box::new([busy, OK]));
        let server = Server::start(turns).await;
        let reply = client(&layer)
            .oneshot(put(&server.url(), Kilobytes(100)))
            .await
            .unwrap();
        let came_to = end(&reply);
        assert_eq!(
            (came_to.reason, came_to.attempts),
            (Reason::BodyNotReplayable, 1)
        );
        assert_eq!(server.requests().len(), 1);
    }
}

/// PX-6: as long as nothing of it was taken, it can go again at any size.
#[tokio::test]
async fn px_6_a_long_body_goes_again_where_nothing_connected() {
    let (socket, addr) = refused();
    let layer = plain().body_limit(1_024);
    let sent = client(&layer).oneshot(put(&format!("http://{addr}/pay"), Kilobytes(9)));
    let error = sent.await.unwrap_err();
    assert_eq!(
        (error.reason(), error.attempts()),
        (Reason::Exhausted, 3),
        "{error}"
    );
    assert_eq!(error.processed(), Processed::No);
    drop(socket);
}

/// A body that fails by itself: ours, nothing was sent, nothing is tried again.
#[tokio::test]
async fn a_body_that_fails_is_no_attempt() {
    struct Broken;
    impl Body for Broken {
        type Data = Bytes;
        type Error = std::io::Error;
        fn poll_frame(
            self: Pin<&mut Self>,
            _cx: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
            Poll::Ready(Some(Err(std::io::Error::other("the file is gone"))))
        }
    }
    let server = Server::start(&[OK]).await;
    let error = client(&plain())
        .oneshot(put(&server.url(), Broken))
        .await
        .unwrap_err();
    assert_eq!(
        (error.reason(), error.blame()),
        (Reason::Permanent, Some(Blame::Ours))
    );
    assert!(error.to_string().contains("the file is gone"), "{error}");
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn a_request_keeps_its_length() {
    let server = Server::start(&[BUSY, OK]).await;
    client(&plain())
        .oneshot(put(&server.url(), full("12345")))
        .await
        .unwrap();
    let layer = plain().body_limit(4);
    client(&layer)
        .oneshot(put(&server.url(), full("12345")))
        .await
        .unwrap();
    let sent = server.requests();
    assert_eq!(sent.len(), 3);
    for sent in sent {
        assert!(
            sent.contains("content-length: 5\r\n") && sent.ends_with("12345"),
            "{sent}"
        );
    }
}
