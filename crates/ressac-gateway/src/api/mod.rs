//! The HTTP API: intake, messages, partners, health, metrics.

mod guard;
mod health;
mod intake;
mod messages;
mod partners;
mod problem;
mod request;
mod view;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::routing::{get, post};
use tokio::sync::Semaphore;

use crate::engine::{Context, LaneHandle};
use crate::settings::PartnerSettings;

use problem::Problem;

/// What every handler needs.
pub(crate) struct Api {
    pub(crate) context: Context,
    pub(crate) partners: BTreeMap<String, (Arc<PartnerSettings>, Arc<LaneHandle>)>,
    pub(crate) max_body: usize,
    /// Room for the bodies that are being read, in shares of [`BODY_SHARE`].
    pub(crate) bodies: Semaphore,
    /// Set when a stop has begun: nothing more is accepted.
    pub(crate) stopping: AtomicBool,
}

/// Bytes of a body that take one share.
const BODY_SHARE: usize = 1_024;
/// 256 MiB of bodies at a time, over all connections. A larger one goes alone.
pub(crate) const BODY_SHARES: usize = 256 * 1_024;

impl Api {
    fn partner(&self, name: &str) -> Result<&(Arc<PartnerSettings>, Arc<LaneHandle>), Problem> {
        self.partners
            .get(name)
            .ok_or_else(|| Problem::unknown_partner(name))
    }
}

pub(crate) use view::moment;

/// The answer to a request that was not over in its time.
pub(crate) fn too_slow() -> axum::response::Response {
    axum::response::IntoResponse::into_response(Problem::too_slow())
}

type State = axum::extract::State<Arc<Api>>;

pub(crate) fn router(api: Arc<Api>) -> Router {
    Router::new()
        .route("/v1/partners/{partner}/messages", post(intake::accept))
        .route("/v1/partners/{partner}/resume", post(partners::resume))
        .route("/v1/partners", get(partners::list))
        .route("/v1/messages", get(messages::list))
        .route("/v1/messages/{id}", get(messages::show))
        .route("/v1/messages/{id}/replay", post(messages::replay))
        .route("/v1/messages/{id}/discard", post(messages::discard))
        .route("/healthz", get(health::live))
        .route("/readyz", get(health::ready))
        .route("/metrics", get(health::metrics))
        .fallback(|| async { Problem::no_such_path() })
        .method_not_allowed_fallback(|| async { Problem::method_not_allowed() })
        // The limit is our own: it answers with a problem, and is read from the settings.
        .layer(DefaultBodyLimit::disable())
        .layer(axum::middleware::from_fn(guard::same_origin))
        .with_state(api)
}
