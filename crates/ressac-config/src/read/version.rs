//! `http_version` of a partner.

use toml::de::DeValue;

use crate::model::HttpVersion;
use crate::settings::{Fault, word};

const KNOWN: [(&str, HttpVersion); 3] = [
    ("auto", HttpVersion::Auto),
    ("1.1", HttpVersion::Http1),
    ("2", HttpVersion::Http2),
];
const FIX: &str = "write \"auto\" or \"1.1\" or \"2\"";

/// One of the three words.
pub(crate) fn http_version(value: &DeValue<'_>) -> Result<HttpVersion, Fault> {
    word(value, &KNOWN).map_err(|fault| told(value, fault))
}

/// Says what was meant by the names that others have for the versions. A distance of letters would
/// not find it: `1` is as near to `2` as any other letter is.
fn told(value: &DeValue<'_>, fault: Fault) -> Fault {
    let number = match value {
        DeValue::String(text) => number(text),
        DeValue::Integer(number) => number.as_str().to_owned(),
        DeValue::Float(number) => number.as_str().to_owned(),
        _ => return fault,
    };
    let meant = match number.as_str() {
        "1" | "1.1" | "11" => "1.1",
        "2" | "2.0" | "2c" => "2",
        "0.9" | "1.0" | "3" | "3.0" => {
            return Fault::value(format!("HTTP/{number} is not spoken"), FIX);
        }
        _ => return fault,
    };
    let fix = match value {
        DeValue::String(_) => format!("did you mean \"{meant}\"? {FIX}"),
        _ => format!("write \"{meant}\", in quotes"),
    };
    Fault { fix, ..fault }
}

/// `HTTP/2`, `http2`, `h2`: what comes after the name of the protocol.
fn number(text: &str) -> String {
    let plain = text.to_ascii_lowercase();
    let name = plain.strip_prefix("http").or(plain.strip_prefix('h'));
    let number = name.unwrap_or(&plain);
    number.trim_start_matches(['/', '-', '_', ' ']).to_owned()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn read(value: &str) -> Result<HttpVersion, Fault> {
        let text = format!("v = {value}");
        let table = toml::de::DeTable::parse(&text).unwrap();
        http_version(table.get_ref().get("v").unwrap().get_ref())
    }

    #[test]
    fn three_words_and_no_other_spelling() {
        assert_eq!(read("'auto'"), Ok(HttpVersion::Auto));
        assert_eq!(read("'1.1'"), Ok(HttpVersion::Http1));
        assert_eq!(read("'2'"), Ok(HttpVersion::Http2));
        for wrong in ["''", "'Auto'", "' 2'", "'1.1 '", "true", "['2']", "{}"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_others_call_a_version_leads_to_its_word() {
        for (written, meant) in [
            ("'HTTP/1.1'", "1.1"),
            ("'http1.1'", "1.1"),
            ("'http1'", "1.1"),
            ("'1'", "1.1"),
            ("'HTTP/2'", "2"),
            ("'http2'", "2"),
            ("'h2'", "2"),
            ("'h2c'", "2"),
            ("'2.0'", "2"),
            ("'Auto'", "auto"),
        ] {
            let fault = read(written).unwrap_err();
            let said = format!("did you mean \"{meant}\"? {FIX}");
            assert_eq!((fault.code, fault.fix), ("bad-value", said), "{written}");
        }
        for (written, meant) in [("2", "2"), ("1.1", "1.1"), ("1", "1.1"), ("2.0", "2")] {
            let fault = read(written).unwrap_err();
            let said = format!("write \"{meant}\", in quotes");
            assert_eq!((fault.code, fault.fix), ("wrong-type", said), "{written}");
        }
    }

    #[test]
    fn a_version_that_is_not_spoken_is_said_to_be_that() {
        for (written, version) in [
            ("'3'", "3"),
            ("'h3'", "3"),
            ("'HTTP/1.0'", "1.0"),
            ("3", "3"),
        ] {
            let fault = read(written).unwrap_err();
            let label = format!("HTTP/{version} is not spoken");
            assert_eq!(
                (fault.label, fault.fix),
                (label, FIX.to_owned()),
                "{written}"
            );
        }
    }
}
