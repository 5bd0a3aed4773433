//! A certificate authority of our own, and partners that use it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    date_time_ymd,
};
use ressac_http::{Client, ClientCertificate, ClientConfig, TlsConfig};
use rustls::RootCertStore;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::Partner;

pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pub pem: String,
}

pub struct Leaf {
    pub pem: String,
    pub key_pem: String,
}

impl Authority {
    pub fn new() -> Self {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        Self::named(&format!(
            "authority {}",
            NUMBER.fetch_add(1, Ordering::SeqCst)
        ))
    }

    /// Two of one name differ in their key alone.
    pub fn named(name: &str) -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let pem = params.self_signed(&key).unwrap().pem();
        Self {
            issuer: Issuer::new(params, key),
            pem,
        }
    }

    pub fn leaf(&self, name: &str, expired: bool) -> Leaf {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        params.extended_key_usages = vec![
            ExtendedKeyUsagePurpose::ServerAuth,
            ExtendedKeyUsagePurpose::ClientAuth,
        ];
        if expired {
            params.not_before = date_time_ymd(2020, 1, 1);
            params.not_after = date_time_ymd(2021, 1, 1);
        }
        let pem = params.signed_by(&key, &self.issuer).unwrap().pem();
        Leaf {
            pem,
            key_pem: key.serialize_pem(),
        }
    }

    /// A client that trusts this authority and no other.
    pub fn client(&self, identity: Option<Leaf>) -> Client {
        Client::new(ClientConfig {
            tls: self.trust(identity),
            ..ClientConfig::default()
        })
        .unwrap()
    }

    pub fn trust(&self, identity: Option<Leaf>) -> TlsConfig {
        TlsConfig {
            extra_ca_pem: self.pem.clone().into_bytes(),
            platform_roots: false,
            client_certificate: identity.map(|leaf| ClientCertificate {
                chain_pem: leaf.pem.into_bytes(),
                key_pem: leaf.key_pem.into_bytes(),
            }),
        }
    }

    fn roots(&self) -> RootCertStore {
        let mut roots = RootCertStore::empty();
        roots
            .add(CertificateDer::from_pem_slice(self.pem.as_bytes()).unwrap())
            .unwrap();
        roots
    }
}

/// A partner that shows `leaf`, asks for a certificate of `asks` where there is one, and gives
/// each connection that stands to `serve`.
pub async fn tls_partner<F, S>(leaf: Leaf, asks: Option<&Authority>, serve: F) -> Partner
where
    F: Fn(usize, TlsStream<TcpStream>) -> S + Clone + Send + Sync + 'static,
    S: Future<Output = ()> + Send + 'static,
{
    tls_partner_speaking(&[], leaf, asks, serve).await
}

/// The same, with these protocols to choose from by ALPN.
pub async fn tls_partner_speaking<F, S>(
    protocols: &[&str],
    leaf: Leaf,
    asks: Option<&Authority>,
    serve: F,
) -> Partner
where
    F: Fn(usize, TlsStream<TcpStream>) -> S + Clone + Send + Sync + 'static,
    S: Future<Output = ()> + Send + 'static,
{
    let provider = Arc::new(default_provider());
    let builder = rustls::ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .unwrap();
    let builder = match asks {
        None => builder.with_no_client_auth(),
        Some(authority) => builder.with_client_cert_verifier(
            WebPkiClientVerifier::builder_with_provider(Arc::new(authority.roots()), provider)
                .build()
                .unwrap(),
        ),
    };
    let chain = vec![CertificateDer::from_pem_slice(leaf.pem.as_bytes()).unwrap()];
    let key = PrivateKeyDer::from_pem_slice(leaf.key_pem.as_bytes()).unwrap();
    let mut config = builder.with_single_cert(chain, key).unwrap();
    config.alpn_protocols = protocols
        .iter()
        .map(|name| name.as_bytes().into())
        .collect();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    Partner::new(move |number, socket| {
        let (acceptor, serve) = (acceptor.clone(), serve.clone());
        async move {
            if let Ok(stream) = acceptor.accept(socket).await {
                serve(number, stream).await;
            }
        }
    })
    .await
}
