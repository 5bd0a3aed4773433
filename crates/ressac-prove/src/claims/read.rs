//! Reading a claims file, and what cannot be claimed.

use ressac_policy::RetryOn;

use super::{Claims, FLAGS, SETTABLE};
use crate::diagnostic::BadFile;

impl Claims {
    /// Reads a claims file; `path` is for messages.
    ///
    /// # Errors
    ///
    /// An unknown key, a value of the wrong kind, or a word that is none, with its line.
    pub fn parse(path: &str, text: &str) -> Result<Self, BadFile> {
        let claims: Self =
            toml::from_str(text).map_err(|error| BadFile::toml(path, text, &error))?;
        let bad = |word: &str, what: String, fix: &str| {
            Err(BadFile::new(path, text, find(text, word), what, fix))
        };
        let c = &claims.claims;
        for word in &c.flags {
            if !FLAGS.contains(&word.as_str()) {
                let fix = format!("known flags: {}", FLAGS.join(", "));
                return bad(word, format!("`{word}` is no flag"), &fix);
            }
        }
        for word in &c.settable {
            if !SETTABLE.contains(&word.as_str()) {
                let fix = format!("known settings: {}", SETTABLE.join(", "));
                return bad(word, format!("`{word}` is no setting"), &fix);
            }
        }
        for word in &c.errors {
            if !RetryOn::WORDS.contains(&word.as_str()) {
                let fix = format!("known errors: {}", RetryOn::WORDS.join(", "));
                return bad(word, format!("`{word}` is no error"), &fix);
            }
        }
        if c.attempts == Some(0) {
            return bad(
                "attempts",
                "0 attempts: nothing is ever sent".into(),
                "write 1 or more",
            );
        }
        if let Some(b) = &c.backoff
            && (b.base.is_zero() || b.cap < b.base || !b.factor.is_finite() || b.factor < 1.0)
        {
            let fix = "base above 0, cap at least the base, factor at least 1";
            return bad("backoff", "a backoff that cannot be".into(), fix);
        }
        if let Some(r) = &c.retry_after {
            if !matches!(r.over_max.as_str(), "" | "clamp" | "give_up") {
                let what = format!("`{}` is no over_max", r.over_max);
                return bad(&r.over_max, what, "write clamp or give_up");
            }
            if let Some(form) = r
                .forms
                .iter()
                .find(|f| !matches!(f.as_str(), "seconds" | "date"))
            {
                return bad(form, format!("`{form}` is no form"), "write seconds, date");
            }
        }
        if let Some(k) = &c.keys
            && !matches!(k.made_by.as_str(), "client" | "caller")
        {
            let what = format!("`{}` makes no keys", k.made_by);
            return bad(&k.made_by, what, "write client or caller");
        }
        Ok(claims)
    }
}

/// Where a word stands, in quotes or as a key.
fn find(text: &str, word: &str) -> Option<std::ops::Range<usize>> {
    let quoted = format!("\"{word}\"");
    let (at, len) = match text.find(&quoted) {
        Some(at) => (at, quoted.len()),
        None => (text.find(word)?, word.len()),
    };
    Some(at..at + len)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::claims::Jitter;

    const HEAD: &str = "[client]\nname = \"x\"\nmode = \"exec\"\n[claims]\n";

    fn bad(line: &str) -> BadFile {
        Claims::parse("c.toml", &format!("{HEAD}{line}\n")).unwrap_err()
    }

    #[test]
    fn what_is_no_claim_is_refused_with_its_line() {
        for line in [
            "flags = [\"deadlin\"]",
            "retires = 3",
            "settable = [\"jitter\"]",
            "errors = [\"rest\"]",
            "attempts = 0",
            "attempts = \"4\"",
            "backoff = { base = \"1s\", cap = \"10ms\", jitter = \"full\" }",
            "backoff = { base = \"1s\", cap = \"10s\", jitter = \"some\" }",
            "retry_after = { statuses = [429], over_max = \"wait\" }",
            "keys = { made_by = \"server\" }",
        ] {
            let error = bad(line);
            assert_eq!(error.line(), 5, "{line}: {error}");
            assert!(error.to_string().contains("c.toml"), "{error}");
        }
    }

    #[test]
    fn needs_are_read_off_the_claims() {
        let claims = Claims::parse(
            "c.toml",
            &format!(
                "{HEAD}statuses = [503]\nkeyed = [\"POST\"]\nattempts = 3\n\
                 retry_after = {{ statuses = [429], forms = [\"seconds\"], vendor = [\"RateLimit\"] }}\n\
                 keys = {{ made_by = \"client\" }}\n\
                 backoff = {{ base = \"1s\", cap = \"9s\", jitter = \"up:0.5\" }}\n\
                 settable = [\"base\"]\nflags = [\"tls\"]"
            ),
        )
        .unwrap();
        for need in [
            "st:503",
            "key",
            "key:own",
            "ra:429",
            "ra:seconds",
            "vendor:ratelimit",
            "A>=3",
            "set:base",
            "tls",
            "jitter:up",
            "jitter:spread",
            "factor>=2",
            "backoff",
        ] {
            assert!(claims.has(need), "{need}");
        }
        for need in [
            "st:502",
            "ra:503",
            "ra:date",
            "A>=4",
            "set:cap",
            "http2",
            "lines",
            "durable",
            "budget",
            "m:GET",
            "kst:409",
            "jitter:full",
        ] {
            assert!(!claims.has(need), "{need}");
        }
        assert_eq!(claims.claims.backoff.unwrap().jitter, Jitter::Up(0.5));
    }
}
