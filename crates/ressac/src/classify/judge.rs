//! Who says what a closure's result means.

use std::convert::Infallible;
use std::fmt;

use ressac_policy::Outcome;

use super::{Classify, Context, outcomes};

/// Says what the result of a closure means. The three there are come from
/// [`Retry`](crate::Retry): by the error alone, by error and reply, or by a closure.
pub trait Judge<T, E> {
    /// What an error carries of a reply that was no success.
    type Reply;

    /// What it means. How long the attempt took is filled in by the executor.
    fn outcome(&self, result: &Result<T, E>, context: &Context) -> Outcome;

    /// A reply that was no success: what of it goes into the error, should this be the end.
    fn keep(&self, value: T) -> Option<Self::Reply>;

    /// There is a wait, and another attempt after it. What is kept meanwhile; a reply that holds a
    /// connection should not be.
    fn keep_while_waiting(&self, reply: Self::Reply) -> Option<Self::Reply> {
        Some(reply)
    }
}

/// There is no reply in the error: `Ok` was taken for success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoReply(Infallible);

impl fmt::Display for NoReply {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {}
    }
}

/// `Ok` is success, an error says itself what it means.
#[derive(Clone, Copy, Debug, Default)]
pub struct ByError;

impl<T, E: Classify> Judge<T, E> for ByError {
    type Reply = NoReply;

    fn outcome(&self, result: &Result<T, E>, context: &Context) -> Outcome {
        match result {
            Ok(_) => Outcome::success(),
            Err(error) => error.outcome(context),
        }
    }

    fn keep(&self, _: T) -> Option<NoReply> {
        None
    }
}

/// Reply and error both say what they mean: a reply can be a 503.
#[derive(Clone, Copy, Debug, Default)]
pub struct ByReply;

impl<T: Classify, E: Classify> Judge<T, E> for ByReply {
    type Reply = T;

    fn outcome(&self, result: &Result<T, E>, context: &Context) -> Outcome {
        match result {
            Ok(reply) => reply.outcome(context),
            Err(error) => error.outcome(context),
        }
    }

    fn keep(&self, value: T) -> Option<T> {
        Some(value)
    }
}

/// A closure says what a result means.
#[derive(Clone, Copy)]
pub struct ByClosure<J>(pub(crate) J);

impl<T, E, J> Judge<T, E> for ByClosure<J>
where
    J: Fn(&Result<T, E>, &Context) -> Outcome,
{
    type Reply = T;

    fn outcome(&self, result: &Result<T, E>, context: &Context) -> Outcome {
        self.0(result, context)
    }

    fn keep(&self, value: T) -> Option<T> {
        Some(value)
    }
}

impl<J> fmt::Debug for ByClosure<J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ByClosure")
    }
}

/// A closure says of an error whether another attempt can help.
#[derive(Clone, Copy)]
pub struct When<W>(pub(crate) W);

impl<T, E, W: Fn(&E) -> bool> Judge<T, E> for When<W> {
    type Reply = NoReply;

    fn outcome(&self, result: &Result<T, E>, _: &Context) -> Outcome {
        match result {
            Ok(_) => Outcome::success(),
            Err(error) if self.0(error) => outcomes::transient(),
            Err(_) => outcomes::permanent(),
        }
    }

    fn keep(&self, _: T) -> Option<NoReply> {
        None
    }
}

impl<W> fmt::Debug for When<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("When")
    }
}
