//! Reading single values, and saying what is wrong with them.

use std::ops::Range;
use std::time::Duration;

use ressac_policy::{CallWindow, Rate, Ratio, RetryOn, StatusSet, VendorHints};
use toml::Spanned;
use toml::de::DeValue;

use crate::suggest::nearest;
use crate::units::{UnitError, parse_duration, parse_rate, parse_size};

/// What is wrong with a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) code: &'static str,
    pub(crate) label: String,
    pub(crate) fix: String,
    /// A part of the value, if the whole is not to blame.
    pub(crate) span: Option<Range<usize>>,
    /// What else is wrong with a list.
    pub(crate) more: Vec<Fault>,
}

/// Of the faults of one list so many are told: a long one is wrong as a whole.
const MAX_FAULTS: usize = 16;

impl Fault {
    pub(crate) fn value(label: impl Into<String>, fix: impl Into<String>) -> Self {
        Fault {
            code: "bad-value",
            label: label.into(),
            fix: fix.into(),
            span: None,
            more: Vec::new(),
        }
    }

    fn within(self, item: &Spanned<DeValue<'_>>) -> Self {
        Fault {
            span: Some(item.span()),
            ..self
        }
    }

    pub(crate) fn kind(value: &DeValue<'_>, expected: &str, fix: impl Into<String>) -> Self {
        let found = match value {
            DeValue::String(_) => "a text",
            DeValue::Integer(_) => "a whole number",
            DeValue::Float(_) => "a number",
            DeValue::Boolean(_) => "true or false",
            DeValue::Datetime(_) => "a date",
            DeValue::Array(_) => "a list",
            DeValue::Table(_) => "a table",
        };
        Fault {
            code: "wrong-type",
            label: format!("this is {found}, {expected} is needed"),
            fix: fix.into(),
            span: None,
            more: Vec::new(),
        }
    }
}

impl From<UnitError> for Fault {
    fn from(error: UnitError) -> Self {
        Fault::value(error.what, error.fix)
    }
}

/// The word stands for `None`, all else is read.
pub(crate) fn or_word<T>(
    value: &DeValue<'_>,
    none: &str,
    read: impl FnOnce(&DeValue<'_>) -> Result<T, Fault>,
) -> Result<Option<T>, Fault> {
    let said = match value {
        DeValue::String(text) => text == none,
        // Said otherwise, but beyond doubt: still refused, there is one spelling.
        DeValue::Boolean(false) => {
            return Err(Fault::value(
                "false is not a value here",
                format!("write \"{none}\""),
            ));
        }
        _ => false,
    };
    if said {
        return Ok(None);
    }
    read(value).map(Some).map_err(|mut fault| {
        fault.fix.push_str(&format!("; or \"{none}\""));
        fault
    })
}

pub(crate) fn duration(value: &DeValue<'_>) -> Result<Duration, Fault> {
    match value {
        DeValue::String(text) => Ok(parse_duration(text)?),
        DeValue::Integer(number) if number.radix() == 10 => Err(Fault::kind(
            value,
            "a duration with its unit",
            format!("write e.g. \"{0}s\" or \"{0}ms\"", number.as_str()),
        )),
        _ => Err(Fault::kind(
            value,
            "a duration",
            "write e.g. \"10s\", \"500ms\", \"1h 30m\"",
        )),
    }
}

pub(super) fn rate(value: &DeValue<'_>) -> Result<Rate, Fault> {
    match value {
        DeValue::String(text) => Ok(parse_rate(text)?),
        _ => Err(Fault::kind(
            value,
            "a rate",
            "write e.g. \"50/s\", \"100/min\"",
        )),
    }
}

pub(crate) fn size(value: &DeValue<'_>) -> Result<u64, Fault> {
    match value {
        DeValue::String(text) => Ok(parse_size(text)?),
        _ => Err(Fault::kind(
            value,
            "a size with its unit",
            "write e.g. \"10MB\", \"256KiB\"",
        )),
    }
}

pub(crate) fn flag(value: &DeValue<'_>) -> Result<bool, Fault> {
    value
        .as_bool()
        .ok_or_else(|| Fault::kind(value, "true or false", "write true or false"))
}

pub(super) fn number(value: &DeValue<'_>, expected: &str, fix: &str) -> Result<f64, Fault> {
    match value {
        DeValue::Integer(_) => whole(value).map(|n| n as f64),
        DeValue::Float(float) => float.as_str().parse().ok(),
        _ => return Err(Fault::kind(value, expected, fix)),
    }
    .filter(|number: &f64| number.is_finite())
    .ok_or_else(|| Fault::value("not a finite number", fix))
}

pub(super) fn share(value: &DeValue<'_>) -> Result<Ratio, Fault> {
    const FIX: &str = "write a number: 0.5 is one half";
    let number = number(value, "a share", FIX)?;
    Ratio::from_f64(number).ok_or_else(|| Fault::value("negative, or above 4294", FIX))
}

/// An integer of any radix; `None` for other values, and beyond 128 bits.
fn whole(value: &DeValue<'_>) -> Option<i128> {
    let integer = value.as_integer()?;
    i128::from_str_radix(integer.as_str(), integer.radix()).ok()
}

pub(super) fn count(value: &DeValue<'_>, min: u32, max: u32) -> Result<u32, Fault> {
    let fix = format!("write a whole number from {min} to {max}");
    if value.as_integer().is_none() {
        return Err(Fault::kind(value, "a whole number", fix));
    }
    whole(value)
        .and_then(|number| u32::try_from(number).ok())
        .filter(|number| (min..=max).contains(number))
        .ok_or_else(|| Fault::value("out of range", fix))
}

pub(super) fn call_window(value: &DeValue<'_>) -> Result<CallWindow, Fault> {
    match value {
        DeValue::Integer(_) => Ok(CallWindow::Count(count(value, 1, 10_000)?)),
        DeValue::String(text) => Ok(CallWindow::Time(parse_duration(text)?)),
        _ => Err(Fault::kind(
            value,
            "a duration or a number of calls",
            "write e.g. \"10s\", or 100 for the last 100 calls",
        )),
    }
}

pub(crate) fn word<T: Copy>(value: &DeValue<'_>, known: &[(&'static str, T)]) -> Result<T, Fault> {
    let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
    let fix = format!("write \"{}\"", names.join("\" or \""));
    let DeValue::String(text) = value else {
        return Err(Fault::kind(value, "a word", fix));
    };
    known
        .iter()
        .find(|(name, _)| name == text)
        .map(|(_, meaning)| *meaning)
        .ok_or_else(|| {
            Fault::value(
                "not a word that is known here",
                did_you_mean(text, &names, fix),
            )
        })
}

