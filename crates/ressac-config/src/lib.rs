//! ressac.toml: parse it, point at the line that is wrong, lint it, explain it.
//!
//! - [`Config::load`] reads one file or several into policies, partners and the gateway's
//!   settings, or says everything that is wrong with them, each with its line and the way to mend
//!   it.
//! - [`lints`] warns of the seven bad habits, each with the number that shows the harm.
//! - [`explain`] puts a policy into numbers: waits, totals, load, open times, promises, and whose
//!   value won.
//! - [`reference_page`] and [`json_schema`] are made from the table that the parser reads by.

mod assemble;
mod config;
mod diagnostic;
mod doubt;
mod explain;
mod itself;
mod layer;
mod lint;
mod model;
mod named;
mod read;
mod reference;
mod schema;
mod secret;
mod settings;
mod source;
mod suggest;
mod units;

pub use config::Config;
pub use diagnostic::{ConfigError, Diagnostic, Severity, render_all};
pub use explain::{
    Breaker, BudgetTerms, ExplainOptions, Explanation, OpenTime, Outage, Promise, Total, Wait,
    Worst, explain,
};
pub use lint::{Warning, lints};
pub use model::{Addresses, GatewayConfig, HttpVersion, Idempotency, PartnerConfig, StoreConfig};
pub use named::{Field, NamedPolicy, Origin};
pub use read::Environment;
pub use reference::reference_page;
pub use schema::json_schema;
pub use secret::Secret;
pub use units::{
    UnitError, format_duration, format_rate, format_size, parse_duration, parse_rate, parse_size,
};
