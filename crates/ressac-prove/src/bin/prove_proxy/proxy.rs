//! What all operations of a proxy share.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use http::HeaderValue;
use ressac_policy::{Partner, Timestamp};

use crate::fault::Fault;
use crate::policy::policy;
use crate::told::Told;
use crate::upstream::Upstream;

/// One upstream, one partner of the engine.
#[derive(Debug)]
pub(crate) struct Proxy {
    pub(crate) upstream: Upstream,
    pub(crate) authority: HeaderValue,
    pub(crate) fault: Fault,
    partner: Mutex<Partner>,
    begun: Instant,
    wall: Timestamp,
}

impl Proxy {
    pub(crate) fn new(told: &Told, fault: Fault) -> Result<Self, String> {
        let upstream = Upstream::new(*told, fault.clone())?;
        let authority = HeaderValue::from_str(&upstream.authority);
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let wall = Timestamp::ZERO + since.unwrap_or(Duration::ZERO);
        Ok(Self {
            authority: authority.map_err(|e| format!("PROVE_UPSTREAM: {e}"))?,
            upstream,
            fault,
            partner: Mutex::new(Partner::new(policy(*told), wall)),
            begun: Instant::now(),
            wall,
        })
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.wall + self.begun.elapsed()
    }

    pub(crate) fn partner(&self) -> MutexGuard<'_, Partner> {
        self.partner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