/// One of these words.
pub(crate) fn one_of(value: &DeValue<'_>, known: &[&'static str]) -> Result<&'static str, Fault> {
    let known: Vec<_> = known.iter().map(|name| (*name, *name)).collect();
    word(value, &known)
}

fn did_you_mean(word: &str, known: &[&str], fix: String) -> String {
    match nearest(word, known.iter().copied()) {
        Some(near) => format!("did you mean \"{near}\"? {fix}"),
        None => fix,
    }
}

/// Reads a list item by item, to its end; a fault is put under its item.
fn fold<T: Copy>(
    value: &DeValue<'_>,
    fix: &str,
    empty: T,
    add: impl Fn(T, &DeValue<'_>) -> Result<T, Fault>,
) -> Result<T, Fault> {
    let DeValue::Array(items) = value else {
        return Err(Fault::kind(value, "a list", fix));
    };
    let (mut sum, mut faults) = (empty, Vec::new());
    for item in items.iter() {
        match add(sum, item.get_ref()) {
            Ok(added) => sum = added,
            Err(fault) => faults.push(fault.within(item)),
        }
    }
    let left_out = faults.len().saturating_sub(MAX_FAULTS);
    faults.truncate(MAX_FAULTS);
    if left_out > 0 {
        let label = format!("and {left_out} more items of this list");
        faults.push(Fault::value(label, fix));
    }
    if faults.is_empty() {
        return Ok(sum);
    }
    let mut first = faults.remove(0);
    first.more = faults;
    Err(first)
}

/// A status from `min` up.
fn status(value: &DeValue<'_>, min: u16, fix: &str) -> Result<u16, Fault> {
    if value.as_integer().is_none() {
        return Err(Fault::kind(value, "a status", fix));
    }
    whole(value)
        .and_then(|number| u16::try_from(number).ok())
        .filter(|status| (min..=999).contains(status))
        .ok_or_else(|| Fault::value(format!("not a status from {min} to 999"), fix))
}

pub(super) fn statuses(value: &DeValue<'_>) -> Result<StatusSet, Fault> {
    const FIX: &str = "write a list of statuses, e.g. [208, 409]";
    fold(value, FIX, StatusSet::EMPTY, |set, item| {
        Ok(set.with(status(item, 200, FIX)?))
    })
}

pub(super) fn retry_on(value: &DeValue<'_>) -> Result<RetryOn, Fault> {
    let fix = format!(
        "write statuses from 300 up and the words {}",
        RetryOn::WORDS.join(", ")
    );
    fold(value, &fix, RetryOn::EMPTY, |set, item| match item {
        DeValue::String(text) => set.with_word(text).ok_or_else(|| {
            Fault::value(
                format!("`{text}` is not a failure that is known here"),
                did_you_mean(text, &RetryOn::WORDS, fix.clone()),
            )
        }),
        _ => Ok(set.with_status(status(item, 300, &fix)?)),
    })
}

pub(super) fn unprocessed(value: &DeValue<'_>) -> Result<(StatusSet, StatusSet), Fault> {
    const FIX: &str = "write statuses from 300 up, e.g. [429, \"503+retry-after\"]";
    fold(
        value,
        FIX,
        (StatusSet::EMPTY, StatusSet::EMPTY),
        |(plain, hinted), item| {
            let DeValue::String(text) = item else {
                return Ok((plain.with(status(item, 300, FIX)?), hinted));
            };
            let number = text
                .strip_suffix("+retry-after")
                .filter(|digits| digits.len() == 3)
                .and_then(|digits| digits.parse::<u16>().ok())
                .filter(|status| (300..=999).contains(status))
                .ok_or_else(|| Fault::value("not a status with its hint", FIX))?;
            Ok((plain, hinted.with(number)))
        },
    )
}

pub(super) fn vendors(value: &DeValue<'_>) -> Result<VendorHints, Fault> {
    let fix = format!("write a list of {}", VendorHints::NAMES.join(", "));
    fold(value, &fix, VendorHints::NONE, |set, item| {
        let DeValue::String(text) = item else {
            return Err(Fault::kind(item, "a header's name", fix.clone()));
        };
        set.with(text).ok_or_else(|| {
            Fault::value(
                format!("`{text}` is not a hint that is known here"),
                did_you_mean(text, &VendorHints::NAMES, fix.clone()),
            )
        })
    })
}
