//! One request over one HTTP/1.1 connection.

use std::time::Duration;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use ressac_http::{Dialled, Failure, FailureKind, Sent, Watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout, timeout_at};

use crate::body::Outgoing;
use crate::upstream::Unanswered;

/// How long a connection may take to be ready again after a reply.
const READY: Duration = Duration::from_millis(20);

/// A connection. Dropping it closes the socket.
#[derive(Debug)]
pub(crate) struct Connection {
    sender: SendRequest<Outgoing>,
    driver: JoinHandle<()>,
    watch: Watch,
    /// A reply came over it: what TLS says from then on is no refusal of the handshake.
    answered: bool,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl Connection {
    pub(crate) async fn open(dialled: Dialled) -> Result<Self, Failure> {
        let watch = dialled.watch();
        let (sender, connection) = handshake(TokioIo::new(dialled)).await.map_err(|error| {
            Failure::new(FailureKind::Unreachable, Sent::NotSent, error.to_string())
        })?;
        let driver = tokio::spawn(async move {
            // Its error reaches the sender, where there is a request to answer for.
            let _ = connection.await;
        });
        Ok(Self {
            sender,
            driver,
            watch,
            answered: false,
        })
    }

    pub(crate) fn is_open(&self) -> bool {
        !self.sender.is_closed()
    }

    /// Sends the request and reads the reply's head.
    pub(crate) async fn exchange(
        mut self,
        request: Request<Outgoing>,
        until: Instant,
    ) -> Result<(Response<Incoming>, Self), Unanswered> {
        let ready = timeout(READY, self.sender.ready()).await;
        if !matches!(ready, Ok(Ok(()))) {
            let message = "the connection had ended before the request";
            return Err(Unanswered::unsent(message, request));
        }
        let before = self.watch.written();
        match timeout_at(until, self.sender.try_send_request(request)).await {
            Ok(Ok(reply)) => {
                self.answered = true;
                Ok((reply, self))
            }
            Ok(Err(mut failed)) => match failed.take_message() {
                Some(unsent) => {
                    let message = failed.into_error().to_string();
                    Err(Unanswered::unsent(message, unsent))
                }
                None => {
                    let failure = Failure::of_http1(&failed.into_error(), self.answered);
                    Err(self.counted(failure, before).await)
                }
            },
            Err(_) => {
                let message = "no reply in time";
                let failure = Failure::new(FailureKind::Timeout, Sent::MaybeProcessed, message);
                Err(self.counted(failure, before).await)
            }
        }
    }

    /// Closes the connection, then counts: a count taken before could still grow.
    async fn counted(mut self, mut failure: Failure, before: u64) -> Unanswered {
        self.driver.abort();
        let _ = (&mut self.driver).await;
        failure.bytes_written = self.watch.written() - before;
        if failure.bytes_written == 0 {
            failure.sent = Sent::NotSent;
        }
        failure.into()
    }
}
