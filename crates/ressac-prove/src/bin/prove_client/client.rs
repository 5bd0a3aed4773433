//! A client instance: over the engine, or over the library.

use std::sync::Arc;

use ressac_policy::Policy;
use serde_json::Value;
use tokio::sync::watch;

use crate::Kind;
use crate::fault::Fault;
#[cfg(feature = "library")]
use crate::library;
use crate::send;
use crate::told::Told;

/// What operations of one client instance share.
#[derive(Clone, Debug)]
pub(crate) enum Instance {
    Engine(Arc<send::Instance>),
    #[cfg(feature = "library")]
    Library(Arc<library::Instance>),
}

impl Instance {
    pub(crate) fn new(
        policy: Policy,
        told: &Told,
        task: &Told,
        kind: Kind,
        fault: Fault,
    ) -> Result<Self, String> {
        #[cfg(feature = "library")]
        if kind == Kind::Library {
            let instance = library::Instance::new(policy, told, task)?;
            return Ok(Self::Library(Arc::new(instance)));
        }
        let instance = send::Instance::new(policy, told, task, kind, fault)?;
        Ok(Self::Engine(Arc::new(instance)))
    }

    /// The result line of an operation.
    pub(crate) async fn perform(self, task: Told, cancel: watch::Receiver<bool>) -> Value {
        match self {
            Self::Engine(instance) => send::perform(instance, task, cancel).await,
            #[cfg(feature = "library")]
            Self::Library(instance) => library::perform(instance, task, cancel).await,
        }
    }
}

/// Resolves when it was cancelled.
pub(crate) async fn cancelled(cancel: &mut watch::Receiver<bool>) {
    if cancel.wait_for(|c| *c).await.is_err() {
        // Nobody can cancel any more.
        std::future::pending::<()>().await;
    }
}
