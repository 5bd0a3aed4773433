//! From a TOML value to a change of a policy, or to what is wrong with the value.

use std::sync::Arc;
use std::time::Duration;

use ressac_policy::{
    CallWindow, Deposit, Jitter, OverMax, Policy, Rate, Ratio, RetryOn, StatusSet, VendorHints,
};
use toml::de::DeValue;

use super::value::{
    Fault, call_window, count, duration, flag, number, or_word, rate, retry_on, share, statuses,
    unprocessed, vendors, word,
};
use super::{Change, Shape};

/// How a value becomes part of a policy. The second argument of each setter is the value read.
pub(crate) enum Apply {
    AlreadyDone(fn(&mut Policy, StatusSet)),
    CallWindow(fn(&mut Policy, CallWindow)),
    Count(u32, u32, fn(&mut Policy, u32)),
    CountOrOff(u32, u32, fn(&mut Policy, Option<u32>)),
    Deposit(fn(&mut Policy, Deposit)),
    Duration(fn(&mut Policy, Duration)),
    /// The word that stands for `None`.
    DurationOr(&'static str, fn(&mut Policy, Option<Duration>)),
    Flag(fn(&mut Policy, bool)),
    Jitter(fn(&mut Policy, Jitter)),
    Number(fn(&mut Policy, f64)),
    OverMax(fn(&mut Policy, OverMax)),
    Rate(fn(&mut Policy, Rate)),
    RateOrOff(fn(&mut Policy, Option<Rate>)),
    RetryOn(fn(&mut Policy, RetryOn)),
    Share(fn(&mut Policy, Ratio)),
    ShareOrOff(fn(&mut Policy, Option<Ratio>)),
    Unprocessed(fn(&mut Policy, StatusSet, StatusSet)),
    Vendors(fn(&mut Policy, VendorHints)),
}

fn change(set: impl Fn(&mut Policy) + Send + Sync + 'static) -> Change {
    Arc::new(set)
}

impl Apply {
    /// What the value looks like, and the word that may stand for it.
    pub(super) const fn shape(&self) -> (Shape, Option<&'static str>) {
        match self {
            Apply::AlreadyDone(_) => (Shape::Statuses, None),
            Apply::CallWindow(_) => (Shape::CallWindow, None),
            Apply::Count(min, max, _) => (Shape::Count(*min, *max), None),
            Apply::CountOrOff(min, max, _) => (Shape::Count(*min, *max), Some("off")),
            Apply::Deposit(_) => (Shape::Words(&["request", "success"]), None),
            Apply::Duration(_) => (Shape::Duration, None),
            Apply::DurationOr(word, _) => (Shape::Duration, Some(word)),
            Apply::Flag(_) => (Shape::Flag, None),
            Apply::Jitter(_) => (
                Shape::Words(&["none", "full", "equal", "decorrelated"]),
                None,
            ),
            Apply::Number(_) => (Shape::Number, None),
            Apply::OverMax(_) => (Shape::Words(&["clamp", "give_up"]), None),
            Apply::Rate(_) => (Shape::Rate, None),
            Apply::RateOrOff(_) => (Shape::Rate, Some("off")),
            Apply::RetryOn(_) => (Shape::RetryOn, None),
            Apply::Share(_) => (Shape::Share, None),
            Apply::ShareOrOff(_) => (Shape::Share, Some("off")),
            Apply::Unprocessed(_) => (Shape::Unprocessed, None),
            Apply::Vendors(_) => (Shape::Vendors, None),
        }
    }

    /// Reads the value; ranges that hang on other settings are for [`Policy::problems`].
    pub(crate) fn read(&self, value: &DeValue<'_>) -> Result<Change, Fault> {
        Ok(match *self {
            Apply::AlreadyDone(set) => {
                let statuses = statuses(value)?;
                change(move |p| set(p, statuses))
            }
            Apply::CallWindow(set) => {
                let window = call_window(value)?;
                change(move |p| set(p, window))
            }
            Apply::Count(min, max, set) => {
                let count = count(value, min, max)?;
                change(move |p| set(p, count))
            }
            Apply::CountOrOff(min, max, set) => {
                let count = or_word(value, "off", |v| count(v, min, max))?;
                change(move |p| set(p, count))
            }
            Apply::Deposit(set) => {
                let deposit = word(
                    value,
                    &[("request", Deposit::Request), ("success", Deposit::Success)],
                )?;
                change(move |p| set(p, deposit))
            }
            Apply::Duration(set) => {
                let duration = duration(value)?;
                change(move |p| set(p, duration))
            }
            Apply::DurationOr(none, set) => {
                let duration = or_word(value, none, duration)?;
                change(move |p| set(p, duration))
            }
            Apply::Flag(set) => {
                let flag = flag(value)?;
                change(move |p| set(p, flag))
            }
            Apply::Jitter(set) => {
                let all = [
                    Jitter::None,
                    Jitter::Full,
                    Jitter::Equal,
                    Jitter::Decorrelated,
                ];
                let jitter = word(value, &all.map(|jitter| (jitter.as_str(), jitter)))?;
                change(move |p| set(p, jitter))
            }
            Apply::Number(set) => {
                let number = number(value, "a number", "write a number, e.g. 2")?;
                change(move |p| set(p, number))
            }
            Apply::OverMax(set) => {
                let over = word(
                    value,
                    &[("clamp", OverMax::Clamp), ("give_up", OverMax::GiveUp)],
                )?;
                change(move |p| set(p, over))
            }
            Apply::Rate(set) => {
                let rate = rate(value)?;
                change(move |p| set(p, rate))
            }
            Apply::RateOrOff(set) => {
                let rate = or_word(value, "off", rate)?;
                change(move |p| set(p, rate))
            }
            Apply::RetryOn(set) => {
                let list = retry_on(value)?;
                change(move |p| set(p, list))
            }
            Apply::Share(set) => {
                let share = share(value)?;
                change(move |p| set(p, share))
            }
            Apply::ShareOrOff(set) => {
                let share = or_word(value, "off", share)?;
                change(move |p| set(p, share))
            }
            Apply::Unprocessed(set) => {
                let (plain, hinted) = unprocessed(value)?;
                change(move |p| set(p, plain, hinted))
            }
            Apply::Vendors(set) => {
                let vendors = vendors(value)?;
                change(move |p| set(p, vendors))
            }
        })
    }
}
