//! Path patterns: `/{token}/v1/payments`, `{rest...}` for the tail.

use std::fmt;

/// A pattern for paths. `{name}` captures one segment, `{name...}` at the end captures the tail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathPattern {
    text: String,
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Literal(String),
    Segment(String),
    Tail,
}

impl PathPattern {
    /// Parses a pattern. The error says what is wrong and how to write it.
    ///
    /// ```
    /// use ressac_mock::PathPattern;
    ///
    /// assert!(PathPattern::parse("/{token}/v1/{rest...}").is_ok());
    /// assert!(PathPattern::parse("no-slash").is_err());
    /// ```
    ///
    /// # Errors
    ///
    /// A pair of message and fix if the text is no pattern.
    pub fn parse(text: &str) -> Result<Self, (String, String)> {
        let Some(rest) = text.strip_prefix('/') else {
            return Err(("a path begins with `/`".into(), format!("write `/{text}`")));
        };
        if text.contains(['?', '#', ' ']) || text.chars().any(char::is_control) {
            return Err((
                "a path has no query, space or `#`".into(),
                "remove it".into(),
            ));
        }
        let mut parts = Vec::new();
        for segment in rest.split('/') {
            if parts.last() == Some(&Part::Tail) {
                return Err((
                    "segments after `{..}`'s tail".into(),
                    "put the tail last".into(),
                ));
            }
            parts.push(Self::part(segment)?);
        }
        Ok(Self {
            text: text.to_owned(),
            parts,
        })
    }

    fn part(segment: &str) -> Result<Part, (String, String)> {
        let Some(inner) = segment.strip_prefix('{').and_then(|s| s.strip_suffix('}')) else {
            if segment.contains(['{', '}']) {
                return Err((
                    format!("`{segment}` mixes text and a capture"),
                    "let `{name}` be a whole segment".into(),
                ));
            }
            return Ok(Part::Literal(segment.to_owned()));
        };
        let (name, tail) = match inner.strip_suffix("...") {
            Some(name) => (name, true),
            None => (inner, false),
        };
        if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
            return Err((
                format!("`{{{inner}}}` is no capture"),
                "write letters, digits and `_` in the braces".into(),
            ));
        }
        Ok(if tail {
            Part::Tail
        } else {
            Part::Segment(name.to_owned())
        })
    }

    /// Whether some segment is captured as `{token}`.
    pub(crate) fn has_token(&self) -> bool {
        self.parts
            .iter()
            .any(|p| matches!(p, Part::Segment(n) if n == "token"))
    }

    /// If the path matches: the segment captured as `{token}`, if the pattern has one.
    pub(crate) fn matches<'p>(&self, path: &'p str) -> Option<Option<&'p str>> {
        let mut rest = path.strip_prefix('/')?.split('/');
        let mut token = None;
        for part in &self.parts {
            match part {
                Part::Tail => return Some(token),
                Part::Literal(l) => {
                    if rest.next()? != l {
                        return None;
                    }
                }
                Part::Segment(name) => {
                    let segment = rest.next().filter(|s| !s.is_empty())?;
                    if name == "token" {
                        token = Some(segment);
                    }
                }
            }
        }
        rest.next().is_none().then_some(token)
    }
}

impl fmt::Display for PathPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn matching() {
        let p = PathPattern::parse("/{token}/v1/pay").unwrap();
        assert_eq!(p.matches("/t1/v1/pay"), Some(Some("t1")));
        assert_eq!(p.matches("/t1/v1/pay/"), None);
        assert_eq!(p.matches("//v1/pay"), None);
        let p = PathPattern::parse("/a/{rest...}").unwrap();
        assert_eq!(p.matches("/a/b/c"), Some(None));
        assert_eq!(p.matches("/b"), None);
        for bad in ["x", "/a{b}", "/{}", "/{a...}/b", "/a?b"] {
            assert!(PathPattern::parse(bad).is_err(), "{bad}");
        }
    }
}
