//! What the file says of partners and of the gateway.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use http::Uri;

use crate::secret::Secret;
use crate::source::Place;

/// A partner as configured. Its policy is at [`Config::policy_of`](crate::Config::policy_of).
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct PartnerConfig {
    /// 1 to 64 of `a-z 0-9 _ -`, beginning with a letter or digit.
    pub name: String,
    /// `http` or `https`, a host, perhaps a path; no user-info, no query.
    pub url: Uri,
    /// The name of its policy. Default `durable`.
    pub policy: String,
    /// How the partner takes keys; `None`: it does not honour any.
    pub idempotency: Option<Idempotency>,
    /// Put on every attempt; at most 64. References are resolved, names and values valid.
    pub headers: Vec<(String, Secret)>,
    /// Certificates trusted for this partner besides the system's. The file existed at load.
    pub ca_file: Option<PathBuf>,
    /// Default [`HttpVersion::Auto`].
    pub http_version: HttpVersion,
    pub(crate) place: Place,
    pub(crate) url_place: Option<Place>,
    pub(crate) policy_place: Option<Place>,
    pub(crate) idempotency_place: Option<Place>,
}

/// How a partner takes idempotency keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Idempotency {
    /// The header that carries the key, as written.
    pub header: String,
    /// How long the partner remembers a key; above zero. Default 24 h.
    pub ttl: Duration,
    /// Send it as a quoted structured string. Default false.
    pub quoted: bool,
}

/// Which versions of HTTP are spoken to a partner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HttpVersion {
    /// Over `https` what the partner chooses in the TLS handshake, over `http` HTTP/1.1.
    #[default]
    Auto,
    /// HTTP/1.1 and nothing else.
    Http1,
    /// HTTP/2 and nothing else; over `http` by prior knowledge.
    Http2,
}

/// The gateway's own settings.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GatewayConfig {
    /// Loopback only. Default `127.0.0.1:7070`.
    pub listen: SocketAddr,
    /// Default `ressac.db` in the folder of the first configuration file.
    pub store: StoreConfig,
    /// The largest message taken, in bytes; 1 to 512 MiB. Default 10 MB.
    pub max_body: u64,
    /// The largest the store may grow, in bytes, at least twice `max_body`; `None` is "off", the
    /// default.
    pub max_store: Option<u64>,
    /// How long a delivered message stays; `None` is for ever. Default 30 days.
    pub keep: Option<Duration>,
    /// How long a graceful stop waits for the attempts in flight; at most 1 h. Default 10 s.
    pub stop_timeout: Duration,
    /// Default [`Addresses::Any`].
    pub addresses: Addresses,
}

/// Where accepted messages lie.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreConfig {
    /// An SQLite database at this path.
    Sqlite(PathBuf),
}

/// Which addresses a partner's name may have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Addresses {
    /// Any, this machine and the local network included.
    #[default]
    Any,
    /// None that is private, local or reserved.
    Public,
}

impl GatewayConfig {
    pub(crate) fn in_folder(folder: &Path) -> Self {
        GatewayConfig {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 7070)),
            store: StoreConfig::Sqlite(folder.join("ressac.db")),
            max_body: 10_000_000,
            max_store: None,
            keep: Some(Duration::from_secs(30 * 86_400)),
            stop_timeout: Duration::from_secs(10),
            addresses: Addresses::Any,
        }
    }
}

impl Default for GatewayConfig {
    fn default() -> Self {
        GatewayConfig::in_folder(Path::new(""))
    }
}
