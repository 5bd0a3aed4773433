//! From words to a rule.

use std::fmt;
use std::str::FromStr;

use super::lex::{Token, lex};
use super::{Expr, Rule};

/// The deepest nesting of a rule.
const DEEPEST: usize = 32;

/// A rule that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleError {
    text: String,
    at: usize,
    what: &'static str,
}

impl RuleError {
    pub(super) fn at(text: &str, at: usize, what: &'static str) -> Self {
        Self {
            text: text.to_owned(),
            at,
            what,
        }
    }
}

impl fmt::Display for RuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "rule `{}`: {} at character {}",
            self.text,
            self.what,
            self.at + 1
        )
    }
}

impl std::error::Error for RuleError {}

impl FromStr for Rule {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        let tokens = lex(text)?;
        let mut parser = Parser {
            text,
            tokens,
            next: 0,
            depth: 0,
        };
        let rule = parser.any()?;
        match parser.peek() {
            None => Ok(rule),
            Some(_) => Err(parser.wrong("something is left over")),
        }
    }
}

struct Parser<'a> {
    text: &'a str,
    tokens: Vec<(usize, Token)>,
    next: usize,
    depth: usize,
}

impl Parser<'_> {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.next).map(|t| &t.1)
    }

    fn wrong(&self, what: &'static str) -> RuleError {
        let at = self.tokens.get(self.next).map_or(self.text.len(), |t| t.0);
        RuleError::at(self.text, at, what)
    }

    fn eat(&mut self, sign: char) -> bool {
        let found = self.peek() == Some(&Token::Sign(sign));
        self.next += usize::from(found);
        found
    }

    fn need(&mut self, sign: char, what: &'static str) -> Result<(), RuleError> {
        if self.eat(sign) {
            Ok(())
        } else {
            Err(self.wrong(what))
        }
    }

    /// Counts a level down; the caller counts it up again.
    fn deeper(&mut self) -> Result<(), RuleError> {
        self.depth += 1;
        match self.depth > DEEPEST {
            true => Err(self.wrong("nested too deep")),
            false => Ok(()),
        }
    }

    fn any(&mut self) -> Result<Rule, RuleError> {
        self.deeper()?;
        let mut ways = vec![self.all()?];
        while self.eat('|') {
            ways.push(self.all()?);
        }
        self.depth -= 1;
        Ok(one_or(ways, Rule::Any))
    }

    fn all(&mut self) -> Result<Rule, RuleError> {
        let mut parts = Vec::new();
        while !matches!(self.peek(), None | Some(Token::Sign(')' | '}' | '|'))) {
            parts.push(self.unit()?);
        }
        if parts.is_empty() {
            return Err(self.wrong("a condition is missing"));
        }
        Ok(one_or(parts, Rule::All))
    }

    fn unit(&mut self) -> Result<Rule, RuleError> {
        if self.eat('(') {
            let inner = self.any()?;
            self.need(')', "`)` is missing")?;
            return Ok(inner);
        }
        match self.peek() {
            Some(Token::Name(name)) if name == "if" => self.by_claims(),
            Some(Token::Name(name)) if name == "warn" => {
                self.next += 1;
                Ok(Rule::Warn(Box::new(self.braced()?)))
            }
            _ => self.condition(),
        }
    }

    fn by_claims(&mut self) -> Result<Rule, RuleError> {
        self.next += 1;
        let Some(Token::Needs(needs)) = self.peek().cloned() else {
            return Err(self.wrong("`[need]` is missing behind `if`"));
        };
        self.next += 1;
        let then = self.braced()?;
        let otherwise = match self.peek() {
            Some(Token::Name(name)) if name == "else" => {
                self.next += 1;
                self.braced()?
            }
            _ => Rule::All(Vec::new()),
        };
        Ok(Rule::If(needs, Box::new(then), Box::new(otherwise)))
    }

    fn braced(&mut self) -> Result<Rule, RuleError> {
        self.need('{', "`{` is missing")?;
        let inner = self.any()?;
        self.need('}', "`}` is missing")?;
        Ok(inner)
    }

    fn condition(&mut self) -> Result<Rule, RuleError> {
        let left = self.sum()?;
        if let Some(Token::Cmp(op)) = self.peek().cloned() {
            self.next += 1;
            let right = self.sum()?;
            let hard = self.eat('!');
            return Ok(Rule::Compare(left, op, right, hard));
        }
        match left {
            Expr::Name(name) => Ok(Rule::Holds(name, Vec::new())),
            Expr::Call(name, mut args) if name == "note" && args.len() == 1 => {
                Ok(Rule::Note(args.remove(0)))
            }
            Expr::Call(name, args) => Ok(Rule::Holds(name, args)),
            _ => Err(self.wrong("a comparison is missing")),
        }
    }

    fn sum(&mut self) -> Result<Expr, RuleError> {
        self.deeper()?;
        let mut left = self.product()?;
        while let Some(Token::Sign(sign @ ('+' | '-'))) = self.peek().cloned() {
            self.next += 1;
            let right = self.product()?;
            left = Expr::Calc(Box::new(left), sign, Box::new(right));
        }
        self.depth -= 1;
        Ok(left)
    }

    fn product(&mut self) -> Result<Expr, RuleError> {
        let mut left = self.value()?;
        while let Some(Token::Sign(sign @ ('*' | '/'))) = self.peek().cloned() {
            self.next += 1;
            let right = self.value()?;
            left = Expr::Calc(Box::new(left), sign, Box::new(right));
        }
        Ok(left)
    }

    fn value(&mut self) -> Result<Expr, RuleError> {
        let token = self.peek().cloned();
        let value = match token {
            Some(Token::Number(n)) => Expr::Number(n),
            Some(Token::Millis(n)) => Expr::Millis(n),
            Some(Token::Name(name)) => {
                self.next += 1;
                if !self.eat('(') {
                    return Ok(Expr::Name(name));
                }
                let mut args = Vec::new();
                while !self.eat(')') {
                    args.push(self.sum()?);
                    if !self.eat(',') && self.peek() != Some(&Token::Sign(')')) {
                        return Err(self.wrong("`,` or `)` is missing"));
                    }
                }
                return Ok(Expr::Call(name, args));
            }
            _ => return Err(self.wrong("a value is missing")),
        };
        self.next += 1;
        Ok(value)
    }
}

