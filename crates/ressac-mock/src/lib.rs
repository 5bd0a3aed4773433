//! The faulty partner: byte for byte as scripted, counted at arrival, with a clock.
//!
//! A client that retries is only as good as the failures it was tried on. [`Mock`] is a partner
//! that fails on purpose: it answers each arrival with the next step of a script, ends
//! connections with FIN or RST at the byte that was asked for, remembers idempotency keys as a
//! real partner does, and journals all that reached the wire, so that a test asserts the waits
//! and the effects and not only the status.
//!
//! ```
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! use ressac_mock::Mock;
//! use std::time::Duration;
//!
//! let mock = Mock::start().await;
//! let pay = mock.script("POST", "503 ra=2 x2, 201 create");
//! // ... the client under test sends to pay.url() ...
//! pay.wait_attempts(3, Duration::from_secs(10)).await?;
//! assert!(pay.gaps()[0] >= Duration::from_secs(2));
//! assert_eq!((pay.keys().len(), pay.effects()), (1, 1));
//! pay.verify();
//! # Ok(())
//! # }
//! ```
//!
//! The words of a script stand at [`Script`]; whole files are [`Scenario`]s.

mod arrive;
mod barrier;
mod clock;
mod control;
mod date;
mod draw;
mod exchange;
mod fault;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod handle;
mod journal;
mod mock;
mod notation;
mod outage;
mod quota;
mod reply;
mod resources;
mod scenario;
mod state;
mod step;
mod store;
mod tls;
mod upstream;
mod wire;

pub use fault::Fault;
pub use handle::{Progress, ScriptHandle, WaitError};
pub use journal::{Connection, Effect, Entry, Flag, Kind, Sent, Summary, TlsInfo, Wire};
pub use mock::{ListenerError, Mock, MockError, Options, ScriptError};
pub use notation::NotationError;
pub use resources::Resource;
pub use scenario::{
    AcceptAction, AcceptScript, Certificate, FingerprintPart, Idempotency, ListenerSpec, Outage,
    OutageAction, OutageClock, PathPattern, Quota, QuotaKind, Route, Scenario, ScenarioError,
    Scope, TcpFaults, TcpSpec,
};
pub use state::Reset;
pub use step::{
    Action, Barrier, Body, Create, Cut, DateForm, DateWord, Drip, End, Expect, FileBody, Framing,
    Goaway, H2Code, Hold, Pick, Point, Reply, RetryAfter, Script, Step, Times,
};
pub use wire::Tape;
