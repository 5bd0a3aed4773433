//! The HTTP client that knows what was sent: not sent, not processed, maybe processed.
