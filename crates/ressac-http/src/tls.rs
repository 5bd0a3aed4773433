//! TLS: whom to trust, and what a failed handshake means.

use std::error::Error as StdError;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use rustls::client::WantsClientCert;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{AlertDescription, ClientConfig, ConfigBuilder, RootCertStore};
use rustls_platform_verifier::Verifier;

use crate::config::{ClientCertificate, ConfigError, TlsConfig, Version};
use crate::failure::FailureKind;
use crate::target::Host;

/// What `https` needs, or why it cannot work on this machine: a client that only speaks `http`
/// must not fail for want of certificates.
pub(crate) type Connector = Result<Arc<ClientConfig>, String>;

const HTTP1: &[u8] = b"http/1.1";
/// What ALPN calls HTTP/2 over TLS (RFC 9113 §3.1).
pub(crate) const HTTP2: &[u8] = b"h2";

pub(crate) fn connector(config: &TlsConfig, version: Version) -> Result<Connector, ConfigError> {
    let extra = certificates(&config.extra_ca_pem, "extra_ca_pem")?;
    if !config.platform_roots && extra.is_empty() {
        return Err(ConfigError::new(
            "platform_roots is off and extra_ca_pem is empty: no partner could be trusted",
        ));
    }
    let wants_identity = match trust(config, extra)? {
        Ok(builder) => builder,
        Err(reason) => return Ok(Err(reason)),
    };
    let mut tls = match &config.client_certificate {
        None => wants_identity.with_no_client_auth(),
        Some(certificate) => identity(wants_identity, certificate)?,
    };
    tls.alpn_protocols = match version {
        Version::Auto => vec![HTTP2.to_vec(), HTTP1.to_vec()],
        Version::Http1 => vec![HTTP1.to_vec()],
        Version::Http2 => vec![HTTP2.to_vec()],
    };
    Ok(Ok(Arc::new(tls)))
}

type WantsIdentity = ConfigBuilder<ClientConfig, WantsClientCert>;

fn trust(
    config: &TlsConfig,
    extra: Vec<CertificateDer<'static>>,
) -> Result<Result<WantsIdentity, String>, ConfigError> {
    // Passed by hand: a process default may be missing, or somebody else's.
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| ConfigError::new(format!("TLS cannot be set up: {error}")))?;

    let mut own = RootCertStore::empty();
    for certificate in extra.iter().cloned() {
        own.add(certificate).map_err(|error| {
            ConfigError::new(format!(
                "extra_ca_pem holds a certificate that is none: {error}"
            ))
        })?;
    }
    if !config.platform_roots {
        return Ok(Ok(builder.with_root_certificates(own)));
    }
    let verifier = match extra.is_empty() {
        true => platform(provider),
        false => Verifier::new_with_extra_roots(extra, provider).map(Arc::new),
    };
    Ok(match verifier {
        Ok(verifier) => Ok(builder
            .dangerous()
            .with_custom_certificate_verifier(verifier)),
        Err(error) => Err(format!(
            "the certificate authorities of this machine cannot be used ({error}); install them, \
             or name one as extra CA"
        )),
    })
}

/// The machine's authorities, read once in a process: a gateway has a client for each partner, and
/// reading them takes ten milliseconds. What could not be read is tried again.
fn platform(provider: Arc<CryptoProvider>) -> Result<Arc<Verifier>, rustls::Error> {
    static READ: Mutex<Option<Arc<Verifier>>> = Mutex::new(None);
    let mut read = READ.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(verifier) = &*read {
        return Ok(Arc::clone(verifier));
    }
    let verifier = Arc::new(Verifier::new_with_extra_roots([], provider)?);
    *read = Some(Arc::clone(&verifier));
    Ok(verifier)
}

fn identity(
    builder: WantsIdentity,
    certificate: &ClientCertificate,
) -> Result<ClientConfig, ConfigError> {
    let chain = certificates(&certificate.chain_pem, "the client certificate")?;
    if chain.is_empty() {
        return Err(ConfigError::new(
            "the client certificate's PEM holds no certificate",
        ));
    }
    // The key's own error is not repeated: it may quote the text it failed on.
    let key = PrivateKeyDer::from_pem_slice(&certificate.key_pem)
        .map_err(|_| ConfigError::new("the client certificate's key is no PEM private key"))?;
    builder.with_client_auth_cert(chain, key).map_err(|error| {
        ConfigError::new(format!(
            "the client certificate and its key do not work: {error}"
        ))
    })
}

fn certificates(pem: &[u8], what: &str) -> Result<Vec<CertificateDer<'static>>, ConfigError> {
    let found = CertificateDer::pem_slice_iter(pem)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| ConfigError::new(format!("{what} is no PEM text: {error}")))?;
    if found.is_empty() && !pem.iter().all(u8::is_ascii_whitespace) {
        return Err(ConfigError::new(format!(
            "{what} holds no CERTIFICATE block"
        )));
    }
    Ok(found)
}

pub(crate) fn server_name(host: &Host) -> Option<ServerName<'static>> {
    match host {
        Host::Ip(address) => Some(ServerName::IpAddress(address.to_canonical().into())),
        Host::Name(name) => ServerName::try_from(name.trim_end_matches('.').to_owned()).ok(),
    }
}

/// Which kind of failure a handshake that ended in `error` is.
pub(crate) fn handshake_failure(error: &io::Error) -> FailureKind {
    refusal(error).unwrap_or(FailureKind::Tls)
}

/// Whether an error says that one side refused the handshake: [`FailureKind::Certificate`] where
/// a certificate is to blame (the partner's, as we judge it, or ours, as it said in an alert),
/// [`FailureKind::Tls`] for what else only a handshake can fail with.
///
/// With TLS 1.3 the alert about our side comes after we have finished, and after the request.
/// Still no HTTP server sees a request whose client was not accepted, and we offer no later
/// authentication (RFC 8446 §4.6.2, §6.2).
pub(crate) fn refusal(error: &(dyn StdError + 'static)) -> Option<FailureKind> {
    match find(error)? {
        rustls::Error::InvalidCertificate(_) | rustls::Error::NoCertificatesPresented => {
            Some(FailureKind::Certificate)
        }
        rustls::Error::AlertReceived(
            AlertDescription::BadCertificate
            | AlertDescription::UnsupportedCertificate
            | AlertDescription::CertificateRevoked
            | AlertDescription::CertificateExpired
            | AlertDescription::CertificateUnknown
            | AlertDescription::CertificateRequired
            | AlertDescription::NoCertificate
            | AlertDescription::UnknownCA
            | AlertDescription::AccessDenied,
        ) => Some(FailureKind::Certificate),
        rustls::Error::AlertReceived(
            AlertDescription::DecryptError
            | AlertDescription::HandshakeFailure
            | AlertDescription::InsufficientSecurity,
        ) => Some(FailureKind::Tls),
        _ => None,
    }
}

/// The TLS error somewhere in a chain; `io::Error` hides what it wraps from `source`.
fn find<'a>(error: &'a (dyn StdError + 'static)) -> Option<&'a rustls::Error> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        next = match error
            .downcast_ref::<io::Error>()
            .and_then(io::Error::get_ref)
        {
            Some(inner) => Some(inner),
            None => error.source(),
        };
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machines_authorities_are_read_once() {
        let read = || {
            let provider = Arc::new(rustls::crypto::ring::default_provider());
            // A machine without authorities gives none, twice.
            platform(provider).ok()
        };
        match (read(), read()) {
            (Some(one), Some(other)) => assert!(Arc::ptr_eq(&one, &other)),
            (one, other) => assert_eq!(one.is_some(), other.is_some()),
        }
    }
}
