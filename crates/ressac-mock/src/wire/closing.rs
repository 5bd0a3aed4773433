//! Ends that are asked for from outside: `connections/close` of the control API.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use tokio::sync::Notify;

use crate::step::Cut;

/// What the mock can do to an open connection.
#[derive(Debug)]
pub(crate) struct Closing {
    pub(crate) listener: Arc<str>,
    how: AtomicU8,
    asked: Notify,
    busy: AtomicBool,
}

const NOT_ASKED: u8 = 0;
const FIN: u8 = 1;
const RST: u8 = 2;

impl Closing {
    pub(crate) fn new(listener: Arc<str>) -> Arc<Self> {
        Arc::new(Self {
            listener,
            how: AtomicU8::new(NOT_ASKED),
            asked: Notify::new(),
            busy: AtomicBool::new(false),
        })
    }

    /// Asks for the end.
    pub(crate) fn ask(&self, cut: Cut) {
        let how = match cut {
            Cut::Fin => FIN,
            Cut::Rst => RST,
        };
        self.how.store(how, Ordering::Release);
        self.asked.notify_one();
    }

    /// Resolves when the end is asked for.
    pub(crate) async fn asked(&self) {
        self.asked.notified().await;
    }

    /// How, if it was asked for.
    pub(crate) fn how(&self) -> Option<Cut> {
        match self.how.load(Ordering::Acquire) {
            FIN => Some(Cut::Fin),
            RST => Some(Cut::Rst),
            _ => None,
        }
    }

    /// Whether a request is being served.
    pub(crate) fn busy(&self) -> bool {
        self.busy.load(Ordering::Relaxed)
    }

    pub(crate) fn set_busy(&self, busy: bool) {
        self.busy.store(busy, Ordering::Relaxed);
    }
}
