//! The wish that the process end: SIGINT, SIGTERM, or Ctrl-C where there are no signals.

use std::io;

use crate::exit::Stop;

/// From its creation on, a signal does not end the process but is told here.
#[derive(Debug)]
pub(crate) struct Signals {
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
    #[cfg(windows)]
    interrupt: tokio::signal::windows::CtrlC,
}

impl Signals {
    /// Needs a running Tokio runtime.
    pub(crate) fn listen() -> Result<Signals, Stop> {
        Signals::open().map_err(|error| Stop::fault(format_args!("cannot take signals: {error}")))
    }

    #[cfg(unix)]
    fn open() -> io::Result<Signals> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Signals {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    #[cfg(windows)]
    fn open() -> io::Result<Signals> {
        Ok(Signals {
            interrupt: tokio::signal::windows::ctrl_c()?,
        })
    }

    /// Waits for the next one, and says its name. One that has come already counts.
    pub(crate) async fn next(&mut self) -> &'static str {
        #[cfg(unix)]
        tokio::select! {
            _ = self.interrupt.recv() => "SIGINT",
            _ = self.terminate.recv() => "SIGTERM",
        }
        #[cfg(windows)]
        {
            self.interrupt.recv().await;
            "Ctrl-C"
        }
    }
}
