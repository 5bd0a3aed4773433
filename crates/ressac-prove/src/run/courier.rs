//! The suite's own client, which sends operations through a proxy: one connection, one request,
//! never a retry.

use std::net::SocketAddr;
use std::path::Path;
use std::pin::pin;

use bytes::Bytes;
use http::header::{HOST, RETRY_AFTER};
use http::{HeaderMap, Request};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{Connection, SendRequest, handshake};
use hyper_util::rt::TokioIo;
use ressac_mock::Mock;
use sha2::{Digest, Sha256};
use socket2::SockRef;
use tokio::net::TcpStream;
use tokio::sync::oneshot;

use crate::plan::PlannedOp;
use crate::record::OpResult;

/// How a caller goes away before it has its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leave {
    /// It closes: FIN.
    Close,
    /// It breaks off: RST.
    Reset,
}

/// One operation, ready to be carried.
pub(super) struct Parcel {
    op: String,
    request: Request<Full<Bytes>>,
}

impl Parcel {
    /// `key_header` is where a given key stands.
    pub(super) fn new(
        op: &PlannedOp,
        body: Option<&Path>,
        listen: SocketAddr,
        key_header: &str,
    ) -> Result<Self, String> {
        let bytes = match body {
            Some(file) => std::fs::read(file)
                .map_err(|e| format!("cannot read {}: {e}", file.display()))?
                .into(),
            None => Bytes::new(),
        };
        let mut request = Request::builder()
            .method(op.method.as_str())
            .uri(&op.target)
            .header(HOST, listen.to_string());
        for (name, value) in &op.headers {
            request = request.header(name, value);
        }
        if let Some(key) = &op.key {
            request = request.header(key_header, key);
        }
        let request = request.body(Full::new(bytes));
        Ok(Self {
            op: op.id.clone(),
            request: request.map_err(|e| format!("operation {}: {e}", op.id))?,
        })
    }
}

/// Sends it through the proxy and tells what came back. Ends early if the caller leaves.
pub(super) async fn carry(
    parcel: Parcel,
    listen: SocketAddr,
    mock: &Mock,
    left: oneshot::Receiver<Leave>,
) -> OpResult {
    let Parcel { op, request } = parcel;
    let mut result = match through(request, listen, mock, left).await {
        Ok(result) => result,
        Err(error) => OpResult {
            error: Some(error),
            ..OpResult::default()
        },
    };
    (result.op, result.t) = (op, mock.now());
    result
}

async fn through(
    request: Request<Full<Bytes>>,
    listen: SocketAddr,
    mock: &Mock,
    left: oneshot::Receiver<Leave>,
) -> Result<OpResult, String> {
    let socket = TcpStream::connect(listen)
        .await
        .map_err(|e| format!("the proxy does not accept a connection: {e}"))?;
    let _ = socket.set_nodelay(true);
    let (sender, mut connection) = handshake(TokioIo::new(socket))
        .await
        .map_err(|e| chain(&e))?;
    let how = {
        let mut reply = pin!(exchange(sender, request, mock));
        let mut left = pin!(left);
        let (mut closed, mut stays) = (false, false);
        loop {
            tokio::select! {
                biased;
                // Its error reaches the exchange, which has to answer for it.
                _ = &mut connection, if !closed => closed = true,
                result = &mut reply => return Ok(result),
                how = &mut left, if !stays => match how {
                    Ok(how) => break (how, closed),
                    Err(_) => stays = true,
                }
            }
        }
    };
    if let (how, false) = how {
        go(connection, how);
    }
    Ok(OpResult {
        error: Some("the suite's client went away, as the case wants".to_owned()),
        ..OpResult::default()
    })
}

/// Closes the socket in one of two ways.
fn go(connection: Connection<TokioIo<TcpStream>, Full<Bytes>>, how: Leave) {
    let socket = connection.into_parts().io.into_inner();
    if how == Leave::Reset {
        // Closing with no time to linger is what sends a reset.
        let _ = SockRef::from(&socket).set_linger(Some(std::time::Duration::ZERO));
    }
}

