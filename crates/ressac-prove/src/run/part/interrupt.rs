//! What is done to a client in the middle of its work.

use super::{LOOK, Play};
use crate::record::Arrival;
use crate::run::client::Client;
use crate::run::courier::Leave;
use crate::run::process::Signal;
use crate::run::schedule::Schedule;

impl Play<'_> {
    /// What is done to the client, once its time has come: so long after the last reply, while
    /// nothing is on the wire.
    pub(super) async fn interrupt(&mut self, schedule: &Schedule<'_>) -> Result<(), String> {
        let Some(interrupt) = &self.plan.interrupt else {
            return Ok(());
        };
        if self.interrupted.is_some() {
            return Ok(());
        }
        let now = self.stage.mock.now();
        let journal = self.stage.mock.journal();
        let arrivals: Vec<Arrival> = journal.iter().filter_map(Arrival::of).collect();
        let requests = || arrivals.iter().filter(|a| a.is_request());
        let replied = requests().filter_map(|a| a.t_reply_after).max();
        let waiting = requests().all(|a| a.t_reply_after.is_some());
        let due = replied.is_some_and(|t| now >= t + interrupt.after_ms * 1_000_000);
        if !(waiting && due) {
            return Ok(());
        }
        self.interrupted = Some(now);
        match interrupt.what.as_str() {
            "term" => self.client.signal(Signal::Term),
            "cancel" => self.cancel(schedule, Leave::Close).await,
            "cut" => self.cancel(schedule, Leave::Reset).await,
            _ => self.restart().await?,
        }
        Ok(())
    }

    /// All callers that wait go away.
    async fn cancel(&mut self, schedule: &Schedule<'_>, how: Leave) {
        let open: Vec<String> = schedule.open().map(str::to_owned).collect();
        for op in open {
            self.client.cancel(&op, how).await;
        }
    }

    /// SIGKILL, and the same command with the same operations again.
    async fn restart(&mut self) -> Result<(), String> {
        self.client.signal(Signal::Kill);
        for _ in 0..400 {
            if !self.client.any_alive() {
                break;
            }
            tokio::time::sleep(LOOK).await;
        }
        self.client = Client::start(self.mode, self.stage.clone())?;
        self.greet().await?;
        let ids: Vec<String> = self.starts.iter().map(|s| s.op.clone()).collect();
        for op in self.plan.ops.iter().filter(|op| ids.contains(&op.id)) {
            if self.results.iter().any(|r| r.op == op.id) {
                continue;
            }
            let body = op.body.and_then(|len| self.bodies.get(&len)).cloned();
            self.client.begin(op, body.as_deref()).await?;
        }
        Ok(())
    }
}
