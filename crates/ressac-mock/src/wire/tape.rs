//! The first bytes of a connection, as they were: for people who read a failure.

use std::sync::{Mutex, PoisonError};

use serde::ser::{Serialize, SerializeStruct, Serializer};

/// The beginning of what was received and of what was sent. Below TLS there is nothing to read, so
/// it is taken above it; on HTTP/2 it is frames.
#[derive(Debug)]
pub struct Tape {
    /// The most bytes of each direction.
    most: usize,
    received: Mutex<Vec<u8>>,
    sent: Mutex<Vec<u8>>,
}

impl Tape {
    pub(crate) fn new(most: usize) -> Self {
        Self {
            most,
            received: Mutex::default(),
            sent: Mutex::default(),
        }
    }

    pub(crate) fn receive(&self, bytes: &[u8]) {
        Self::keep(&self.received, self.most, bytes);
    }

    pub(crate) fn send(&self, bytes: &[u8]) {
        Self::keep(&self.sent, self.most, bytes);
    }

    fn keep(list: &Mutex<Vec<u8>>, most: usize, bytes: &[u8]) {
        // A panic elsewhere leaves bytes that are still worth reading.
        let mut list = list.lock().unwrap_or_else(PoisonError::into_inner);
        let room = most.saturating_sub(list.len()).min(bytes.len());
        list.extend_from_slice(&bytes[..room]);
    }

    /// The first bytes that the peer sent.
    #[must_use]
    pub fn received(&self) -> Vec<u8> {
        let list = self.received.lock();
        list.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The first bytes that the peer was sent.
    #[must_use]
    pub fn sent(&self) -> Vec<u8> {
        let list = self.sent.lock();
        list.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Serialize for Tape {
    /// Text with `\r`, `\n`, `\xff` for what is no visible ASCII.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_struct("Tape", 2)?;
        out.serialize_field("received", &self.received().escape_ascii().to_string())?;
        out.serialize_field("sent", &self.sent().escape_ascii().to_string())?;
        out.end()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_beginning_is_kept_and_no_more() {
        let tape = Tape::new(8);
        tape.receive(b"GET /");
        tape.receive(b" HTTP/1.1\r\n");
        tape.send(b"\x00\xffok");
        assert_eq!(tape.received(), b"GET / HT");
        let json = serde_json::to_string(&tape).unwrap();
        assert_eq!(json, r#"{"received":"GET / HT","sent":"\\x00\\xffok"}"#);
    }
}
