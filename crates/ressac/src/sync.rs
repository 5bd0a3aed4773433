//! The lock: held for a decision, never across an await.

use std::sync::{MutexGuard, PoisonError, TryLockError};

/// So often is the lock looked at before a thread sleeps: a few microseconds.
const SPINS: u32 = 100;

/// A mutex that outlives a panic of its holder: what it guards is changed in whole steps only.
#[derive(Debug, Default)]
pub(crate) struct Mutex<T>(std::sync::Mutex<T>);

impl<T> Mutex<T> {
    pub(crate) const fn new(value: T) -> Self {
        Mutex(std::sync::Mutex::new(value))
    }

    /// Waits awake first. What is done under this lock takes a hundred nanoseconds, and to be put to
    /// sleep and woken takes ten times as long; once one sleeps, whoever unlocks must wake it, which makes
    /// the next one sleep too. (The standard lock spins only while nobody sleeps.)
    #[inline]
    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        for _ in 0..SPINS {
            match self.0.try_lock() {
                Ok(guard) => return guard,
                Err(TryLockError::Poisoned(poisoned)) => return poisoned.into_inner(),
                Err(TryLockError::WouldBlock) => std::hint::spin_loop(),
            }
        }
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
