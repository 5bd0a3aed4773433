//! The upstream: over which connection a request goes, and what a failure proves.
//!
//! `ressac-http` makes the connections and judges their ends. Its client gives replies whole, and
//! a proxy passes them on as they come; so requests and replies are driven here.

use std::sync::{Mutex, MutexGuard, PoisonError};

use http::uri::Scheme;
use http::{Request, Uri, response};
use ressac_http::{
    ClientConfig, Dialler, Failure, FailureKind, Http2, Sent, TlsConfig, Version, parse_url,
};
use tokio::time::Instant;

use crate::arriving::Arriving;
use crate::body::Outgoing;
use crate::fault::Fault;
use crate::shared::Shared;
use crate::told::Told;
use crate::{http1, http2};

/// Connections kept for the next request.
const MOST_IDLE: usize = 16;
/// Bytes of a reply's head over HTTP/2.
const MOST_HEAD: usize = 64 * 1024;

/// Where requests are sent on.
#[derive(Debug)]
pub(crate) struct Upstream {
    pub(crate) authority: String,
    scheme: Scheme,
    url: Uri,
    dialler: Dialler,
    fault: Fault,
    /// Connections of HTTP/1.1 that wait for their next request.
    idle: Mutex<Vec<http1::Connection>>,
    /// Those of HTTP/2, where it is spoken.
    shared: Option<Shared>,
}

/// A connection that one request uses: its own, or one that it shares with others.
#[derive(Debug)]
pub(crate) enum Link {
    Own(http1::Connection),
    Shared(http2::Lease),
}

/// A reply whose body is still to come.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) head: response::Parts,
    pub(crate) body: Arriving,
    pub(crate) link: Link,
}

/// A failure, and the request where it came back whole: not a byte of it was sent.
#[derive(Debug)]
pub(crate) struct Unanswered {
    failure: Failure,
    unsent: Option<Box<Request<Outgoing>>>,
}

impl Unanswered {
    pub(crate) fn unsent(why: impl Into<String>, request: Request<Outgoing>) -> Self {
        Self {
            failure: Failure::new(FailureKind::Eof, Sent::NotSent, why),
            unsent: Some(Box::new(request)),
        }
    }
}

impl From<Failure> for Unanswered {
    fn from(failure: Failure) -> Self {
        Self {
            failure,
            unsent: None,
        }
    }
}

impl Upstream {
    /// From `PROVE_UPSTREAM`, `PROVE_HTTP` and `PROVE_CA_FILE`.
    pub(crate) fn new(told: Told, fault: Fault) -> Result<Self, String> {
        let url = told.get("upstream").ok_or("PROVE_UPSTREAM is not set")?;
        let url = parse_url(&url).map_err(|e| format!("PROVE_UPSTREAM: {e}"))?;
        let (Some(authority), "/") = (url.authority(), url.path()) else {
            return Err(format!("PROVE_UPSTREAM: `{url}` has a path"));
        };
        let version = version(told.get("http").as_deref())?;
        let config = ClientConfig {
            version,
            tls: trust(told)?,
            ..ClientConfig::default()
        };
        Ok(Self {
            authority: authority.to_string(),
            scheme: url.scheme().cloned().unwrap_or(Scheme::HTTP),
            dialler: Dialler::new(&config).map_err(|e| e.to_string())?,
            url,
            fault,
            idle: Mutex::default(),
            shared: (version == Version::Http2).then(Shared::default),
        })
    }

    /// Where a request to `target` goes.
    pub(crate) fn url_of(&self, target: &Uri) -> String {
        format!("{}://{}{target}", self.scheme, self.authority)
    }

