//! The faulty partner: byte for byte as scripted, counted at arrival, with a clock.
