//! The reply of an attempt that another follows: read a little, so that its connection can be used
//! again, or closed (EX-5). Beside the operation, which waits for nobody (EX-6).

use std::pin::pin;
use std::time::Duration;

use bytes::Buf;
use http_body::Body;
use http_body_util::BodyExt;

/// Longer ones are closed: a connection costs less.
const LONGEST: usize = 64 * 1024;
const PATIENCE: Duration = Duration::from_secs(1);

pub(super) fn drain<B>(body: B)
where
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Send,
{
    if body.is_end_stream() {
        return;
    }
    // Outside of tokio it is closed.
    if let Ok(runtime) = tokio::runtime::Handle::try_current() {
        runtime.spawn(async move {
            // Whichever way it ends, the body is dropped.
            let _ = tokio::time::timeout(PATIENCE, read(body)).await;
        });
    }
}

async fn read<B: Body>(body: B) {
    let mut body = pin!(body);
    let mut left = LONGEST;
    while let Some(Ok(frame)) = body.frame().await {
        let length = frame.data_ref().map_or(0, Buf::remaining);
        match left.checked_sub(length) {
            Some(less) => left = less,
            None => return,
        }
    }
}
