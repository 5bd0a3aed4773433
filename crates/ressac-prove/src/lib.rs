//! The suite that proves any client's retries, by what reaches the wire of a faulty partner.
//!
//! A client, in any language, is started with a URL and a pace; it talks to a mock that fails as
//! a case says; and what arrived there is judged. Nothing is judged from what a client says of
//! itself when the wire can tell, and nothing passes without evidence that the fault was met.
//!
//! Three layers, each usable alone:
//!
//! * [`Case`]s, one TOML file each, with a rule in a small language.
//! * [`judge`], a pure function of journal, results and claims.
//! * [`run()`], which starts mock and client, records, judges and keeps the evidence.

mod case;
mod claims;
mod diagnostic;
mod judge;
mod known;
mod plan;
mod profile;
mod record;
mod report;
mod rule;
mod run;
mod select;

pub use case::{
    Case, Interrupt, Level, OpSpec, OutageSpec, Part, PolicyWish, ProfileChange, all as cases,
    find as find_case,
};
pub use claims::{
    BackoffClaim, BreakerClaim, BudgetClaim, Claims, ClientInfo, HeadersClaim, Jitter, KeysClaim,
    Mode, Promises, RetryAfterClaim,
};
pub use diagnostic::BadFile;
pub use judge::{
    CaseVerdict, Finding, Law, OpReport, Outcome, Verdict, judge, kolmogorov_smirnov,
    pattern_sha256,
};
pub use known::{KnownFailing, KnownFailingError};
pub use plan::{Pace, PartPlan, PlannedOp, Setup, Tempo, plan};
pub use record::{Arrival, OpResult, OpStart, PartRecord, ProcessEnd, RawBytes, SentLine};
pub use report::{Host, Report, Totals, compare_html, compare_markdown, explain, list};
pub use rule::{Expr, Op, Rule, RuleError};
pub use run::{Options, Progress, RunError, rejudge, run};
pub use select::{PROFILES, Selection, SelectionError, glob_matches};
