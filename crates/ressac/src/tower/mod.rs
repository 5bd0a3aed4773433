//! A tower layer that repeats requests by a partner's policy.
