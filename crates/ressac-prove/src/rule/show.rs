//! A rule as it is written.

use std::fmt::{self, Display};

use super::{Expr, Op, Rule};

impl Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All(rules) => list(f, rules, " "),
            Self::Any(rules) => list(f, rules, " | "),
            Self::If(needs, then, otherwise) => {
                write!(f, "if[{}]{{{then}}}", needs.join(" "))?;
                match otherwise.as_ref() {
                    Self::All(none) if none.is_empty() => Ok(()),
                    other => write!(f, "else{{{other}}}"),
                }
            }
            Self::Warn(rule) => write!(f, "warn{{{rule}}}"),
            Self::Holds(name, args) if args.is_empty() => f.write_str(name),
            Self::Holds(name, args) => call(f, name, args),
            Self::Compare(a, op, b, hard) => {
                write!(f, "{a}{op}{b}{}", if *hard { "!" } else { "" })
            }
            Self::Note(e) => write!(f, "note({e})"),
        }
    }
}

fn list(f: &mut fmt::Formatter<'_>, rules: &[Rule], between: &str) -> fmt::Result {
    for (i, rule) in rules.iter().enumerate() {
        if i > 0 {
            f.write_str(between)?;
        }
        match rule {
            Rule::All(_) | Rule::Any(_) => write!(f, "({rule})")?,
            _ => write!(f, "{rule}")?,
        }
    }
    Ok(())
}

fn call(f: &mut fmt::Formatter<'_>, name: &str, args: &[Expr]) -> fmt::Result {
    let args: Vec<String> = args.iter().map(ToString::to_string).collect();
    write!(f, "{name}({})", args.join(","))
}

impl Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Eq => "=",
            Self::Ne => "!=",
            Self::Lt => "<",
            Self::Le => "<=",
            Self::Gt => ">",
            Self::Ge => ">=",
        })
    }
}

impl Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(n) => write!(f, "{n}"),
            Self::Millis(ms) if *ms >= 1000.0 => write!(f, "{}s", ms / 1000.0),
            Self::Millis(ms) => write!(f, "{ms}ms"),
            Self::Name(name) => f.write_str(name),
            Self::Call(name, args) => call(f, name, args),
            Self::Calc(a, sign, b) => write!(f, "{a}{sign}{b}"),
        }
    }
}
