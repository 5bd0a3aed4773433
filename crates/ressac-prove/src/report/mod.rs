//! Reports: for a terminal, a machine, a CI server and a reader.

mod compare;
mod explain;
mod html;
mod junit;
mod model;
mod svg;
mod text;
mod trace;

pub use compare::{compare_html, compare_markdown};
pub use explain::{explain, list};
pub(crate) use html::html;
pub(crate) use junit::junit;
pub use model::{Host, Report, Totals};
pub(crate) use trace::trace;

/// What a passing report does not say, on every report card.
pub(crate) const REMARKS: [&str; 2] = [
    "RFC 9110 section 9.2.2 also advises against retrying a failed automatic retry; nearly \
     everybody does, and the count stands with A04.",
    "Retrying is optional in HTTP: passing shows that the claims hold on these cases, not that \
     the policy is right for a partner.",
];
