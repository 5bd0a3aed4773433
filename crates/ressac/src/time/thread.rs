//! Sleep for futures without a runtime: one thread, made by the first who sleeps.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Condvar, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

type Sleepers = BTreeMap<(Instant, u64), Waker>;

/// Who sleeps, by the moment they are to be woken.
#[derive(Debug, Default)]
struct Timer {
    sleepers: std::sync::Mutex<(Sleepers, u64)>,
    changed: Condvar,
}

impl Timer {
    /// `None` where no thread is to be had.
    fn get() -> Option<&'static Timer> {
        static TIMER: OnceLock<Option<&'static Timer>> = OnceLock::new();
        *TIMER.get_or_init(|| {
            let timer: &'static Timer = Box::leak(Box::default());
            let thread = std::thread::Builder::new().name("ressac-timer".to_owned());
            thread.spawn(|| timer.run()).ok().map(|_| timer)
        })
    }

    fn lock(&self) -> MutexGuard<'_, (Sleepers, u64)> {
        self.sleepers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self) {
        let mut guard = self.lock();
        loop {
            let Some((&key, _)) = guard.0.first_key_value() else {
                guard = self
                    .changed
                    .wait(guard)
                    .unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let left = key.0.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let waker = guard.0.remove(&key);
                drop(guard);
                // Outside the lock: a waker may run what it wakes.
                if let Some(waker) = waker {
                    waker.wake();
                }
                guard = self.lock();
                continue;
            }
            let waited = self.changed.wait_timeout(guard, left);
            guard = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// A sleep by the timer thread.
#[derive(Debug)]
pub(super) struct ThreadSleep {
    until: Instant,
    number: Option<u64>,
}

impl ThreadSleep {
    pub(super) fn new(duration: Duration) -> Self {
        ThreadSleep {
            until: Instant::now() + duration,
            number: None,
        }
    }
}

impl Future for ThreadSleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Poll::Ready(());
        }
        let Some(timer) = Timer::get() else {
            // No thread to wake us: late for others is better than never for us.
            std::thread::sleep(left);
            return Poll::Ready(());
        };
        let mut guard = timer.lock();
        let number = *self.number.get_or_insert_with(|| {
            guard.1 += 1;
            guard.1
        });
        guard.0.insert((self.until, number), cx.waker().clone());
        drop(guard);
        timer.changed.notify_one();
        Poll::Pending
    }
}

impl Drop for ThreadSleep {
    fn drop(&mut self) {
        if let (Some(number), Some(timer)) = (self.number, Timer::get()) {
            timer.lock().0.remove(&(self.until, number));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::task::Wake;

    use super::*;

    #[derive(Default)]
    struct Count(AtomicU32);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn wakes_not_before_its_time_and_not_once_dropped() {
        let woken = Arc::new(Count::default());
        let waker = Waker::from(Arc::clone(&woken));
        let mut cx = Context::from_waker(&waker);
        let begun = Instant::now();
        let mut dropped = Box::pin(ThreadSleep::new(Duration::from_millis(10)));
        assert_eq!(dropped.as_mut().poll(&mut cx), Poll::Pending);
        drop(dropped);
        let mut sleep = Box::pin(ThreadSleep::new(Duration::from_millis(30)));
        while sleep.as_mut().poll(&mut cx).is_pending() {
            let before = woken.0.load(Ordering::SeqCst);
            while woken.0.load(Ordering::SeqCst) == before {
                std::thread::yield_now();
            }
        }
        assert!(begun.elapsed() >= Duration::from_millis(30));
        assert_eq!(woken.0.load(Ordering::SeqCst), 1);
    }
}
