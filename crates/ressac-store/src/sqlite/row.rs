//! Columns and the values they stand for.

use uuid::Uuid;

use crate::error::StoreError;
use crate::types::{Class, State};

/// SQLite's integers are signed; the year 2262 is far enough.
pub(super) fn int(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

pub(super) fn nat(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}

pub(super) fn small(value: i64) -> u32 {
    u32::try_from(value).unwrap_or(0)
}

pub(super) fn count(value: usize) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// "No deadline" is the largest integer, so that it sorts last.
pub(super) fn deadline_in(deadline: Option<u64>) -> i64 {
    deadline.map_or(i64::MAX, int)
}

pub(super) fn deadline_out(value: i64) -> Option<u64> {
    (value != i64::MAX).then(|| nat(value))
}

pub(super) fn id(bytes: [u8; 16]) -> Uuid {
    Uuid::from_bytes(bytes)
}

pub(super) const fn state_in(state: State) -> i64 {
    match state {
        State::Waiting => 0,
        State::Sending => 1,
        State::Delivered => 2,
        State::Dead => 3,
    }
}

pub(super) fn state_out(value: i64) -> State {
    match value {
        0 => State::Waiting,
        1 => State::Sending,
        2 => State::Delivered,
        _ => State::Dead,
    }
}

pub(super) const fn class_in(class: Class) -> i64 {
    match class {
        Class::First => 0,
        Class::Retry => 1,
        Class::Replay => 2,
    }
}

pub(super) fn class_out(value: i64) -> Class {
    match value {
        0 => Class::First,
        1 => Class::Retry,
        _ => Class::Replay,
    }
}

/// The line of a first attempt that is not due yet.
pub(super) const DEFERRED: i64 = 3;

/// The line a waiting row of this class stands in, when nothing of its lane is before it.
pub(super) fn line(class: Class, due: u64, now: u64) -> i64 {
    match class {
        Class::First if due > now => DEFERRED,
        _ => class_in(class),
    }
}

/// Headers as one blob: for each, length and name, length and value.
pub(super) fn headers_in(headers: &[(String, Vec<u8>)]) -> Vec<u8> {
    let mut out = Vec::new();
    for part in headers
        .iter()
        .flat_map(|(name, value)| [name.as_bytes(), value])
    {
        // Lengths are bounded by MAX_HEADERS, far below 4 GiB.
        out.extend_from_slice(&u32::try_from(part.len()).unwrap_or(0).to_be_bytes());
        out.extend_from_slice(part);
    }
    out
}

pub(super) fn headers_out(mut blob: &[u8]) -> Result<Vec<(String, Vec<u8>)>, StoreError> {
    let mut headers = Vec::new();
    while !blob.is_empty() {
        let name = part(&mut blob).and_then(|name| String::from_utf8(name).ok());
        let (Some(name), Some(value)) = (name, part(&mut blob)) else {
            return Err(StoreError::Internal {
                detail: "the headers of a stored message cannot be read".into(),
            });
        };
        headers.push((name, value));
    }
    Ok(headers)
}

fn part(blob: &mut &[u8]) -> Option<Vec<u8>> {
    let (length, rest) = blob.split_first_chunk::<4>()?;
    let (part, rest) = rest.split_at_checked(u32::from_be_bytes(*length) as usize)?;
    *blob = rest;
    Some(part.to_vec())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::{headers_in, headers_out};

    #[test]
    fn headers_come_back_as_they_went_in() {
        let headers = vec![
            ("content-type".to_owned(), b"text/plain".to_vec()),
            (String::new(), Vec::new()),
            ("x".to_owned(), vec![0, 255]),
        ];
        assert_eq!(headers_out(&headers_in(&headers)).unwrap(), headers);
        assert_eq!(headers_out(&[]).unwrap(), vec![]);
    }

    #[test]
    fn a_cut_blob_is_an_error() {
        let blob = headers_in(&[("name".to_owned(), b"value".to_vec())]);
        for end in 1..blob.len() {
            assert!(headers_out(&blob[..end]).is_err(), "cut at {end}");
        }
    }
}
