//! From `ressac.toml` to a running gateway.

use std::path::PathBuf;
use std::sync::Arc;

use http::{HeaderMap, HeaderName};
use ressac_config::{Addresses, Config, HttpVersion, PartnerConfig, StoreConfig};
use ressac_http::{AddressPolicy, ClientConfig, TlsConfig, Version, parse_header};
use ressac_store::{SqliteOptions, SqliteStore, StoreError};

use crate::clock::BootClock;
use crate::gateway::{Gateway, GatewayError};
use crate::settings::{Idempotency, PartnerSettings, Settings};

/// Why a configured gateway does not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The store cannot be opened.
    #[error(transparent)]
    Store(StoreError),
    /// The gateway does not start.
    #[error(transparent)]
    Gateway(#[from] GatewayError),
    /// A partner's file of certificate authorities cannot be read.
    #[error("the partner {partner}: cannot read ca_file {path}: {source}")]
    CaFile {
        /// The partner.
        partner: String,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A partner's header or key header cannot be sent.
    #[error("the partner {partner}: {what}")]
    Header {
        /// The partner.
        partner: String,
        /// What is wrong; never the value.
        what: String,
    },
}

impl Settings {
    /// The settings that a configuration gives.
    ///
    /// # Errors
    ///
    /// A file that cannot be read, or a header that cannot be sent.
    pub fn from_config(config: &Config) -> Result<Settings, StartError> {
        let gateway = config.gateway();
        let addresses = match gateway.addresses {
            Addresses::Any => AddressPolicy::Any,
            Addresses::Public => AddressPolicy::public_only([]),
        };
        let partners = config
            .partners()
            .iter()
            .map(|partner| partner_settings(config, partner, addresses.clone()))
            .collect::<Result<_, _>>()?;
        Ok(Settings {
            listen: gateway.listen,
            max_body: usize::try_from(gateway.max_body).unwrap_or(usize::MAX),
            keep: gateway.keep,
            stop_timeout: gateway.stop_timeout,
            partners,
        })
    }
}

fn partner_settings(
    config: &Config,
    partner: &PartnerConfig,
    address_policy: AddressPolicy,
) -> Result<PartnerSettings, StartError> {
    let header_error = |what: String| StartError::Header {
        partner: partner.name.clone(),
        what,
    };
    let mut headers = HeaderMap::new();
    for (name, secret) in &partner.headers {
        let (name, mut value) = parse_header(name, secret.expose().as_bytes())
            .map_err(|error| header_error(error.to_string()))?;
        value.set_sensitive(true);
        headers.append(name, value);
    }
    let idempotency = partner
        .idempotency
        .as_ref()
        .map(|promise| {
            let header = HeaderName::from_bytes(promise.header.as_bytes())
                .map_err(|_| header_error("idempotency.header is no header name".to_owned()))?;
            Ok::<_, StartError>(Idempotency {
                header,
                ttl: Some(promise.ttl),
                quoted: promise.quoted,
            })
        })
        .transpose()?;
    let extra_ca_pem = match &partner.ca_file {
        Some(path) => std::fs::read(path).map_err(|source| StartError::CaFile {
            partner: partner.name.clone(),
            path: path.clone(),
            source,
        })?,
        None => Vec::new(),
    };
    let policy = config.policy_of(partner).policy().clone();
    let client = ClientConfig {
        address_policy,
        max_idle_per_host: policy
            .limit
            .concurrency
            .map_or(64, |most| most.min(64) as usize),
        tls: TlsConfig {
            extra_ca_pem,
            ..TlsConfig::default()
        },
        version: match partner.http_version {
            HttpVersion::Auto => Version::Auto,
            HttpVersion::Http1 => Version::Http1,
            HttpVersion::Http2 => Version::Http2,
        },
        ..ClientConfig::default()
    };
    Ok(PartnerSettings {
        name: partner.name.clone(),
        url: partner.url.clone(),
        policy,
        idempotency,
        headers,
        client,
    })
}

impl Gateway {
    /// Opens the configured store and starts the configured gateway.
    ///
    /// # Errors
    ///
    /// See [`StartError`].
    pub async fn start_configured(config: &Config) -> Result<Gateway, StartError> {
        let settings = Settings::from_config(config)?;
        let clock = BootClock::start();
        let gateway = config.gateway();
        let StoreConfig::Sqlite(path) = &gateway.store else {
            // Config refuses every other store by name.
            return Err(StartError::Store(StoreError::Internal {
                detail: "this build has the SQLite store only".to_owned(),
            }));
        };
        let options = SqliteOptions::new(path)
            .clock(clock)
            .max_bytes(gateway.max_store)
            .max_body(settings.max_body);
        let store = SqliteStore::open(options)
            .await
            .map_err(StartError::Store)?;
        Ok(Gateway::start(settings, Arc::new(store), clock).await?)
    }
}
