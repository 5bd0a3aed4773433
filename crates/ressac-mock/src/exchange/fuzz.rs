//! An exchange without a connection, for the fuzz targets.

use std::sync::Arc;

use super::shape::Shape;
use super::{InFlight, plan};
use crate::arrive::Arrival;
use crate::reply::{Content, head_bytes};
use crate::state::Shared;
use crate::wire::RequestHead;

/// Makes the head and the first piece of the reply that an arrival gets; how many bytes they have.
pub(crate) fn reply(shared: &Arc<Shared>, head: &RequestHead, arrival: &Arrival) -> usize {
    let _in_flight = InFlight::new(shared, arrival.place);
    let (reply, mark) = plan::reply(shared, head, arrival);
    let content = Content::make(&reply, &mark);
    let shape = Shape::of(&reply, &content, head.method == "HEAD");
    let lines = content.lines(shape.announced, &[]);
    head_bytes(content.status, &lines).len() + content.body.piece(0, 4096).len()
}
