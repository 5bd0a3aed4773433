//! From a case and what a client claims to what is really run: the pace it is given, its
//! operations with their tokens, and the scenario of the mock.

mod ops;
mod pace;
mod scenario;

pub use ops::PlannedOp;
use ops::plan_ops;
pub use pace::{Pace, Setup, Tempo};
pub(crate) use scenario::scenario;
use serde::{Deserialize, Serialize};

use crate::case::{Case, Interrupt, Part};
use crate::claims::Claims;

/// A part of a case, ready to run. Kept beside the journal, so that it can be judged again.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PartPlan {
    /// Index in the case.
    pub index: usize,
    /// Its name in reports.
    pub name: String,
    /// What the client is told, or claims.
    pub pace: Pace,
    /// Its operations, in the order of their starts.
    pub ops: Vec<PlannedOp>,
    /// How long the listener refuses at the start, ms.
    pub down_ms: Option<f64>,
    /// What is done to the client.
    pub interrupt: Option<Interrupt>,
    /// Quiet watch at least, ms.
    pub watch_ms: u64,
    /// The listener speaks TLS.
    pub tls: bool,
    /// The scenario of the mock.
    pub scenario: String,
    /// Operations left out, with the need that is missing.
    pub left_out: Vec<(String, String)>,
}

/// Plans the parts of a case that this client can be asked.
#[must_use]
pub fn plan(case: &Case, claims: &Claims, setup: &Setup) -> Vec<PartPlan> {
    let mut plans = Vec::new();
    for (index, part) in case.parts().iter().enumerate() {
        if part.needs.iter().all(|need| claims.has(need)) {
            plans.extend(plan_part(case, part, index, claims, setup));
        }
    }
    plans
}

fn plan_part(
    case: &Case,
    part: &Part,
    index: usize,
    claims: &Claims,
    setup: &Setup,
) -> Option<PartPlan> {
    let pace = Pace::resolve(&[&case.policy, &part.policy], claims, setup);
    let (ops, left_out) = plan_ops(part, claims);
    if ops.is_empty() {
        return None;
    }
    let down_ms = part.down.then(|| (3.0 * setup.lambda_ms).max(300.0));
    let scenario = scenario(part, claims, down_ms, setup.seed);
    Some(PartPlan {
        index,
        name: part.name.clone(),
        pace,
        ops,
        down_ms,
        interrupt: part.interrupt.clone(),
        watch_ms: part.watch_ms,
        tls: part.tls.is_some(),
        scenario,
        left_out,
    })
}
