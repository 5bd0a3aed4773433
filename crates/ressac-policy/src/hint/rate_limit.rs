//! `RateLimit` (draft-ietf-httpapi-ratelimit-headers): `"burst";r=0;t=7, "day";r=900;t=40000`.

use core::time::Duration;

use super::{digits, trim};

/// The longest `t` of the policies that have nothing left (`r=0`); `None` where none has, or where
/// any part of the field is malformed (a structured field is read whole or not at all, RFC 9651).
pub(super) fn wait(value: &[u8]) -> Option<Duration> {
    let mut longest = None;
    let mut rest = Some(value);
    while let Some(text) = rest {
        let (member, tail) = split(text, b',')?;
        rest = tail;
        longest = longest.max(member_wait(trim(member))?);
    }
    longest
}

/// `Some(None)`: well formed, and no reason to wait.
fn member_wait(member: &[u8]) -> Option<Option<Duration>> {
    let (name, mut parameters) = split(member, b';')?;
    if !is_name(trim(name)) {
        return None;
    }
    let (mut remaining, mut reset) = (None, None);
    while let Some(text) = parameters {
        let (parameter, tail) = split(text, b';')?;
        parameters = tail;
        match trim(parameter) {
            [b'r', b'=', number @ ..] => remaining = Some(digits(number)?),
            [b't', b'=', number @ ..] => reset = Some(digits(number)?),
            other if other.first().is_some_and(u8::is_ascii_lowercase) => {}
            _ => return None,
        }
    }
    let spent = remaining == Some(Some(0));
    Some(
        reset
            .filter(|_| spent)
            .map(|secs| secs.map_or(Duration::MAX, Duration::from_secs)),
    )
}

/// A string, or the bare token of older drafts.
fn is_name(name: &[u8]) -> bool {
    match name {
        [b'"', inner @ .., b'"'] => !inner.contains(&b'"'),
        [] => false,
        token => token
            .iter()
            .all(|b| b.is_ascii_alphanumeric() || b"-_.*:/%".contains(b)),
    }
}

/// At the first `separator` outside quotes; `None` where a quote is left open.
fn split(text: &[u8], separator: u8) -> Option<(&[u8], Option<&[u8]>)> {
    let mut quoted = false;
    for (index, byte) in text.iter().enumerate() {
        match byte {
            b'"' => quoted = !quoted,
            b if *b == separator && !quoted => {
                return Some((&text[..index], Some(&text[index + 1..])));
            }
            _ => {}
        }
    }
    (!quoted).then_some((text, None))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separators_inside_a_name_do_not_separate() {
        assert_eq!(wait(br#""a,b;c";r=0;t=3"#), Some(Duration::from_secs(3)));
    }

    #[test]
    fn malformed_is_ignored_whole() {
        let bad: [&[u8]; 7] = [
            b"",
            b"\"open;r=0;t=3",
            b"a;r=0;t=x",
            b"a;r=-1;t=3",
            b"a;r=0;t=3,",
            b";r=0;t=3",
            b"a;=1;r=0;t=3",
        ];
        for value in bad {
            assert_eq!(wait(value), None, "{}", value.escape_ascii());
        }
    }

    #[test]
    fn without_t_there_is_nothing_to_wait_for() {
        assert_eq!(wait(b"a;r=0"), None);
        assert_eq!(wait(b"a;t=5"), None);
    }
}
