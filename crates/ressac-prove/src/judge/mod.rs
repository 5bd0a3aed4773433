//! The judge: from what was recorded to a verdict. Pure: no clock, no socket, no file.

mod body;
mod check;
mod content;
mod downstream;
mod evidence;
mod finding;
mod group;
mod herd;
mod late;
mod law;
mod load;
mod op;
mod sign;
mod spread;
mod told;
mod value;
mod verdict;

pub(crate) use body::pattern;
pub use body::pattern_sha256;
pub use finding::{Finding, Outcome};
pub use law::{Law, kolmogorov_smirnov};
pub(crate) use verdict::not_claimed;
pub use verdict::{CaseVerdict, OpReport, Verdict, judge};
