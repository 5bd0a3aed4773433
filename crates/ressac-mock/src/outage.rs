//! Outages: which one an arrival falls into, and when the next edge comes.

use crate::clock::nanos;
use crate::scenario::{Outage, OutageAction, OutageClock};

/// Where the clocks of outages stand: the zero of each, if it has begun.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct OutageClocks {
    pub(crate) start: u64,
    pub(crate) first_request: Option<u64>,
    pub(crate) barrier: Option<u64>,
    pub(crate) armed: Option<u64>,
}

impl OutageClocks {
    fn zero(&self, clock: OutageClock) -> Option<u64> {
        match clock {
            OutageClock::Start => Some(self.start),
            OutageClock::FirstRequest => self.first_request,
            OutageClock::Barrier => self.barrier,
            OutageClock::Armed => self.armed,
        }
    }

    /// From (inclusive) and to (exclusive) on the mock's clock.
    fn span(&self, o: &Outage) -> Option<(u64, u64)> {
        let zero = self.zero(o.clock)?;
        Some((
            zero.saturating_add(nanos(o.from)),
            zero.saturating_add(nanos(o.to)),
        ))
    }

    /// The first outage that an arrival at `t` falls into: its index and its end.
    pub(crate) fn hit(
        &self,
        outages: &[Outage],
        t: u64,
        route: Option<&str>,
    ) -> Option<(usize, u64)> {
        outages.iter().enumerate().find_map(|(i, o)| {
            let (from, to) = self.span(o)?;
            let named = match &o.routes {
                None => true,
                Some(names) => names.iter().any(|n| Some(n.as_str()) == route),
            };
            (named && from <= t && t < to).then_some((i, to))
        })
    }

    /// Whether listeners refuse at `t`, and when that may change next.
    pub(crate) fn down(&self, outages: &[Outage], t: u64) -> (bool, Option<u64>) {
        let spans = outages.iter().filter(|o| o.action == OutageAction::Down);
        let mut down = false;
        let mut next: Option<u64> = None;
        for (from, to) in spans.filter_map(|o| self.span(o)) {
            down |= from <= t && t < to;
            for edge in [from, to].into_iter().filter(|e| *e > t) {
                next = Some(next.map_or(edge, |n| n.min(edge)));
            }
        }
        (down, next)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::Scenario;

    #[test]
    fn edges_clocks_and_order() {
        let s = Scenario::parse(
            "version = 1\noutage = [{ from = \"1s\", to = \"2s\", do = \"503\" },\
             { from = \"0s\", to = \"5s\", clock = \"armed\", do = \"429\" }]",
        )
        .unwrap();
        let s_ns = 1_000_000_000;
        let mut c = OutageClocks::default();
        assert_eq!(c.hit(&s.outages, s_ns - 1, None), None);
        assert_eq!(c.hit(&s.outages, s_ns, None), Some((0, 2 * s_ns)));
        assert_eq!(c.hit(&s.outages, 2 * s_ns, None), None);
        c.armed = Some(s_ns);
        assert_eq!(c.hit(&s.outages, s_ns, None), Some((0, 2 * s_ns)));
        assert_eq!(c.hit(&s.outages, 2 * s_ns, None), Some((1, 6 * s_ns)));
        assert_eq!(c.down(&s.outages, s_ns), (false, None));
    }
}
