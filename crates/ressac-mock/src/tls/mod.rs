//! The mock's own certificate authority, and what its listeners show.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, date_time_ymd,
};
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::TlsAcceptor;

use crate::scenario::{Certificate, ListenerSpec};
use crate::wire::MAX_EARLY;

/// The names of a certificate that fits.
const NAMES: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// An authority, made for one mock, and the configurations that use it.
pub(crate) struct Tls {
    ca: Authority,
    acceptors: Mutex<HashMap<(String, Certificate, bool, bool), TlsAcceptor>>,
}

struct Authority {
    /// Behind a lock only so that a mock can be used across `catch_unwind`, as tests do.
    issuer: Mutex<Issuer<'static, KeyPair>>,
    pem: String,
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Never the key.
        f.debug_struct("Tls").finish_non_exhaustive()
    }
}

impl Authority {
    fn new(name: &str) -> Result<Self, rcgen::Error> {
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::new(Vec::new())?;
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![
            KeyUsagePurpose::KeyCertSign,
            KeyUsagePurpose::CrlSign,
            KeyUsagePurpose::DigitalSignature,
        ];
        let pem = params.self_signed(&key)?.pem();
        let issuer = Mutex::new(Issuer::new(params, key));
        Ok(Self { issuer, pem })
    }

    fn sign(
        &self,
        params: &CertificateParams,
        key: &KeyPair,
    ) -> Result<rcgen::Certificate, rcgen::Error> {
        let issuer = self.issuer.lock().unwrap_or_else(PoisonError::into_inner);
        params.signed_by(key, &issuer)
    }
}

impl Tls {
    /// Makes an authority.
    pub(crate) fn new() -> Result<Self, String> {
        Ok(Self {
            ca: Authority::new("ressac mock").map_err(|e| e.to_string())?,
            acceptors: Mutex::new(HashMap::new()),
        })
    }

    /// The authority's certificate in PEM.
    pub(crate) fn ca_pem(&self) -> &str {
        &self.ca.pem
    }

    /// What a listener accepts with; made once.
    pub(crate) fn acceptor(&self, spec: &ListenerSpec) -> Result<TlsAcceptor, String> {
        let kind = spec.certificate.unwrap_or(Certificate::Valid);
        // A session resumed must not carry over to a listener with another certificate.
        let key = (spec.name.clone(), kind, spec.http1, spec.http2);
        let mut made = self
            .acceptors
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(acceptor) = made.get(&key) {
            return Ok(acceptor.clone());
        }
        let acceptor = TlsAcceptor::from(Arc::new(self.config(spec, kind)?));
        made.insert(key, acceptor.clone());
        Ok(acceptor)
    }

    fn config(&self, spec: &ListenerSpec, kind: Certificate) -> Result<ServerConfig, String> {
        let (chain, key) = self.leaf(kind).map_err(|e| e.to_string())?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .and_then(|b| b.with_no_client_auth().with_single_cert(chain, key))
            .map_err(|e| e.to_string())?;
        config.max_early_data_size = MAX_EARLY;
        if spec.http2 {
            config.alpn_protocols.push(b"h2".to_vec());
        }
        if spec.http1 {
            config.alpn_protocols.push(b"http/1.1".to_vec());
        }
        Ok(config)
    }

    fn leaf(
        &self,
        kind: Certificate,
    ) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), rcgen::Error> {
        let key = KeyPair::generate()?;
        let names: Vec<String> = match kind {
            Certificate::WrongHost => vec!["wrong.invalid".to_owned()],
            _ => NAMES.map(str::to_owned).to_vec(),
        };
        let mut params = CertificateParams::new(names)?;
        params
            .distinguished_name
            .push(DnType::CommonName, "ressac mock partner");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        // Within the longest time that platform verifiers accept from a private authority.
        let now = i32::try_from(year_now()).unwrap_or(2026);
        (params.not_before, params.not_after) = match kind {
            Certificate::Expired => (date_time_ymd(2001, 1, 1), date_time_ymd(2002, 1, 1)),
            Certificate::NotYet => (date_time_ymd(now + 20, 1, 1), date_time_ymd(now + 21, 1, 1)),
            _ => (date_time_ymd(now - 1, 1, 1), date_time_ymd(now + 1, 3, 1)),
        };
        let cert = match kind {
            Certificate::SelfSigned => params.self_signed(&key)?,
            Certificate::Untrusted => Authority::new("nobody knows")?.sign(&params, &key)?,
            _ => self.ca.sign(&params, &key)?,
        };
        let chain = vec![cert.der().clone()];
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        Ok((chain, key))
    }
}

/// The year of the wall clock.
fn year_now() -> i64 {
    let secs = crate::clock::unix_ns_now().div_euclid(1_000_000_000);
    let days = i64::try_from(secs).unwrap_or(0).div_euclid(86_400);
    crate::date::civil(days).0
}