async fn exchange(
    mut sender: SendRequest<Full<Bytes>>,
    request: Request<Full<Bytes>>,
    mock: &Mock,
) -> OpResult {
    let mut result = OpResult::default();
    let reply = match sender.send_request(request).await {
        Ok(reply) => reply,
        Err(error) => {
            result.error = Some(chain(&error));
            return result;
        }
    };
    result.t_head = Some(mock.now());
    let (head, mut body) = reply.into_parts();
    result.status = Some(head.status.as_u16());
    result.reason = text(&head.headers, "ressac-reason");
    result.hint_ms = text(&head.headers, RETRY_AFTER.as_str())
        .and_then(|seconds| seconds.parse::<u32>().ok())
        .map(|seconds| f64::from(seconds) * 1000.0);
    result.headers = lines(&head.headers);
    let (mut len, mut hash) = (0, Sha256::new());
    while let Some(frame) = body.frame().await {
        match frame {
            Ok(frame) => {
                let data = frame.into_data().unwrap_or_default();
                len += data.len() as u64;
                hash.update(&data);
            }
            Err(error) => {
                result.body_len = Some(len);
                result.error = Some(format!("the reply broke off: {}", chain(&error)));
                return result;
            }
        }
    }
    result.ok = head.status.is_success();
    result.body_len = Some(len);
    let digest = hash.finalize();
    result.body_sha256 = Some(digest.iter().map(|b| format!("{b:02x}")).collect());
    result
}

fn text(headers: &HeaderMap, name: &str) -> Option<String> {
    let value = headers.get(name)?;
    Some(String::from_utf8_lossy(value.as_bytes()).into_owned())
}

fn lines(headers: &HeaderMap) -> Vec<(String, String)> {
    headers
        .iter()
        .map(|(name, value)| {
            let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
            (name.as_str().to_owned(), value)
        })
        .collect()
}

/// An error with all that is below it.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut below = error.source();
    while let Some(error) = below {
        text.push_str(": ");
        text.push_str(&error.to_string());
        below = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::time::Duration;

    use super::*;

    async fn sent(script: &str, leave: Option<Leave>) -> (OpResult, ressac_mock::Mock) {
        let mock = Mock::start().await;
        let route = mock.script("GET", script);
        let target = route.url().replace(&mock.url(), "");
        let request = Request::get(target).header(HOST, "x");
        let parcel = Parcel {
            op: "1".to_owned(),
            request: request.body(Full::default()).unwrap(),
        };
        let (go, left) = oneshot::channel();
        let addr = mock.addr();
        if let Some(how) = leave {
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_millis(50)).await;
                let _ = go.send(how);
            });
            let result = carry(parcel, addr, &mock, left).await;
            return (result, mock);
        }
        drop(go);
        let result = carry(parcel, addr, &mock, left).await;
        (result, mock)
    }

    #[tokio::test]
    async fn a_reply_is_told_and_a_cut_one_is_never_ok() {
        let (whole, mock) = sent("200 body=100 h=Ressac-Reason:exhausted", None).await;
        assert!(whole.ok && whole.t_head.is_some(), "{whole:?}");
        assert_eq!(
            (whole.status, whole.body_len, whole.reason.as_deref()),
            (Some(200), Some(100), Some("exhausted"))
        );
        assert_eq!(whole.body_sha256, Some(crate::judge::pattern_sha256(100)));
        assert!(whole.t <= mock.now());
        for cut in [
            "200 cl=100 body=40",
            "200 chunked body=100 nolast",
            "200 cl=100 body=100 rst@body+10",
            "garbage=64",
            "fin@req",
        ] {
            let (result, _mock) = sent(cut, None).await;
            assert!(!result.ok && result.error.is_some(), "{cut}: {result:?}");
        }
        let (refused, _mock) = sent("503 ra=2", None).await;
        assert!(!refused.ok && refused.error.is_none(), "{refused:?}");
        assert_eq!((refused.status, refused.hint_ms), (Some(503), Some(2000.0)));
    }

    #[tokio::test]
    async fn a_caller_that_leaves_is_seen_to() {
        for how in [Leave::Close, Leave::Reset] {
            let (result, mock) = sent("200 hold=10s", Some(how)).await;
            assert!(!result.ok && result.t_head.is_none(), "{result:?}");
            let mut gone = false;
            for _ in 0..200 {
                gone = mock.journal().iter().any(|e| e.t_peer_close.is_some());
                if gone {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            assert!(gone, "{how:?}: the mock sees it");
        }
    }
}
