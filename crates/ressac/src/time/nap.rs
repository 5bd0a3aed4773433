//! A sleep that needs no box where tokio does the sleeping.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use pin_project_lite::pin_project;

use super::Sleep;
use super::thread::ThreadSleep;

#[cfg(feature = "tokio")]
pin_project! {
    #[project = Parts]
    pub(crate) enum Nap {
        Tokio { #[pin] sleep: tokio::time::Sleep },
        Boxed { sleep: Sleep },
    }
}

#[cfg(not(feature = "tokio"))]
pin_project! {
    #[project = Parts]
    pub(crate) enum Nap {
        Boxed { sleep: Sleep },
    }
}

impl Nap {
    pub(crate) fn boxed(sleep: Sleep) -> Self {
        Nap::Boxed { sleep }
    }

    /// By tokio inside a tokio runtime, by the timer thread elsewhere.
    pub(crate) fn ambient(duration: Duration) -> Self {
        #[cfg(feature = "tokio")]
        if tokio::runtime::Handle::try_current().is_ok() {
            return Nap::Tokio {
                sleep: tokio::time::sleep(duration),
            };
        }
        Nap::boxed(Box::pin(ThreadSleep::new(duration)))
    }
}

impl Future for Nap {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        match self.project() {
            #[cfg(feature = "tokio")]
            Parts::Tokio { sleep } => sleep.poll(cx),
            Parts::Boxed { sleep } => sleep.as_mut().poll(cx),
        }
    }
}

impl std::fmt::Debug for Nap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Nap")
    }
}
