//! Durable delivery: an API that accepts, lanes that deliver.
