//! From text to words.

use super::Op;
use super::parse::RuleError;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    Name(String),
    Number(f64),
    Millis(f64),
    /// What stands in `[...]`, split at spaces and commas.
    Needs(Vec<String>),
    Cmp(Op),
    Sign(char),
}

pub(super) fn lex(text: &str) -> Result<Vec<(usize, Token)>, RuleError> {
    let bytes = text.as_bytes();
    let mut out = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let start = at;
        let c = bytes[at];
        let token = match c {
            b' ' | b'\t' | b'\n' | b'\r' => {
                at += 1;
                continue;
            }
            b'0'..=b'9' => number(text, &mut at)?,
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => {
                at += run(&bytes[at..], |b| b.is_ascii_alphanumeric() || b == b'_');
                Token::Name(text[start..at].to_owned())
            }
            b'[' => {
                let Some(end) = text[at..].find(']') else {
                    return Err(RuleError::at(text, at, "`[` without `]`"));
                };
                let inner = &text[at + 1..at + end];
                at += end + 1;
                let words = inner.split([' ', ',']).filter(|w| !w.is_empty());
                Token::Needs(words.map(str::to_owned).collect())
            }
            b'<' | b'>' | b'=' | b'!' => compare(bytes, &mut at),
            b'(' | b')' | b'{' | b'}' | b',' | b'|' | b'+' | b'-' | b'*' | b'/' => {
                at += 1;
                Token::Sign(c as char)
            }
            _ => return Err(RuleError::at(text, at, "no such sign")),
        };
        out.push((start, token));
    }
    Ok(out)
}

fn run(bytes: &[u8], fits: impl Fn(u8) -> bool) -> usize {
    bytes.iter().take_while(|b| fits(**b)).count()
}

fn number(text: &str, at: &mut usize) -> Result<Token, RuleError> {
    let bytes = text.as_bytes();
    let start = *at;
    *at += run(&bytes[*at..], |b| b.is_ascii_digit() || b == b'.');
    let value: f64 = text[start..*at]
        .parse()
        .map_err(|_| RuleError::at(text, start, "no number"))?;
    let unit_at = *at;
    *at += run(&bytes[*at..], |b| b.is_ascii_alphabetic());
    Ok(match &text[unit_at..*at] {
        "" => Token::Number(value),
        "ms" => Token::Millis(value),
        "s" => Token::Millis(value * 1000.0),
        "m" => Token::Millis(value * 60_000.0),
        _ => return Err(RuleError::at(text, unit_at, "no unit; write ms, s or m")),
    })
}

fn compare(bytes: &[u8], at: &mut usize) -> Token {
    let two = bytes.get(*at + 1) == Some(&b'=');
    let first = bytes[*at];
    *at += 1 + usize::from(two && first != b'=');
    match (first, two) {
        (b'<', true) => Token::Cmp(Op::Le),
        (b'<', false) => Token::Cmp(Op::Lt),
        (b'>', true) => Token::Cmp(Op::Ge),
        (b'>', false) => Token::Cmp(Op::Gt),
        (b'!', true) => Token::Cmp(Op::Ne),
        (b'!', false) => Token::Sign('!'),
        _ => Token::Cmp(Op::Eq),
    }
}
