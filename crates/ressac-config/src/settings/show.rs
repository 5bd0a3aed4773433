//! Values of a policy as one would write them.

use std::time::Duration;

use ressac_policy::{
    BreakerConfig, BudgetConfig, CallWindow, Policy, Rate, Ratio, StatusSet, VendorHints,
};

use crate::units::{format_duration, format_rate};

pub(super) const OFF: &str = "off";

pub(super) fn or_off<T>(value: Option<T>, show: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| OFF.to_owned(), show)
}

pub(super) fn of_budget(policy: &Policy, show: impl FnOnce(&BudgetConfig) -> String) -> String {
    or_off(policy.budget.as_ref(), show)
}

pub(super) fn of_breaker(policy: &Policy, show: impl FnOnce(&BreakerConfig) -> String) -> String {
    or_off(policy.breaker.as_ref(), show)
}

pub(super) fn time(duration: Duration) -> String {
    format_duration(duration)
}

pub(super) fn share(ratio: Ratio) -> String {
    ratio.to_string()
}

pub(super) fn rate(rate: Rate) -> String {
    format_rate(rate)
}

pub(super) fn show_window(window: CallWindow) -> String {
    match window {
        CallWindow::Time(duration) => format_duration(duration),
        CallWindow::Count(calls) => format!("{calls} calls"),
    }
}

pub(super) fn show_statuses(set: &StatusSet) -> String {
    show_list(set.iter().map(|status| status.to_string()))
}

pub(super) fn show_list(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<_>>().join(", "))
}

pub(super) fn show_retry_on(policy: &Policy) -> String {
    policy.rules.retry_on.map_or_else(
        || "the table".to_owned(),
        |list| {
            let words = list.words().map(str::to_owned);
            show_list(words.chain(list.statuses.iter().map(|status| status.to_string())))
        },
    )
}

pub(super) fn show_unprocessed(policy: &Policy) -> String {
    let plain = policy
        .rules
        .unprocessed
        .iter()
        .map(|status| status.to_string());
    let hinted = policy.rules.unprocessed_with_hint.iter();
    show_list(plain.chain(hinted.map(|status| format!("{status}+retry-after"))))
}

pub(super) fn show_vendors(set: VendorHints) -> String {
    let believed = VendorHints::NAMES
        .into_iter()
        .filter(|name| set.with(name) == Some(set));
    show_list(believed.map(str::to_owned))
}
