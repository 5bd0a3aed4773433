//! A progress bar with the time left; only on a terminal, and only on stderr.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressStyle};

/// A bar, or nothing.
pub(super) struct Progress(Option<ProgressBar>);

impl Progress {
    pub(super) fn start(what: &str) -> Progress {
        if !std::io::stderr().is_terminal() {
            return Progress(None);
        }
        let bar = ProgressBar::new(0);
        let template = "{msg}  {bar:40} {pos}/{len}  {elapsed}, {eta} left";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("█▉░"));
        }
        bar.set_message(what.to_owned());
        Progress(Some(bar))
    }

    pub(super) fn set(&self, done: u64, total: u64) {
        if let Some(bar) = &self.0 {
            bar.set_length(total);
            bar.set_position(done);
        }
    }

    pub(super) fn end(&self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}
