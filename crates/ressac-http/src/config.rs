//! What a client is built from, with its limits.

use std::fmt;
use std::time::Duration;

use crate::address::AddressPolicy;

/// The smallest head limit the parser can work with, in bytes.
const SMALLEST_HEAD: usize = 8 * 1024;

/// The settings of a [`Client`](crate::Client). Every limit has a default; none can be switched off.
///
/// ```
/// use std::time::Duration;
/// use ressac_http::{AddressPolicy, Client, ClientConfig};
///
/// let client = Client::new(ClientConfig {
///     connect_timeout: Duration::from_secs(2),
///     address_policy: AddressPolicy::public_only(["10.20.0.0/16".parse()?]),
///     ..ClientConfig::default()
/// })?;
/// # drop(client);
///
/// let zero = ClientConfig { connect_timeout: Duration::ZERO, ..ClientConfig::default() };
/// assert!(Client::new(zero).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct ClientConfig {
    /// Time for name lookup, TCP connect and TLS handshake together. Default 5 s, above 0.
    ///
    /// Whatever it is, the time limit of the attempt ends it too: a limit that runs out before the
    /// connection stands is known to have sent nothing.
    pub connect_timeout: Duration,
    /// How long an unused connection is kept. Default 4 s, below the 5 s after which many servers
    /// close theirs (Node's default), so that a request rarely meets a closing connection.
    pub idle_timeout: Duration,
    /// Unused HTTP/1.1 connections kept for each origin. Default 8; 0 keeps none, and no HTTP/2
    /// connection is then shared either.
    pub max_idle_per_host: usize,
    /// Bytes of a reply's body that are kept. Default 1 MiB. What comes after is not kept, and
    /// [`Reply::body_limit_hit`](crate::Reply::body_limit_hit) says so.
    pub max_response_body: usize,
    /// Bytes of a reply's status line and headers. Default 64 KiB, at least 8 KiB. (The parser
    /// takes at most 100 header lines besides; over HTTP/2 each header counts 32 bytes more.)
    pub max_response_head: usize,
    /// Which addresses may be connected to. Default: any.
    pub address_policy: AddressPolicy,
    /// Whom to trust, and who we are.
    pub tls: TlsConfig,
    /// Which versions of HTTP are spoken. Default: [`Version::Auto`].
    pub version: Version,
    /// What becomes of a request with `Expect: 100-continue`.
    pub expect: ExpectContinue,
}

/// Which versions of HTTP a client speaks.
///
/// The requests to one origin share an HTTP/2 connection; over HTTP/1.1 each has its own.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Version {
    /// `http` is HTTP/1.1. `https` is what the partner chooses by ALPN: HTTP/2, else HTTP/1.1.
    #[default]
    Auto,
    /// HTTP/1.1 and nothing else.
    Http1,
    /// HTTP/2 and nothing else: over `https` the only offer, over `http` by prior knowledge
    /// (RFC 9113 §3.3). A partner that speaks no HTTP/2 there is not reached.
    Http2,
}

impl Version {
    /// `auto`, `1.1` or `2`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Version::Auto => "auto",
            Version::Http1 => "1.1",
            Version::Http2 => "2",
        }
    }
}

/// What becomes of a request whose caller set `Expect: 100-continue` (RFC 9110 §10.1.1). Without
/// a body there is nothing to wait for, and the header is left out.
#[derive(Clone, Copy, Debug)]
pub struct ExpectContinue {
    /// How long the body waits for the 100 that asks for it; then it goes out unasked. Many
    /// servers never send one. Default 1 s.
    pub wait: Duration,
    /// Whether a 417 sends the request once more, without the expectation and within the same
    /// attempt: a server that knows no expectation has refused the header, not the request.
    /// Default: yes.
    pub resend_on_417: bool,
}

impl Default for ExpectContinue {
    fn default() -> Self {
        Self {
            wait: Duration::from_secs(1),
            resend_on_417: true,
        }
    }
}

impl ClientConfig {
    /// The first setting that cannot work.
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        if self.connect_timeout.is_zero() {
            return Err(ConfigError::new(
                "connect_timeout is 0: nothing could ever connect; the default is 5 s",
            ));
        }
        if self.max_response_head < SMALLEST_HEAD {
            return Err(ConfigError::new(format!(
                "max_response_head is {} bytes, the least is {SMALLEST_HEAD}",
                self.max_response_head
            )));
        }
        Ok(())
    }
}

impl Default for ClientConfig {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(5),
            idle_timeout: Duration::from_secs(4),
            max_idle_per_host: 8,
            max_response_body: 1024 * 1024,
            max_response_head: 64 * 1024,
            address_policy: AddressPolicy::Any,
            tls: TlsConfig::default(),
            version: Version::Auto,
            expect: ExpectContinue::default(),
        }
    }
}

/// Trust and identity for `https`.
#[derive(Clone, Debug)]
pub struct TlsConfig {
    /// PEM text of certificate authorities to trust besides the platform's. Default: none.
    pub extra_ca_pem: Vec<u8>,
    /// Whether the platform's own authorities are trusted. Default: yes. With `false` only
    /// `extra_ca_pem` counts.
    pub platform_roots: bool,
    /// Our certificate, for partners that ask for one.
    pub client_certificate: Option<ClientCertificate>,
}

impl Default for TlsConfig {
    fn default() -> Self {
        Self {
            extra_ca_pem: Vec::new(),
            platform_roots: true,
            client_certificate: None,
        }
    }
}

/// A client certificate with its private key. `Debug` does not show the key.
#[derive(Clone)]
pub struct ClientCertificate {
    /// PEM text of the certificate, then its intermediates.
    pub chain_pem: Vec<u8>,
    /// PEM text of the private key (PKCS#8, PKCS#1 or SEC1).
    pub key_pem: Vec<u8>,
}

impl fmt::Debug for ClientCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientCertificate")
            .field("chain_pem", &format_args!("{} bytes", self.chain_pem.len()))
            .field("key_pem", &"(secret)")
            .finish()
    }
}

/// Why a [`Client`](crate::Client) cannot be built. The text says what to change.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub struct ConfigError(String);

impl ConfigError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_key_stays_out_of_debug_output() {
        let shown = format!(
            "{:?}",
            ClientCertificate {
                chain_pem: b"chain".to_vec(),
                key_pem: b"hush".to_vec()
            }
        );
        assert!(shown.contains("(secret)"));
        assert!(!shown.contains("hush") && !shown.contains("104, 117"));
    }

    #[test]
    fn a_head_limit_the_parser_cannot_hold_is_refused_not_a_panic() {
        let config = ClientConfig {
            max_response_head: 100,
            ..ClientConfig::default()
        };
        assert!(config.check().unwrap_err().to_string().contains("8192"));
    }
}
