//! One request as a stream of HTTP/2: its head, its body, its reply.

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;

use bytes::Bytes;
use h2::client::ResponseFuture;
use h2::{RecvStream, SendStream};
use http::header::{CONNECTION, HOST};
use http::{HeaderName, Request, Response, StatusCode, Uri, Version};

use crate::answer::Kept;
use crate::expect::Gate;
use crate::target::Origin;

/// Headers of one HTTP/1.1 connection, which HTTP/2 forbids (RFC 9113 §8.2.2).
const HOP: [HeaderName; 3] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
];

/// The head in the form of HTTP/2 (RFC 9113 §8.3.1), and the body.
pub(crate) fn for_stream(origin: &Origin, request: Request<Bytes>) -> (Request<()>, Bytes) {
    let (mut parts, body) = request.into_parts();
    let authority = parts.headers.remove(HOST);
    for name in &HOP {
        parts.headers.remove(name);
    }
    let scheme = if origin.tls { "https" } else { "http" };
    let mut uri = Uri::builder().scheme(scheme);
    if let Some(authority) = &authority {
        uri = uri.authority(authority.as_bytes());
    }
    if let Some(path) = parts.uri.path_and_query() {
        uri = uri.path_and_query(path.clone());
    }
    // Made of the parts of a URI; if it could not be, h2 would refuse it as it is.
    if let Ok(uri) = uri.build() {
        parts.uri = uri;
    }
    parts.version = Version::HTTP_2;
    (Request::from_parts(parts, ()), body)
}

/// Runs `work`, and beside it what is still to be sent.
pub(crate) async fn beside<T>(
    work: impl Future<Output = T>,
    sending: Pin<&mut impl Future<Output = Infallible>>,
) -> T {
    tokio::select! {
        biased;
        done = work => done,
        never = sending => match never {},
    }
}

/// Sends the body, as far as the partner takes it. Never returns: the reply decides.
pub(crate) async fn send(
    body: Option<(SendStream<Bytes>, Bytes)>,
    gate: Option<Gate>,
) -> Infallible {
    // Kept to the end: a stream that is dropped before its body is whole is reset.
    let mut kept = body;
    if let Some((stream, body)) = &mut kept {
        if let Some(gate) = gate {
            gate.opened().await;
        }
        while !body.is_empty() {
            stream.reserve_capacity(body.len());
            let room = match poll_fn(|cx| stream.poll_capacity(cx)).await {
                Some(Ok(room)) => room.min(body.len()),
                // The stream is over; what it came to, the reply's side hears.
                Some(Err(_)) | None => break,
            };
            let piece = body.split_to(room);
            if room > 0 && stream.send_data(piece, body.is_empty()).is_err() {
                break;
            }
        }
    }
    std::future::pending().await
}

/// The head of the final reply. A 100 before it opens the gate.
pub(crate) async fn head(
    mut response: ResponseFuture,
    gate: Option<Gate>,
) -> Result<Response<RecvStream>, h2::Error> {
    poll_fn(|cx| {
        while let Some(gate) = &gate
            && let Poll::Ready(Some(Ok(interim))) = response.poll_informational(cx)
        {
            if interim.status() == StatusCode::CONTINUE {
                gate.open();
            }
        }
        Pin::new(&mut response).poll(cx)
    })
    .await
}

/// The body, and whether it is longer than the limit. h2 holds it to the announced length.
pub(crate) async fn read(mut body: RecvStream, limit: usize) -> Result<(Bytes, bool), h2::Error> {
    let mut kept = Kept::new(limit);
    while let Some(data) = body.data().await {
        let data = data?;
        if !kept.add(&data) {
            return Ok((kept.freeze(), true));
        }
        body.flow_control().release_capacity(data.len())?;
    }
    Ok((kept.freeze(), false))
}
