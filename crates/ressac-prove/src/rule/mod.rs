//! The language in which a case says when it passes.
//!
//! A rule is read once, when the case is, and evaluated over what was measured of an operation or
//! of a group of them. It is data: the same text stands in the case, in `explain` and in a report.
//!
//! ```text
//! n=2 ok own(g1)                    all of these
//! n=1 | (n=2 g1>=1s)                one of these
//! if[st:425]{n=2 ok}else{n=1}       by what is claimed
//! warn{g1<=4s+hi(0)}                broken: a warning, never a failure
//! end<=2.2s!                        a ceiling that is hard: a deadline was declared
//! note(n-1)                         measured and printed, never judged
//! ```
//!
//! `>=` and `>` of a time are floors: hard, with the tolerance of the clock. `<=` and `<` of a time
//! are ceilings: soft, unless `!` stands behind them. Counts have no tolerance.

mod lex;
mod parse;
mod show;

pub use parse::RuleError;

/// A rule, read.
#[derive(Clone, Debug, PartialEq)]
pub enum Rule {
    /// All must hold.
    All(Vec<Rule>),
    /// One must hold.
    Any(Vec<Rule>),
    /// By what is claimed.
    If(Vec<String>, Box<Rule>, Box<Rule>),
    /// Broken, it warns.
    Warn(Box<Rule>),
    /// A predicate with its arguments: `ok`, `own(g1,g2)`.
    Holds(String, Vec<Expr>),
    /// A comparison.
    Compare(Expr, Op, Expr, bool),
    /// A value that is only told.
    Note(Expr),
}

/// How two values are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// `=`
    Eq,
    /// `!=`
    Ne,
    /// `<`
    Lt,
    /// `<=`
    Le,
    /// `>`
    Gt,
    /// `>=`
    Ge,
}

/// A value: a number, a time, a measurement, or a calculation.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    /// A plain number.
    Number(f64),
    /// A time, in milliseconds.
    Millis(f64),
    /// A measurement or a setting.
    Name(String),
    /// A function of values: `hi(0)`, `max(T, 3*lambda)`.
    Call(String, Vec<Expr>),
    /// A calculation.
    Calc(Box<Expr>, char, Box<Expr>),
}

impl Rule {
    /// Does the rule speak of this name anywhere?
    pub(crate) fn mentions(&self, name: &str) -> bool {
        match self {
            Self::All(rules) | Self::Any(rules) => rules.iter().any(|r| r.mentions(name)),
            Self::If(_, a, b) => a.mentions(name) || b.mentions(name),
            Self::Warn(r) => r.mentions(name),
            Self::Holds(word, args) => word == name || args.iter().any(|a| a.mentions(name)),
            Self::Compare(a, _, b, _) => a.mentions(name) || b.mentions(name),
            Self::Note(e) => e.mentions(name),
        }
    }
}

impl Expr {
    fn mentions(&self, name: &str) -> bool {
        match self {
            Self::Number(_) | Self::Millis(_) => false,
            Self::Name(n) => n == name,
            Self::Call(n, args) => n == name || args.iter().any(|a| a.mentions(name)),
            Self::Calc(a, _, b) => a.mentions(name) || b.mentions(name),
        }
    }
}
