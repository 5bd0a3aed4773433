//! Retention: what was delivered long ago goes, in small steps, by the store's one writer.

use std::sync::Arc;
use std::time::Duration;

use ressac_store::Outbox;

/// Messages deleted in one transaction: small enough that no caller waits long behind it.
const STEP: usize = 500;
/// Between two steps, so that deleting never keeps the writer to itself.
const BREATH: Duration = Duration::from_millis(50);
/// Between two rounds, and after a failure.
const ROUND: Duration = Duration::from_secs(600);

/// Deletes what was delivered longer than `keep` ago, now and every ten minutes, until it is
/// dropped. Never a dead letter.
pub(crate) async fn prune(store: Arc<dyn Outbox>, keep: Duration) {
    let keep = u64::try_from(keep.as_nanos()).unwrap_or(u64::MAX);
    loop {
        let older_than = store.now().saturating_sub(keep);
        match store.prune(older_than, STEP).await {
            Ok(deleted) if deleted >= STEP as u64 => {
                tokio::time::sleep(BREATH).await;
                continue;
            }
            Ok(_) => {}
            Err(error) => tracing::warn!(%error, "old messages could not be deleted"),
        }
        tokio::time::sleep(ROUND).await;
    }
}
