//! The short notation: `503 ra=2 x2, 201 create`.
//!
//! `script = step ("," step)*`, `step = action word* [xN | x*]`. A comma or space inside quotes,
//! braces, brackets or parentheses does not separate. [`std::fmt::Display`] prints what parses
//! back to the same script.

mod check;
mod error;
mod lex;
mod parse;
mod print;
mod reply;
mod value;
mod words;

pub(crate) use check::check_reply;
pub use error::NotationError;
pub(crate) use error::suggest;
pub(crate) use parse::parse_step;
pub(crate) use reply::{MAX_BODY, apply, check_header, json, make_barrier};
pub(crate) use value::{duration, end_point, header_text, quote, signed_ms};
