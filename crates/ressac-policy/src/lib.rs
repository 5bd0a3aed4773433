//! The policy engine of Ressac: everything that decides a retry, and no clock, socket or thread.