fn one_or(mut rules: Vec<Rule>, many: impl Fn(Vec<Rule>) -> Rule) -> Rule {
    if rules.len() == 1 {
        rules.remove(0)
    } else {
        many(rules)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_is_read_is_what_is_written() {
        for text in [
            "n=2 ok own(g1)",
            "n=1 | (n=2 g1>=1s)",
            "if[st:425]{n=2 ok}else{n=1}",
            "warn{g1<=4s+hi(0)}",
            "end<=2.2s!",
            "note(n-1)",
            "n<=A ko st=503 end<=sumhi+5s",
            "gmax<=1.05*cap+50ms",
            "same(key) eff=1",
            "(n=1 | n=2) ok",
        ] {
            let rule: Rule = text.parse().unwrap();
            assert_eq!(rule.to_string(), text);
        }
    }

    #[test]
    fn what_cannot_be_read_is_pointed_at() {
        for (text, at) in [
            ("n=", 3),
            ("n=2 )", 5),
            ("if{n=1}", 3),
            ("g1>=1h", 6),
            ("", 1),
            ("$", 1),
        ] {
            let error = text.parse::<Rule>().unwrap_err();
            assert!(
                error.to_string().ends_with(&format!("character {at}")),
                "{error}"
            );
        }
        for deep in ["(", "hi(", "warn{"] {
            assert!(deep.repeat(20_000).parse::<Rule>().is_err(), "{deep}");
        }
    }
}
