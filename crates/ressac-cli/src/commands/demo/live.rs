//! The live view: progress, breaker, waiting, and arrivals per second as a small chart. Only on a
//! terminal, and only on stderr.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;

use super::partner::{FaultyPartner, per_second};
use super::{Args, Progress};
use crate::output::{Output, count};

const REFRESH: Duration = Duration::from_millis(200);
/// Seconds that the chart shows.
const CHART: usize = 48;

/// A view that is running, or none.
pub(super) struct Live {
    running: Option<(oneshot::Sender<()>, JoinHandle<()>)>,
}

impl Live {
    pub(super) fn start(
        args: &Args,
        partner: &FaultyPartner,
        progress: watch::Receiver<Progress>,
        output: Output,
    ) -> Live {
        if args.json {
            return Live { running: None };
        }
        output.note(&format!(
            "{} EDI documents to a partner that is down for {} and answers 503, Retry-After: {}",
            args.messages,
            ressac_config::format_duration(args.outage),
            args.retry_after,
        ));
        if !std::io::stderr().is_terminal() {
            return Live { running: None };
        }
        let (stop, stopped) = oneshot::channel();
        let view = View::new(args, partner, progress);
        Live {
            running: Some((stop, tokio::spawn(view.run(stopped)))),
        }
    }

    pub(super) async fn stop(self) {
        if let Some((stop, task)) = self.running {
            // The view may have ended by itself; either way it is gone when its task is.
            let _ = stop.send(());
            let _ = task.await;
        }
    }
}

struct View {
    partner: FaultyPartner,
    progress: watch::Receiver<Progress>,
    screen: MultiProgress,
    bar: ProgressBar,
    state: ProgressBar,
    chart: ProgressBar,
}

impl View {
    fn new(args: &Args, partner: &FaultyPartner, progress: watch::Receiver<Progress>) -> View {
        let screen = MultiProgress::new();
        let line = |template: &str| {
            ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
        };
        let bar = screen.add(ProgressBar::new(u64::from(args.messages)));
        bar.set_style(line("delivered  {bar:40} {pos}/{len}  {elapsed}").progress_chars("█▉░"));
        let state = screen.add(ProgressBar::new_spinner());
        state.set_style(line("gateway    {msg}"));
        let chart = screen.add(ProgressBar::new_spinner());
        chart.set_style(line("arrivals/s {msg}"));
        View {
            partner: partner.clone(),
            progress,
            screen,
            bar,
            state,
            chart,
        }
    }

    async fn run(self, mut stopped: oneshot::Receiver<()>) {
        loop {
            self.draw();
            tokio::select! {
                _ = &mut stopped => break,
                () = tokio::time::sleep(REFRESH) => {}
            }
        }
        self.draw();
        self.bar.abandon();
        self.state.finish();
        self.chart.finish();
        drop(self.screen);
    }

    fn draw(&self) {
        let progress = self.progress.borrow().clone();
        let seen = self.partner.look();
        self.bar.set_position(seen.delivered);
        let partner = if seen.down { "down" } else { "up" };
        self.state.set_message(format!(
            "partner {partner}, breaker {}, {} waiting, {}",
            progress.breaker,
            progress.waiting,
            count(seen.times.len(), "attempt"),
        ));
        self.chart
            .set_message(sparkline(&per_second(&seen.times, seen.start)));
    }
}

/// The last seconds as bars, with the highest figure behind them.
pub(super) fn sparkline(counts: &[u64]) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let shown = &counts[counts.len().saturating_sub(CHART)..];
    let most = shown.iter().copied().max().unwrap_or(0);
    let mut line: String = shown
        .iter()
        .map(|count| match count {
            0 => ' ',
            count => BARS[((count * 8).div_ceil(most.max(1)) as usize).clamp(1, 8) - 1],
        })
        .collect();
    if most > 0 {
        line.push_str(&format!("  (highest {most})"));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sparkline_scales_to_its_highest() {
        assert_eq!(sparkline(&[0, 1, 8]), " ▁█  (highest 8)");
        assert_eq!(sparkline(&[]), "");
    }
}
