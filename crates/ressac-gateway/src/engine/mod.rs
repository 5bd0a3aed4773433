//! The delivery engine: one lane per partner, each a task of its own, so that a slow or dead
//! partner delays no other.

mod attempt;
mod lane;
mod queue;
mod record;
mod recover;
mod settle;
mod shares;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::Duration;

use ressac_policy::PartnerView;
use ressac_store::{Lease, Outbox, StoreError};
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;

use crate::clock::BootClock;
use crate::metrics::Metrics;
use crate::settings::PartnerSettings;
use crate::transport::HttpTransport;

pub(crate) use record::{decode, encode};

/// What all lanes share.
#[derive(Clone)]
pub(crate) struct Context {
    pub(crate) store: Arc<dyn Outbox>,
    pub(crate) clock: BootClock,
    pub(crate) metrics: Arc<Metrics>,
    /// The name under which this process owns partners.
    pub(crate) instance: Arc<str>,
}

/// The line from the API to a lane.
#[derive(Debug)]
pub(crate) struct LaneHandle {
    notify: Notify,
    /// What the store may have that the lane has not seen.
    news: AtomicU8,
    resume: AtomicBool,
    view: watch::Sender<Option<LaneView>>,
}

/// News of first attempts alone, the common case; and news of any class.
const NEW_FIRST: u8 = 1;
const NEW_ANY: u8 = 2;

/// A lane's state as of its last step.
#[derive(Clone, Debug)]
pub(crate) struct LaneView {
    pub(crate) partner: PartnerView,
    /// When the next attempt may go, as far as the partner is concerned; ns since the Unix epoch.
    pub(crate) ready_at: u64,
    pub(crate) because: &'static str,
}

impl LaneHandle {
    fn new() -> Arc<Self> {
        Arc::new(LaneHandle {
            notify: Notify::new(),
            news: AtomicU8::new(0),
            resume: AtomicBool::new(false),
            view: watch::Sender::new(None),
        })
    }

    /// A message was accepted.
    pub(crate) fn on_accepted(&self) {
        self.tell(NEW_FIRST);
    }

    /// Messages were replayed or discarded.
    pub(crate) fn on_changed(&self) {
        self.tell(NEW_ANY);
    }

    fn tell(&self, news: u8) {
        self.news.fetch_or(news, Ordering::AcqRel);
        self.notify.notify_one();
    }

    /// An operator has mended what suspended the partner.
    pub(crate) fn resume(&self) {
        self.resume.store(true, Ordering::Release);
        self.notify.notify_one();
    }

    fn take_news(&self) -> u8 {
        self.news.swap(0, Ordering::AcqRel)
    }

    fn take_resume(&self) -> bool {
        self.resume.swap(false, Ordering::AcqRel)
    }

    /// `None` until the lane has taken its partner over.
    pub(crate) fn view(&self) -> Option<LaneView> {
        self.view.borrow().clone()
    }
}

/// All lanes.
pub(crate) struct Engine {
    pub(crate) lanes: BTreeMap<String, Arc<LaneHandle>>,
    tasks: Vec<JoinHandle<lane::Stopped>>,
    stop: watch::Sender<Option<Duration>>,
}

/// What a stop left behind.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Left {
    /// Attempts cut off by the limit; each counts as a crash of ours.
    pub(crate) cut: usize,
}

/// A gateway that is dropped without a stop is like one that was killed: its lanes end at once.
impl Drop for Engine {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

impl Engine {
    /// Takes every partner over and starts its lane.
    pub(crate) async fn start(
        context: Context,
        partners: Vec<(Arc<PartnerSettings>, HttpTransport)>,
    ) -> Result<Engine, StoreError> {
        let stop = watch::Sender::new(None);
        let mut leases = acquire(&context, &partners).await?;
        let mut engine = Engine {
            lanes: BTreeMap::new(),
            tasks: Vec::new(),
            stop,
        };
        for (settings, transport) in partners {
            let lease = leases
                .remove(&settings.name)
                .ok_or_else(|| StoreError::Internal {
                    detail: format!("the partner {} is owned by another instance", settings.name),
                })?;
            let handle = LaneHandle::new();
            engine
                .lanes
                .insert(settings.name.clone(), Arc::clone(&handle));
            let lane = lane::Lane::take_over(
                context.clone(),
                settings,
                Arc::new(transport),
                handle,
                engine.stop.subscribe(),
                lease,
            )
            .await?;
            engine.tasks.push(tokio::spawn(lane.run()));
        }
        Ok(engine)
    }

    /// Begins nothing more, gives what is in flight `limit` to end, and gives the partners back.
    pub(crate) async fn stop(mut self, limit: Duration) -> Left {
        self.stop.send_replace(Some(limit));
        let mut left = Left::default();
        for task in std::mem::take(&mut self.tasks) {
            match task.await {
                Ok(stopped) => left.cut += stopped.cut,
                Err(error) => tracing::error!(%error, "a lane ended before it was stopped"),
            }
        }
        left
    }
}

/// Takes all partners, those of one lease time in one transaction: with one for each, hundreds of
/// partners are seconds of waiting for the disk before the first attempt.
async fn acquire(
    context: &Context,
    partners: &[(Arc<PartnerSettings>, HttpTransport)],
) -> Result<BTreeMap<String, Lease>, StoreError> {
    let settings = partners.iter().map(|(settings, _)| settings.as_ref());
    let mut leases = BTreeMap::new();
    for (ttl, names) in by_lease_time(settings) {
        let found = context
            .store
            .acquire(&context.instance, &names, ttl)
            .await?;
        leases.extend(
            found
                .into_iter()
                .map(|lease| (lease.partner.clone(), lease)),
        );
    }
    Ok(leases)
}

fn by_lease_time<'a>(
    partners: impl Iterator<Item = &'a PartnerSettings>,
) -> BTreeMap<Duration, Vec<String>> {
    let mut names: BTreeMap<Duration, Vec<String>> = BTreeMap::new();
    for partner in partners {
        let ttl = lane::lease_ttl(partner.policy.attempt_timeout);
        names.entry(ttl).or_default().push(partner.name.clone());
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partners_of_one_lease_time_are_taken_together() {
        let partner = |n: u64, secs| {
            let url = http::Uri::from_static("http://a.example");
            let mut partner = PartnerSettings::new(format!("p{n}"), url);
            partner.policy.attempt_timeout = Duration::from_secs(secs);
            partner
        };
        let partners: Vec<_> = (0..300).map(|n| partner(n, 10 + n % 2)).collect();
        let taken = by_lease_time(partners.iter());
        assert_eq!(taken.values().map(Vec::len).collect::<Vec<_>>(), [150, 150]);
        for (ttl, names) in taken {
            let longest = partners.iter().filter(|p| names.contains(&p.name));
            assert!(longest.map(|p| p.policy.attempt_timeout).all(|t| t < ttl));
        }
    }
}
