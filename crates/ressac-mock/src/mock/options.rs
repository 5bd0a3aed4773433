//! How a mock is started, and why it was not.

use std::collections::HashSet;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

/// How a mock is started, beside what it does.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where the first listener binds; the others take its address and a free port.
    /// Default `127.0.0.1:0`.
    pub bind: SocketAddr,
    /// Where the control API listens; beyond loopback it needs `control_token`. `None`: no control
    /// API of its own. Default `127.0.0.1:0`.
    pub control: Option<SocketAddr>,
    /// What a caller of the control API must show, as `Authorization: Bearer`. Default: nothing.
    pub control_token: Option<String>,
    /// Whether listeners without TLS answer `/__ressac/` too, never faulted. Default: no.
    pub control_on_plain: bool,
    /// The most entries of the journal; it also keeps below 64 MiB. Default 10 000.
    pub journal_entries: usize,
    /// Where requests go that no route takes: an `http://` URL. Default: nowhere.
    pub upstream: Option<String>,
    /// How many bytes of each direction are kept of each of the first 64 connections, for people to
    /// read; at most 64 KiB. Default 0.
    pub raw_bytes: usize,
    /// The tokens that may come: an arrival with another one, or none, is answered 404, flagged
    /// `foreign` in the journal and takes no step. `None`: any. Default: any.
    pub tokens: Option<HashSet<String>>,
    /// Where the certificate of the mock's authority is written, as PEM. Default: nowhere.
    pub ca_file: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        Self {
            bind: any,
            control: Some(any),
            control_token: None,
            control_on_plain: false,
            journal_entries: 10_000,
            upstream: None,
            raw_bytes: 0,
            tokens: None,
            ca_file: None,
        }
    }
}

/// Why a mock did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MockError {
    /// A listener could not be opened.
    #[error("cannot listen on {addr}: {source}; choose another address or port 0")]
    Bind {
        /// Where.
        addr: SocketAddr,
        /// Why not.
        source: io::Error,
    },
    /// The control API would be open to others.
    #[error("the control API cannot listen on {0}: without a token it stays on loopback")]
    ControlNotLoopback(SocketAddr),
    /// A blocking mock could not start its thread.
    #[error("cannot start a runtime: {0}")]
    Runtime(io::Error),
    /// The upstream is no URL.
    #[error("{0}")]
    Upstream(String),
    /// A step says `pass`, and there is nowhere to.
    #[error("route {0} says `pass`, and there is no upstream; give its URL")]
    NoUpstream(String),
    /// The authority could not be made.
    #[error("cannot make a certificate: {0}")]
    Certificate(String),
    /// The authority's certificate could not be written.
    #[error("cannot write {}: {source}", path.display())]
    CaFile {
        /// Where.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

/// Why a listener did not do as it was told.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ListenerError {
    /// There is none of that name.
    #[error("no listener is named {0:?}")]
    Unknown(String),
    /// A port cannot be kept while nobody listens on it.
    #[error("`down` needs SO_REUSEPORT to keep its port, which is not used on this system")]
    Unsupported,
}
