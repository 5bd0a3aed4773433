//! What a new owner finds: the partner's state as it was saved, and attempts that nobody ended.

use ressac_policy::{Decision, Partner, PartnerState};
use ressac_store::{NewState, Settle, StoreError};

use super::attempt::crashed;
use super::lane::Lane;
use super::record::{attempt, decode, encode, ended, waiting};
use super::settle::judge_into;

/// How many open attempts are settled in one go.
const BATCH: usize = 256;

impl Lane {
    /// The partner as it was before the restart: its holds and its open breaker count on.
    pub(super) async fn restore_partner(&mut self) -> Result<(), StoreError> {
        let Some(blob) = self.context.store.load_partner(&self.settings.name).await? else {
            return Ok(());
        };
        match serde_json::from_slice::<PartnerState>(&blob) {
            Ok(state) => {
                let policy = self.settings.policy.clone();
                self.partner = Partner::restore(policy, state, self.context.clock.timestamp());
            }
            Err(error) => tracing::warn!(
                partner = self.settings.name,
                %error,
                "the saved state of the partner cannot be read; its breaker starts closed"
            ),
        }
        Ok(())
    }

    /// Each message marked as being sent has an attempt without an outcome: a crash of ours. The
    /// operation decides whether it may go again or is in doubt.
    pub(super) async fn settle_open_attempts(&mut self) -> Result<(), StoreError> {
        let mut after = 0;
        loop {
            let store = &self.context.store;
            let found = store.in_flight(&self.settings.name, after, BATCH).await?;
            let Some(last) = found.last() else {
                return Ok(());
            };
            after = last.seq;
            let items: Vec<Settle> = found
                .iter()
                .filter_map(|message| {
                    let mut operation = decode(&message.operation)?;
                    let now = self.context.clock.timestamp();
                    let sent = crashed("the gateway stopped with this attempt open");
                    let begun = message.begun_at.unwrap_or(message.accepted_at);
                    let mut record = attempt(message.attempt, begun, now.as_nanos(), &sent);
                    judge_into(&mut record, &sent.outcome, &operation, &self.partner);
                    let decision =
                        operation.on_outcome(now, &sent.outcome, &mut self.partner, &mut self.rng);
                    let next = next_state(&decision, &operation, now.as_nanos());
                    Some(Settle {
                        id: message.id,
                        attempt: Some(record),
                        next,
                        operation: encode(&operation),
                    })
                })
                .collect();
            tracing::info!(
                partner = self.settings.name,
                open = items.len(),
                "attempts were open when the last owner stopped"
            );
            for result in self.context.store.settle(&self.lease, items).await? {
                if let Err(refusal) = result {
                    tracing::warn!(partner = self.settings.name, %refusal, "not settled");
                }
            }
        }
    }
}

/// Where a decision puts a message.
pub(super) fn next_state(
    decision: &Decision,
    operation: &ressac_policy::Operation,
    now: u64,
) -> NewState {
    match decision {
        Decision::Wait(wait) => waiting(wait, operation),
        Decision::End(end) => ended(end),
        // An outcome never decides to send at once; if it ever did, its turn would be now.
        Decision::Send(_) => NewState::Waiting {
            due: now,
            because: "turn".to_owned(),
            class: super::record::class_of(operation),
        },
    }
}
