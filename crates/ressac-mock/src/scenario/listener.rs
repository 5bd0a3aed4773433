//! What a listener is.

use std::fmt;
use std::time::Duration;

use crate::step::{Cut, Times};

/// One socket that takes connections.
#[derive(Debug, Clone, PartialEq)]
pub struct ListenerSpec {
    /// Its name, unique.
    pub name: String,
    /// Whether HTTP/1.1 is spoken.
    pub http1: bool,
    /// Whether HTTP/2 is: with TLS by ALPN, without it by prior knowledge.
    pub http2: bool,
    /// Its certificate; `None`: no TLS.
    pub certificate: Option<Certificate>,
    /// What accepted connections meet, by number.
    pub accept: AcceptScript,
    /// Where raw bytes are forwarded to; then no HTTP is spoken at all.
    pub tcp: Option<TcpSpec>,
}

impl ListenerSpec {
    /// Without TLS: HTTP/1.1, and HTTP/2 by prior knowledge.
    pub fn plain(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            http1: true,
            http2: true,
            certificate: None,
            accept: AcceptScript::default(),
            tcp: None,
        }
    }

    /// With TLS: HTTP/2 and HTTP/1.1, by ALPN.
    pub fn tls(name: &str, certificate: Certificate) -> Self {
        Self {
            certificate: Some(certificate),
            ..Self::plain(name)
        }
    }

    /// `http` or `https`.
    pub(crate) fn scheme(&self) -> &'static str {
        match (&self.tcp, &self.certificate) {
            (Some(_), _) => "tcp",
            (None, Some(_)) => "https",
            (None, None) => "http",
        }
    }
}

/// What a TLS listener shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Certificate {
    /// Signed by the mock's own authority, for `localhost`, `127.0.0.1` and `::1`.
    Valid,
    /// Its time is over.
    Expired,
    /// Its time has not come.
    NotYet,
    /// For `wrong.invalid`.
    WrongHost,
    /// Signed by an authority that nobody was told of.
    Untrusted,
    /// Signed by itself.
    SelfSigned,
}

impl Certificate {
    /// The words of a scenario file.
    pub(crate) const NAMES: [(&'static str, Self); 6] = [
        ("valid", Self::Valid),
        ("expired", Self::Expired),
        ("not-yet", Self::NotYet),
        ("wrong-host", Self::WrongHost),
        ("untrusted", Self::Untrusted),
        ("self-signed", Self::SelfSigned),
    ];
}

/// What accepted connections meet, one after another: `rst x2, ok x*`.
///
/// The words are `ok`, `fin`, `rst` and `stall`; on TLS also `fin@hello`, `rst@hello`,
/// `alert=NAME` and `stall@hello`, which first read the ClientHello.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcceptScript {
    /// The steps; the last one repeats for ever.
    pub steps: Vec<(AcceptAction, Times)>,
}

impl Default for AcceptScript {
    /// `ok x*`.
    fn default() -> Self {
        Self {
            steps: vec![(AcceptAction::Ok, Times::Forever)],
        }
    }
}

impl AcceptScript {
    /// What connection `n` (from 1) meets.
    pub fn action_for(&self, n: u64) -> AcceptAction {
        let mut left = n.saturating_sub(1);
        for (action, times) in &self.steps {
            match times {
                Times::N(k) if left >= *k => left -= k,
                _ => return *action,
            }
        }
        AcceptAction::Ok
    }

    /// Whether some step needs TLS.
    pub(crate) fn needs_tls(&self) -> bool {
        self.steps.iter().any(|(a, _)| a.reads_hello())
    }
}

/// What an accepted connection meets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AcceptAction {
    /// It is served.
    Ok,
    /// FIN at once.
    Fin,
    /// RST at once.
    Rst,
    /// Open and silent; nothing is read.
    Stall,
    /// FIN after the ClientHello.
    FinHello,
    /// RST after the ClientHello.
    RstHello,
    /// Open and silent after the ClientHello.
    StallHello,
    /// A fatal TLS alert with this number after the ClientHello (RFC 8446, 6.2), then FIN.
    Alert(u8),
}

impl AcceptAction {
    /// Alerts by name.
    pub(crate) const ALERTS: [(&'static str, u8); 14] = [
        ("close_notify", 0),
        ("unexpected_message", 10),
        ("bad_record_mac", 20),
        ("handshake_failure", 40),
        ("bad_certificate", 42),
        ("certificate_revoked", 44),
        ("certificate_expired", 45),
        ("certificate_unknown", 46),
        ("illegal_parameter", 47),
        ("decode_error", 50),
        ("protocol_version", 70),
        ("internal_error", 80),
        ("unrecognized_name", 112),
        ("no_application_protocol", 120),
    ];

    /// Whether it waits for a ClientHello.
    pub(crate) fn reads_hello(self) -> bool {
        matches!(
            self,
            Self::FinHello | Self::RstHello | Self::StallHello | Self::Alert(_)
        )
    }
}

impl fmt::Display for AcceptAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ok => "ok",
            Self::Fin => "fin",
            Self::Rst => "rst",
            Self::Stall => "stall",
            Self::FinHello => "fin@hello",
            Self::RstHello => "rst@hello",
            Self::StallHello => "stall@hello",
            Self::Alert(n) => {
                return match Self::ALERTS.iter().find(|(_, code)| code == n) {
                    Some((name, _)) => write!(f, "alert={name}"),
                    None => write!(f, "alert={n}"),
                };
            }
        })
    }
}

/// `tcp = { to = ".." }`: raw bytes to another address, with faults for each direction.
#[derive(Debug, Clone, PartialEq)]
pub struct TcpSpec {
    /// Where they go: host and port.
    pub to: String,
    /// Faults on the way from the client.
    pub request: TcpFaults,
    /// Faults on the way to the client.
    pub reply: TcpFaults,
    /// Whether the listener refuses.
    pub down: bool,
    /// How long the faults last, from the start of the mock; at most an hour.
    pub ttl: Duration,
}

/// Faults of one direction of a raw forwarder.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct TcpFaults {
    /// Every byte comes so much later.
    pub latency: Duration,
    /// Bytes a second, at most.
    pub rate: Option<u64>,
    /// The end, after so many bytes.
    pub cut: Option<(Cut, u64)>,
}
