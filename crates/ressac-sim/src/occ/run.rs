//! One run of the model.

use crate::core::{EventQueue, Stream};

/// A backoff rule of the article. Base 5 ms, cap 2 s.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OccPolicy {
    /// At once.
    None,
    /// Exactly the exponential.
    Exponential,
    /// Uniform up to the exponential.
    Full,
    /// Half of it, and uniform up to the other half.
    Equal,
    /// Uniform from the base to three times the wait before, capped.
    Decorrelated,
}

impl OccPolicy {
    /// All of them, in the order of the article.
    pub const ALL: [OccPolicy; 5] = [
        OccPolicy::None,
        OccPolicy::Exponential,
        OccPolicy::Full,
        OccPolicy::Equal,
        OccPolicy::Decorrelated,
    ];

    /// The word of reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            OccPolicy::None => "none",
            OccPolicy::Exponential => "exponential",
            OccPolicy::Full => "full",
            OccPolicy::Equal => "equal",
            OccPolicy::Decorrelated => "decorrelated",
        }
    }

    /// The wait before attempt `n`, counted from 1, in milliseconds.
    fn wait(self, n: u32, previous: &mut f64, random: &mut Stream) -> f64 {
        let window = (BASE * f64::from(1u32 << n.min(20))).min(CAP);
        match self {
            OccPolicy::None => 0.0,
            OccPolicy::Exponential => window,
            OccPolicy::Full => random.unit() * window,
            OccPolicy::Equal => window / 2.0 + random.unit() * window / 2.0,
            OccPolicy::Decorrelated => {
                *previous = (BASE + random.unit() * (3.0 * *previous - BASE)).min(CAP);
                *previous
            }
        }
    }
}

const BASE: f64 = 5.0;
const CAP: f64 = 2_000.0;
const HOP: f64 = 10.0;
const HOP_SD: f64 = 2.0;

/// What one run came to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OccRun {
    /// Writes, successful or not.
    pub calls: u64,
    /// When the last client had its success, in milliseconds.
    pub time_ms: f64,
    /// Events processed.
    pub events: u64,
}

#[derive(Clone, Copy)]
enum Step {
    Read,
    Write,
    Written,
}

struct Client {
    attempts: u32,
    previous: f64,
    seen: u32,
    succeeded: bool,
}

/// N clients from the moment they all begin until the last has written.
///
/// ```
/// use ressac_sim::occ::{OccPolicy, run};
///
/// let one = run(OccPolicy::Full, 100, 1);
/// assert_eq!(one, run(OccPolicy::Full, 100, 1));
/// assert!((750..850).contains(&one.calls));
/// ```
#[must_use]
pub fn run(policy: OccPolicy, clients: u32, seed: u64) -> OccRun {
    let mut random = Stream::new(seed, "occ", u64::from(clients));
    let mut queue = EventQueue::new();
    let mut all: Vec<Client> = (0..clients)
        .map(|_| Client {
            attempts: 0,
            previous: BASE,
            seen: 0,
            succeeded: false,
        })
        .collect();
    for index in 0..clients {
        queue.push(nanos(hop(&mut random)), (Step::Read, index));
    }
    let (mut version, mut calls, mut events, mut last) = (0u32, 0, 0, 0);
    while let Some((now, (step, index))) = queue.pop() {
        events += 1;
        let client = &mut all[index as usize];
        match step {
            // The reply's hop and the next request's: nothing can happen in between.
            Step::Read => {
                client.seen = version;
                let delay = hop(&mut random) + hop(&mut random);
                queue.push(now + nanos(delay), (Step::Write, index));
                events += 1;
            }
            Step::Write => {
                calls += 1;
                client.succeeded = client.seen == version;
                version += u32::from(client.succeeded);
                queue.push(now + nanos(hop(&mut random)), (Step::Written, index));
            }
            Step::Written if client.succeeded => last = now,
            Step::Written => {
                client.attempts += 1;
                let wait = policy.wait(client.attempts, &mut client.previous, &mut random);
                let delay = wait + hop(&mut random);
                queue.push(now + nanos(delay), (Step::Read, index));
            }
        }
    }
    OccRun {
        calls,
        time_ms: last as f64 / 1e6,
        events,
    }
}

fn nanos(ms: f64) -> u64 {
    (ms * 1e6) as u64
}

/// One hop's delay, in milliseconds.
fn hop(random: &mut Stream) -> f64 {
    (HOP + HOP_SD * random.normal()).abs()
}
