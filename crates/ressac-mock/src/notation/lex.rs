//! Splitting at commas and spaces outside quotes, braces, brackets and parentheses.

use super::NotationError;

/// A word and where it begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Word<'a> {
    pub(super) text: &'a str,
    pub(super) at: usize,
}

/// The longest script, in bytes.
const MAX_LEN: usize = 64 * 1024;
/// The deepest nesting of brackets.
const MAX_DEPTH: usize = 32;

/// Splits at top-level commas.
pub(super) fn split_commas(text: &str) -> Result<Vec<Word<'_>>, NotationError> {
    if text.len() > MAX_LEN {
        return Err(NotationError::new(
            MAX_LEN,
            "longer than 64 KiB",
            "use fewer steps, or xN",
        ));
    }
    split(text, |c| c == ',')
}

/// Splits at top-level white space; empty parts are dropped.
pub(super) fn split_spaces(part: Word<'_>) -> Result<Vec<Word<'_>>, NotationError> {
    let words = split(part.text, char::is_whitespace).map_err(|e| e.shifted(part.at))?;
    Ok(words
        .into_iter()
        .filter(|w| !w.text.is_empty())
        .map(|w| Word {
            text: w.text,
            at: w.at + part.at,
        })
        .collect())
}

fn split(text: &str, separates: impl Fn(char) -> bool) -> Result<Vec<Word<'_>>, NotationError> {
    let mut out = Vec::new();
    let mut open: Vec<(char, usize)> = Vec::new();
    let mut quote: Option<usize> = None;
    let mut escaped = false;
    let mut start = 0;
    for (i, c) in text.char_indices() {
        if quote.is_some() {
            match c {
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                '"' => quote = None,
                _ => {}
            }
            continue;
        }
        match c {
            '"' => quote = Some(i),
            '{' | '[' | '(' => {
                open.push((c, i));
                if open.len() > MAX_DEPTH {
                    return Err(NotationError::new(
                        i,
                        "nested too deeply",
                        "use fewer brackets",
                    ));
                }
            }
            '}' | ']' | ')' => close(&mut open, c, i)?,
            _ if open.is_empty() && separates(c) => {
                out.push(Word {
                    text: &text[start..i],
                    at: start,
                });
                start = i + c.len_utf8();
            }
            _ => {}
        }
    }
    if let Some(at) = quote {
        return Err(NotationError::new(
            at,
            "this quote is never closed",
            "add a closing `\"`",
        ));
    }
    if let Some((c, at)) = open.pop() {
        let what = format!("`{c}` is never closed");
        return Err(NotationError::new(
            at,
            what,
            format!("add `{}`", partner(c)),
        ));
    }
    out.push(Word {
        text: &text[start..],
        at: start,
    });
    Ok(out)
}

fn close(open: &mut Vec<(char, usize)>, c: char, at: usize) -> Result<(), NotationError> {
    match open.pop() {
        Some((o, _)) if partner(o) == c => Ok(()),
        Some((o, _)) => {
            let what = format!("`{c}` closes `{o}`");
            Err(NotationError::new(
                at,
                what,
                format!("write `{}`", partner(o)),
            ))
        }
        None => Err(NotationError::new(
            at,
            format!("`{c}` closes nothing"),
            "remove it, or quote it",
        )),
    }
}

fn partner(open: char) -> char {
    match open {
        '{' => '}',
        '[' => ']',
        _ => ')',
    }
}
