//! What is told while it runs: a line for each case.

use ressac_prove::{Progress, Report};

use crate::output::Output;

/// Tells.
pub(super) struct Live {
    silent: bool,
    output: Output,
    done: usize,
    total: usize,
}

impl Live {
    pub(super) fn new(total: usize, silent: bool, output: Output) -> Self {
        Self {
            silent,
            output,
            done: 0,
            total,
        }
    }

    pub(super) fn tell(&mut self, progress: &Progress<'_>) {
        match progress {
            Progress::Measured(setup) => self.output.note(&format!(
                "set-up: a request leaves {:.1} ms after the start of its operation, a result \
                 comes {:.1} ms after the reply; {} cases",
                setup.lambda_ms, setup.epsilon_ms, self.total
            )),
            Progress::Ended(verdict) => {
                self.done += 1;
                if !self.silent {
                    // The summary comes in any case: a reader that has gone away is told there.
                    let _ = self
                        .output
                        .text(&Report::line(verdict, self.output.color()));
                }
            }
        }
    }

    /// A run that was cut short says so.
    pub(super) fn end(&self) {
        if self.done < self.total {
            self.output
                .note(&format!("{} of {} cases were run", self.done, self.total));
        }
    }
}
