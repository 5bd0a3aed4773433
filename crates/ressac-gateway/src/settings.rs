//! What a gateway needs to know, already checked: from `ressac.toml` or from code.

use std::net::SocketAddr;
use std::time::Duration;

use http::{HeaderMap, HeaderName, Uri};
use ressac_http::ClientConfig;
use ressac_policy::Policy;

/// The settings of a [`Gateway`](crate::Gateway).
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where the API listens. Loopback only, while there are no tokens. Port 0 picks a free one.
    pub listen: SocketAddr,
    /// The largest body accepted, in bytes.
    pub max_body: usize,
    /// How long a delivered message stays in the store; `None` is for ever. Default 30 days.
    pub keep: Option<Duration>,
    /// How long a graceful stop waits for attempts in flight.
    pub stop_timeout: Duration,
    /// The partners, each with its own name.
    pub partners: Vec<PartnerSettings>,
}

impl Settings {
    /// The defaults: loopback, port 7070, 10 MB bodies, 10 s to stop, no partners.
    #[must_use]
    pub fn new() -> Self {
        Settings {
            listen: SocketAddr::from(([127, 0, 0, 1], 7070)),
            max_body: 10_000_000,
            keep: Some(Duration::from_secs(30 * 86_400)),
            stop_timeout: Duration::from_secs(10),
            partners: Vec::new(),
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Settings::new()
    }
}

/// A system to deliver to.
#[derive(Clone, Debug)]
pub struct PartnerSettings {
    /// Its name in paths, logs and labels.
    pub name: String,
    /// Where it is: `http` or `https`, no query; a message's path is appended.
    pub url: Uri,
    /// Its policy; durable.
    pub policy: Policy,
    /// Whether it honours idempotency keys. `None`: no key goes on the wire.
    pub idempotency: Option<Idempotency>,
    /// Headers of every attempt, over what came with the message. Values marked sensitive stay out
    /// of logs.
    pub headers: HeaderMap,
    /// The connection: trust, limits, addresses, the version of HTTP.
    pub client: ClientConfig,
}

impl PartnerSettings {
    /// A partner at this URL with the built-in durable policy, honouring no keys.
    #[must_use]
    pub fn new(name: impl Into<String>, url: Uri) -> Self {
        PartnerSettings {
            name: name.into(),
            url,
            policy: Policy::durable(),
            idempotency: None,
            headers: HeaderMap::new(),
            client: ClientConfig::default(),
        }
    }
}

/// A partner's promise to do one key's request once.
#[derive(Clone, Debug)]
pub struct Idempotency {
    /// The header its key goes under.
    pub header: HeaderName,
    /// How long it remembers; `None` is for ever.
    pub ttl: Option<Duration>,
    /// Sends the key as a structured string, in quotes (RFC 9651 §3.3.3).
    pub quoted: bool,
}
