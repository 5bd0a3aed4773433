//! What a reply or an error of the service inside means.

use http::{Response, StatusCode};
use http_body::Body;
use ressac_policy::{Outcome, Processed};

use super::drain::drain;
use super::failure::Failure;
use super::grpc;
use crate::classify::{Classify, Context, Judge, outcomes};

/// By status and headers, or by what an error's chain proves.
#[derive(Clone, Copy, Debug)]
pub(super) struct ByHttp;

impl<B> Judge<Response<B>, Failure> for ByHttp
where
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Send,
{
    type Reply = Response<B>;

    fn outcome(&self, result: &Result<Response<B>, Failure>, context: &Context) -> Outcome {
        let reply = match result {
            Ok(reply) => reply,
            Err(failure) => return of_failure(failure, context),
        };
        // What stands between the two answers a gRPC call with an HTTP status of its own.
        let is_grpc = reply.status() == StatusCode::OK && grpc::is_grpc(reply.headers());
        let by_grpc = if is_grpc {
            grpc::outcome(reply.headers())
        } else {
            None
        };
        by_grpc.unwrap_or_else(|| reply.outcome(context))
    }

    fn keep(&self, reply: Response<B>) -> Option<Response<B>> {
        Some(reply)
    }

    /// It holds a connection, which may be the one the next attempt needs (EX-6).
    fn keep_while_waiting(&self, reply: Response<B>) -> Option<Response<B>> {
        drain(reply.into_body());
        None
    }
}

pub(super) fn of_failure(failure: &Failure, context: &Context) -> Outcome {
    let outcome = of_error(failure.get_ref(), context);
    // A service that was not ready was given nothing.
    if failure.handed_over {
        outcome
    } else {
        outcome.proving(Processed::No)
    }
}

#[cfg(feature = "hyper-util")]
fn of_error(error: &(dyn std::error::Error + 'static), context: &Context) -> Outcome {
    use hyper_util::client::legacy::Error;
    use ressac_policy::OutcomeKind;

    let mut link = Some(error);
    // Deeper than any stack of layers; a chain that runs in a circle ends here.
    for _ in 0..16 {
        let Some(current) = link else { break };
        if let Some(error) = current.downcast_ref::<Error>() {
            // Its kind is private: a request that the client cannot send, as one without a host.
            let ours = error.to_string().starts_with("client error (User");
            let invalid = Outcome::new(OutcomeKind::Invalid).proving(Processed::No);
            return if ours {
                invalid
            } else {
                error.outcome(context)
            };
        }
        link = current.source();
    }
    outcomes::of_error(error)
}

#[cfg(not(feature = "hyper-util"))]
fn of_error(error: &(dyn std::error::Error + 'static), _: &Context) -> Outcome {
    outcomes::of_error(error)
}
