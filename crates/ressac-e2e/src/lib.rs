//! A kit for tests of the whole: `ressac serve` as a child process that can be killed, a caller,
//! and a partner.
//!
//! ```no_run
//! # async fn run() {
//! use ressac_e2e::{Caller, Gateway, Site, partner};
//!
//! let mock = partner("script = '201 create x*'").await;
//! let site = Site::new(&format!("[partner.p]\nurl = '{}'\n", mock.url()));
//! let gateway = Gateway::start(&site).await;
//! let answer = Caller::new().post(gateway.address(), "p", &[], "hello").await.unwrap();
//! assert_eq!(answer.status, 202);
//! gateway.kill_nine().await;
//! # }
//! ```

// A kit for tests ends them where it cannot go on.
#![allow(clippy::unwrap_used)]

mod binary;
mod caller;
mod chance;
mod gateway;
mod partner;
mod site;

pub use binary::ressac;
pub use caller::{Answer, Caller, Counts};
pub use chance::Chance;
pub use gateway::{Ended, Gateway};
pub use partner::{partner, partner_of};
pub use site::Site;
