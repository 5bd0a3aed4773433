//! The tests every store must pass.
//!
//! A store's own tests implement [`Harness`] and call [`outbox_contract!`](crate::outbox_contract), which
//! makes one test of each case. The cases know nothing of SQL, files or servers.
//!
//! ```
//! use std::time::Duration;
//! use ressac_store::contract::Harness;
//! use ressac_store::{ManualClock, SqliteOptions, SqliteStore};
//!
//! struct InAFolder(tempfile::TempDir, ManualClock);
//!
//! impl Harness for InAFolder {
//!     type Store = SqliteStore;
//!     async fn open(&self) -> SqliteStore {
//!         let options = SqliteOptions::new(self.0.path().join("store.db")).clock(self.1.clone());
//!         SqliteStore::open(options).await.unwrap()
//!     }
//!     fn advance(&self, by: Duration) {
//!         self.1.advance(by);
//!     }
//! }
//!
//! # tokio::runtime::Runtime::new().unwrap().block_on(async {
//! let harness = InAFolder(tempfile::tempdir().unwrap(), ManualClock::new(1_000_000_000));
//! ressac_store::contract::intake::the_same_request_is_the_same_message(&harness).await;
//! # });
//! ```
#![allow(clippy::unwrap_used, clippy::missing_panics_doc)]

use std::future::Future;
use std::time::Duration;

use crate::Outbox;

pub mod delivery;
pub mod intake;
mod kit;
pub mod lanes;
pub mod leases;
pub mod model;
pub mod operators;
pub mod order;
pub mod reading;

/// A place for one store, new and empty at first, and the time of its clock.
pub trait Harness: Send + Sync {
    /// The store.
    type Store: Outbox;
    /// Opens it; after the one before was dropped, the same again with all it held.
    fn open(&self) -> impl Future<Output = Self::Store> + Send;
    /// Moves the store's clock forward.
    fn advance(&self, by: Duration);
}

/// One `#[tokio::test]` for each case of the contract. `$make` is an expression that makes a new
/// [`Harness`](crate::contract::Harness).
#[macro_export]
macro_rules! outbox_contract {
    ($make:expr) => {
        $crate::outbox_contract!(@module $make, intake:
            the_same_request_is_the_same_message,
            another_request_with_the_key_conflicts,
            a_key_is_unique_per_partner,
            one_key_from_64_tasks_makes_one_message,
            a_message_is_there_whole_or_not_at_all,
            a_key_outlives_a_restart,
            content_comes_back_as_it_went_in,
            sizes_have_limits,
        );
        $crate::outbox_contract!(@module $make, delivery:
            an_open_attempt_is_work_after_a_crash,
            an_attempt_counts_before_it_is_sent,
            a_settle_says_where_it_goes,
            one_bad_item_sinks_no_other,
            long_texts_are_cut_not_refused,
            put_back_forgets_the_attempt,
            a_waiting_message_can_end_unsent,
            only_the_open_attempt_settles,
        );
        $crate::outbox_contract!(@module $make, order:
            first_attempts_by_deadline_then_sequence,
            retries_by_due_time,
            a_first_attempt_put_off_is_not_due_before,
            pages_of_due_messages_join_without_gap,
            next_due_is_the_earliest_of_all_classes,
        );
        $crate::outbox_contract!(@module $make, lanes:
            only_the_head_of_a_lane_is_due,
            a_dead_head_lets_the_next_one_go,
            a_replay_joins_its_lane_at_the_end,
            a_retry_keeps_its_lane_waiting,
            a_discard_behind_the_head_changes_nothing,
        );
        $crate::outbox_contract!(@module $make, leases:
            an_old_epoch_writes_nothing,
            a_lease_has_an_end,
            a_lease_that_ran_out_begins_nothing,
            a_settle_after_the_lease_is_refused_and_kept,
            a_renewed_lease_lasts,
            a_released_partner_is_free_at_once,
            a_snapshot_goes_to_the_next_owner,
            a_partner_takes_only_its_own_messages,
        );
        $crate::outbox_contract!(@module $make, reading:
            pages_do_not_shift_under_inserts,
            filters_go_together,
            a_page_by_reason_goes_on_to_the_end,
            a_cursor_that_is_none_is_refused,
            unknown_names_are_empty_not_errors,
            partners_are_listed_with_their_counts,
        );
        $crate::outbox_contract!(@module $make, operators:
            a_replay_is_a_new_series_with_history,
            only_a_dead_letter_is_replayed,
            a_discard_fits_waiting_and_dead,
            a_discard_while_sending_is_forced_and_leaves_evidence,
            pruning_takes_delivered_messages_in_steps,
        );
        $crate::outbox_contract!(@module $make, model:
            counters_equal_a_full_scan,
        );
    };
    (@module $make:expr, $module:ident: $($case:ident),+ $(,)?) => {
        mod $module {
            #[allow(unused_imports)]
            use super::*;
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $case() {
                    $crate::contract::$module::$case(&$make).await;
                }
            )+
        }
    };
}
