//! Every setting in one table: what the parser knows, the reference page and the schema say.

mod apply;
mod gateway;
mod partner;
mod policy;
mod show;
mod value;

use std::sync::Arc;

use ressac_policy::Policy;

pub(crate) use apply::Apply;
pub(crate) use gateway::GATEWAY;
pub(crate) use partner::PARTNER;
pub(crate) use policy::{GROUPS, POLICY, policy_setting};
pub(crate) use value::{Fault, duration, flag, one_of, or_word, size, word};

/// What a value looks like.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Shape {
    /// `"10s"`.
    Duration,
    /// `"50/s"`.
    Rate,
    /// `"10MB"`.
    Size,
    /// A number that is a share.
    Share,
    /// A whole number in this range.
    Count(u32, u32),
    /// Any number.
    Number,
    Flag,
    /// One of these words.
    Words(&'static [&'static str]),
    /// A duration or a number of calls.
    CallWindow,
    /// Words and statuses.
    RetryOn,
    /// Statuses, and statuses with `+retry-after`.
    Unprocessed,
    Statuses,
    Vendors,
    Text,
    /// A table of header names and values.
    Headers,
}

/// One setting, as the reference describes it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting {
    /// Dotted, as [`ressac_policy::Problem::field`] has it.
    pub(crate) name: &'static str,
    pub(crate) shape: Shape,
    /// May it be the word `"off"`, or another word instead of the shape?
    pub(crate) word: Option<&'static str>,
    /// The range, in words; empty where the shape says it all.
    pub(crate) range: &'static str,
    /// The default, where the engine does not know it.
    pub(crate) default: &'static str,
    /// One or two sentences.
    pub(crate) doc: &'static str,
    /// Who honours it.
    pub(crate) by: By,
}

/// Who honours a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    /// Library, `send` and gateway.
    All,
    /// Callers who wait: library and `send`.
    Synchronous,
    /// The gateway.
    Gateway,
}

/// A setting of a policy: how it is read into one, and how it is shown.
pub(crate) struct PolicySetting {
    pub(crate) setting: Setting,
    pub(crate) apply: Apply,
    pub(crate) show: fn(&Policy) -> String,
}

/// A value that was read, ready to be laid over a policy.
pub(crate) type Change = Arc<dyn Fn(&mut Policy) + Send + Sync>;
