//! Wall time that never steps back while the process runs.

use std::time::{SystemTime, UNIX_EPOCH};

use ressac_policy::Timestamp;
use ressac_store::Clock;
use rustix::time::{ClockId, clock_gettime};

/// The wall time at start, plus the progress of a clock that nobody sets and that counts the time
/// the machine sleeps (`CLOCK_BOOTTIME`).
///
/// A wall clock that steps back an hour must not stop work for an hour; a machine that was
/// suspended for eight hours must not wake with its timers eight hours late (CL-1).
#[derive(Clone, Copy, Debug)]
pub struct BootClock {
    /// Wall time minus boot time, at the start.
    offset: u64,
}

impl BootClock {
    /// Reads the wall clock once.
    #[must_use]
    pub fn start() -> Self {
        let wall = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default()
            .as_nanos();
        let wall = u64::try_from(wall).unwrap_or(u64::MAX);
        BootClock {
            offset: wall.saturating_sub(boot_nanos()),
        }
    }

    /// Now.
    #[must_use]
    pub fn timestamp(&self) -> Timestamp {
        Timestamp::from_nanos(self.now())
    }
}

impl Clock for BootClock {
    fn now(&self) -> u64 {
        self.offset.saturating_add(boot_nanos())
    }
}

fn boot_nanos() -> u64 {
    let time = clock_gettime(ClockId::Boottime);
    let secs = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanos = u64::try_from(time.tv_nsec).unwrap_or(0);
    secs.saturating_mul(1_000_000_000).saturating_add(nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cl_1_it_agrees_with_the_wall_at_start_and_never_steps_back() {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let clock = BootClock::start();
        let first = clock.now();
        assert!(first.abs_diff(wall.as_nanos() as u64) < 1_000_000_000);
        assert!(clock.now() >= first);
    }
}