    /// Sends it over a connection that is open, or a fresh one. A request that is handed back
    /// unsent has met a connection that had died, and goes out on a fresh one: no attempt was made.
    pub(crate) async fn send(
        &self,
        mut request: Request<Outgoing>,
        until: Instant,
    ) -> Result<Answer, Failure> {
        let surfaced = self.surfaced();
        while let Some(link) = self.waiting().await {
            match self.exchange(link, request, until).await {
                Ok(answer) => return Ok(answer),
                Err(Unanswered {
                    unsent: Some(unsent),
                    ..
                }) => request = *unsent,
                Err(Unanswered { failure, .. }) => {
                    if matches!(failure.kind, FailureKind::Reset | FailureKind::Eof) {
                        // Those beside it are as old, and each would cost a retry to find out.
                        self.idle().clear();
                    }
                    return Err(failure);
                }
            }
        }
        let link = self.open(until).await?;
        match (self.exchange(link, request, until).await, surfaced) {
            (Err(Unanswered { failure, .. }), _) | (Ok(_), Some(failure)) => Err(failure),
            (Ok(answer), None) => Ok(answer),
        }
    }

    /// Keeps it for the next request. One that is shared is kept anyway.
    pub(crate) fn keep(&self, link: Link) {
        let Link::Own(connection) = link else {
            return;
        };
        let mut idle = self.idle();
        if idle.len() < MOST_IDLE && connection.is_open() {
            idle.push(connection);
        }
    }

    async fn waiting(&self) -> Option<Link> {
        match &self.shared {
            Some(shared) => shared.waiting().await.map(Link::Shared),
            None => self.idle().pop().map(Link::Own),
        }
    }

    async fn open(&self, until: Instant) -> Result<Link, Failure> {
        let dialled = async {
            let left = until.saturating_duration_since(Instant::now());
            self.dialler.dial(&self.url, left).await
        };
        match &self.shared {
            Some(shared) => {
                let dial = async { Http2::open(dialled.await?, MOST_HEAD).await };
                shared.open(until, dial).await.map(Link::Shared)
            }
            None => http1::Connection::open(dialled.await?).await.map(Link::Own),
        }
    }

    async fn exchange(
        &self,
        link: Link,
        request: Request<Outgoing>,
        until: Instant,
    ) -> Result<Answer, Unanswered> {
        // A timer may be late by its tick; nothing may begin when the time is over.
        if Instant::now() >= until {
            let message = "no time was left to send";
            return Err(Failure::new(FailureKind::Timeout, Sent::NotSent, message).into());
        }
        let ((head, body), link) = match link {
            Link::Own(connection) => {
                let (reply, connection) = connection.exchange(request, until).await?;
                (Arriving::over_http1(reply), Link::Own(connection))
            }
            Link::Shared(lease) => {
                let (reply, lease) = lease.exchange(&self.scheme, request, until).await?;
                (Arriving::over_http2(reply), Link::Shared(lease))
            }
        };
        Ok(Answer { head, body, link })
    }

    /// The fault: a request goes out on another connection, and downstream hears how the one before
    /// it ended.
    fn surfaced(&self) -> Option<Failure> {
        let ended = self.shared.as_ref().is_some_and(Shared::has_ended);
        (ended && self.fault.is("goaway-surfaces")).then(|| {
            let message = "the connection before it has ended";
            Failure::new(FailureKind::Invalid, Sent::MaybeProcessed, message)
        })
    }

    fn idle(&self) -> MutexGuard<'_, Vec<http1::Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// `2` is agreed on in the TLS handshake, `h2c` is known beforehand; the URL says which it is.
fn version(told: Option<&str>) -> Result<Version, String> {
    match told {
        None | Some("1.1") => Ok(Version::Http1),
        Some("2" | "h2c") => Ok(Version::Http2),
        Some(other) => Err(format!("PROVE_HTTP is `{other}`, not 1.1, 2 or h2c")),
    }
}

/// The authority of `PROVE_CA_FILE` and no other; without it the machine's.
fn trust(told: Told) -> Result<TlsConfig, String> {
    let mut tls = TlsConfig::default();
    if let Some(file) = told.get("ca_file") {
        let pem = std::fs::read(&file);
        tls.extra_ca_pem = pem.map_err(|e| format!("PROVE_CA_FILE: {file}: {e}"))?;
        tls.platform_roots = false;
    }
    Ok(tls)
}
