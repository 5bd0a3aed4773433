//! The key as it stands in the header: a structured string, or bare.

use http::{HeaderMap, HeaderName};

/// The most characters a key may have, without its quotes.
pub const MAX_KEY: usize = 255;

/// Reads the key, `None` where there is no such header.
///
/// The draft (§2.1) wants a structured string, `"8e03978e"` (RFC 9651 §3.3.3); most clients send
/// the same without quotes. Both are one key. Parameters after the string are ignored, as RFC 9651
/// has it for those nobody knows.
///
/// # Errors
///
/// What is wrong, as the end of a sentence: said twice, empty, too long, or no such string.
pub(super) fn read(headers: &HeaderMap, name: &HeaderName) -> Result<Option<String>, &'static str> {
    let mut values = headers.get_all(name).iter();
    let Some(first) = values.next() else {
        return Ok(None);
    };
    if values.next().is_some() {
        return Err("it stands there more than once");
    }
    let raw = first.as_bytes().trim_ascii();
    let key = match raw.strip_prefix(b"\"") {
        Some(rest) => quoted(rest)?,
        None => bare(raw)?,
    };
    if key.is_empty() {
        return Err("it is empty");
    }
    if key.len() > MAX_KEY {
        return Err("it is longer than 255 characters");
    }
    Ok(Some(key))
}

/// No quote and no comma: the one is a broken string, the other two headers folded into one.
fn bare(raw: &[u8]) -> Result<String, &'static str> {
    let plain = |byte: &u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b',');
    if !raw.iter().all(plain) {
        return Err("without quotes it may have visible ASCII characters only, no quote, no comma");
    }
    Ok(raw.iter().map(|byte| char::from(*byte)).collect())
}

/// What follows the opening quote.
fn quoted(rest: &[u8]) -> Result<String, &'static str> {
    let mut key = String::new();
    let mut bytes = rest.iter();
    loop {
        match bytes.next() {
            None => return Err("its closing quote is missing"),
            Some(b'"') => break,
            Some(b'\\') => match bytes.next() {
                Some(byte @ (b'"' | b'\\')) => key.push(char::from(*byte)),
                _ => return Err("a backslash stands before something other than \" or \\"),
            },
            Some(byte @ 0x20..=0x7e) => key.push(char::from(*byte)),
            Some(_) => return Err("it has characters other than visible ASCII and space"),
        }
    }
    let after = bytes.as_slice().trim_ascii_start();
    if after.is_empty() || after.starts_with(b";") {
        Ok(key)
    } else {
        Err("something follows its closing quote")
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use http::HeaderValue;

    use super::*;

    const NAME: HeaderName = HeaderName::from_static("idempotency-key");

    fn key(raw: &[u8]) -> Result<Option<String>, &'static str> {
        let mut headers = HeaderMap::new();
        headers.insert(NAME, HeaderValue::from_bytes(raw).unwrap());
        read(&headers, &NAME)
    }

    #[test]
    fn quoted_and_bare_are_one_key() {
        for raw in [
            "8e03-97",
            "\"8e03-97\"",
            "  \"8e03-97\" ",
            "\"8e03-97\";v=1",
        ] {
            assert_eq!(key(raw.as_bytes()), Ok(Some("8e03-97".into())), "{raw}");
        }
        assert_eq!(key(br#""a\"b\\c d""#), Ok(Some(r#"a"b\c d"#.into())));
        assert_eq!(read(&HeaderMap::new(), &NAME), Ok(None));
    }

    #[test]
    fn ik_7_what_is_no_key_is_refused() {
        let long = "x".repeat(MAX_KEY + 1);
        for raw in [
            "", "\"\"", "\"", "\"open", "\"a\" b", "\"a\"b", r#""\n""#, "a b", "a,b", "a\"b", &long,
        ] {
            assert!(key(raw.as_bytes()).is_err(), "{raw}");
        }
        assert!(key(b"caf\xe9").is_err());
        assert!(key(b"\"caf\xe9\"").is_err());
        assert_eq!(key(&long.as_bytes()[1..]).unwrap().unwrap().len(), MAX_KEY);
    }

    #[test]
    fn two_headers_are_refused() {
        let mut headers = HeaderMap::new();
        headers.append(NAME, HeaderValue::from_static("a"));
        headers.append(NAME, HeaderValue::from_static("a"));
        assert!(read(&headers, &NAME).is_err());
    }
}
