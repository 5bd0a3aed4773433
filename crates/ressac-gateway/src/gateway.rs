//! The gateway as a whole: start it, and stop it without losing anything.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ressac_store::{Outbox, StoreError};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::api::{self, Api};
use crate::clock::BootClock;
use crate::engine::{Context, Engine};
use crate::metrics::Metrics;
use crate::retention;
use crate::serve;
use crate::settings::Settings;
use crate::transport::HttpTransport;

/// Why a gateway does not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GatewayError {
    /// The listen address is reachable from other machines, and there are no tokens to keep them
    /// out.
    #[error("{0} is not a loopback address; without tokens the gateway listens on loopback only")]
    NotLoopback(SocketAddr),
    /// The address could not be bound.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        source: std::io::Error,
    },
    /// Two partners have one name.
    #[error("the partner {0} is configured twice")]
    PartnerTwice(String),
    /// A partner's connection settings do not work.
    #[error("the partner {partner}: {source}")]
    Partner {
        /// The partner.
        partner: String,
        /// What is wrong.
        source: ressac_http::ConfigError,
    },
    /// The store failed while partners were taken over.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A running gateway. Dropping it without [`Gateway::stop`] is like a crash: nothing accepted is
/// lost, what is in flight is in doubt.
pub struct Gateway {
    address: SocketAddr,
    api: Arc<Api>,
    engine: Engine,
    server: JoinHandle<()>,
    stop_server: watch::Sender<bool>,
    retention: Option<AbortOnDrop>,
    stop_timeout: Duration,
}

/// A task that ends with its owner.
struct AbortOnDrop(JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// What a stop left behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StopReport {
    /// Attempts that were cut off by the limit. Each counts as a crash of ours: in doubt.
    pub cut: usize,
}

impl std::fmt::Debug for Gateway {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gateway")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

impl Gateway {
    /// Takes every partner over from its last owner, settles what was open, and listens. `clock`
    /// is the one that the store was opened with.
    ///
    /// # Errors
    ///
    /// See [`GatewayError`]; nothing listens and no partner is owned after one.
    pub async fn start(
        settings: Settings,
        store: Arc<dyn Outbox>,
        clock: BootClock,
    ) -> Result<Gateway, GatewayError> {
        let address = settings.listen;
        if !address.ip().is_loopback() {
            return Err(GatewayError::NotLoopback(address));
        }
        let listener = TcpListener::bind(address)
            .await
            .map_err(|source| GatewayError::Listen { address, source })?;
        let address = listener
            .local_addr()
            .map_err(|source| GatewayError::Listen { address, source })?;
        let context = Context {
            store,
            clock,
            metrics: Arc::new(Metrics::new()),
            instance: format!("pid-{}", std::process::id()).into(),
        };
        let mut partners = Vec::new();
        for partner in settings.partners {
            let transport =
                HttpTransport::new(&partner).map_err(|source| GatewayError::Partner {
                    partner: partner.name.clone(),
                    source,
                })?;
            partners.push((Arc::new(partner), transport));
        }
        let by_name: BTreeMap<_, _> = partners
            .iter()
            .map(|(partner, _)| (partner.name.clone(), Arc::clone(partner)))
            .collect();
        if by_name.len() < partners.len() {
            let twice = partners
                .iter()
                .map(|(partner, _)| partner.name.clone())
                .find(|name| {
                    partners
                        .iter()
                        .filter(|(partner, _)| partner.name == *name)
                        .count()
                        > 1
                });
            return Err(GatewayError::PartnerTwice(twice.unwrap_or_default()));
        }
        warn_of_orphans(&context, &by_name).await?;
        let engine = Engine::start(context.clone(), partners).await?;
        let partners = by_name
            .into_iter()
            .filter_map(|(name, settings)| {
                let lane = Arc::clone(engine.lanes.get(&name)?);
                Some((name, (settings, lane)))
            })
            .collect();
        let api = Arc::new(Api {
            context,
            partners,
            max_body: settings.max_body,
            bodies: tokio::sync::Semaphore::new(api::BODY_SHARES),
            stopping: AtomicBool::new(false),
        });
        let stop_server = watch::Sender::new(false);
        let server = tokio::spawn(serve::serve(
            listener,
            api::router(Arc::clone(&api)),
            stop_server.subscribe(),
        ));
        let stop_timeout = settings.stop_timeout;
        let store = &api.context.store;
        let retention = settings
            .keep
            .map(|keep| AbortOnDrop(tokio::spawn(retention::prune(Arc::clone(store), keep))));
        Ok(Gateway {
            address,
            api,
            engine,
            server,
            stop_server,
            retention,
            stop_timeout,
        })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Accepts nothing more, lets attempts in flight end within the limit of the settings, writes
    /// all down, gives the partners back and closes the store.
    pub async fn stop(self) -> StopReport {
        self.api.stopping.store(true, Ordering::Release);
        drop(self.retention);
        self.stop_server.send_replace(true);
        let left = self.engine.stop(self.stop_timeout).await;
        if let Err(error) = self.server.await {
            tracing::error!(%error, "the API ended badly");
        }
        if let Err(error) = self.api.context.store.close().await {
            tracing::error!(%error, "the store did not close cleanly");
        }
        StopReport { cut: left.cut }
    }
}

/// Messages of partners that are not configured any more wait until they are, or are discarded.
async fn warn_of_orphans(
    context: &Context,
    configured: &BTreeMap<String, Arc<crate::settings::PartnerSettings>>,
) -> Result<(), StoreError> {
    for status in context.store.partners().await? {
        let waiting = status.counts.waiting + status.counts.sending;
        if waiting > 0 && !configured.contains_key(&status.partner) {
            tracing::warn!(
                partner = status.partner,
                waiting,
                "messages wait for a partner that is not configured: configure it, or discard them"
            );
        }
    }
    Ok(())
}
