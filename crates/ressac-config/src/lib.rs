//! ressac.toml: parse it, point at the line that is wrong, lint it, explain it.
//!
//! - [`Config::load`] reads one file or several into policies, partners and the gateway's
//!   settings, or says everything that is wrong with them, each with its line and the way to mend
//!   it.

mod config;
mod diagnostic;
mod layer;
mod model;
mod named;
mod read;
mod secret;
mod settings;
mod source;
mod suggest;
mod units;

pub use config::Config;
pub use diagnostic::{ConfigError, Diagnostic, Severity, render_all};
pub use model::{Addresses, GatewayConfig, Idempotency, PartnerConfig, StoreConfig};
pub use named::{Field, NamedPolicy, Origin};
pub use read::Environment;
pub use secret::Secret;
pub use units::{
    UnitError, format_duration, format_rate, format_size, parse_duration, parse_rate, parse_size,
};
