//! The shell round the engine: it sends, sleeps and reports; the engine decides.

use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use http::Request;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;
use ressac_http::{Client, Reply};
use ressac_policy::{
    Attempt, AttemptKind, Blame, Decision, End, Hint, Operation, Outcome, OutcomeKind, Partner,
    Policy, Processed, Reason, Timestamp, Wait,
};

use super::request::Prepared;
use super::story::Story;
use crate::exit::Stop;
use crate::signal::Signals;

/// The longest sleep at a time; a longer wait is slept in pieces.
const NAP: Duration = Duration::from_secs(24 * 60 * 60);

/// The engine's time: the wall clock at the start, and a clock that does not jump since.
#[derive(Clone, Copy, Debug)]
struct Clock {
    wall: Timestamp,
    begun: Instant,
}

impl Clock {
    fn now(self) -> Timestamp {
        self.wall + self.begun.elapsed()
    }
}

/// A wall-clock moment for the engine.
pub(super) fn wall(time: SystemTime) -> Timestamp {
    let since = time.duration_since(SystemTime::UNIX_EPOCH);
    Timestamp::ZERO + since.unwrap_or_default()
}

/// One attempt, as it is told afterwards.
#[derive(Debug)]
pub(super) struct Record {
    pub(super) number: u32,
    pub(super) kind: AttemptKind,
    /// Since the start of the operation.
    pub(super) began: Duration,
    pub(super) took: Duration,
    /// `None`: cancelled before it came to anything.
    pub(super) outcome: Option<OutcomeKind>,
    pub(super) processed: Processed,
    pub(super) blame: Option<Blame>,
    pub(super) hint: Option<Hint>,
    /// What happened, in words; empty for a whole reply.
    pub(super) note: String,
    /// The waits that followed, and how long each was to be.
    pub(super) waits: Vec<(Wait, Duration)>,
}

/// An operation that has ended.
#[derive(Debug)]
pub(super) struct Finished {
    pub(super) end: End,
    pub(super) history: Vec<Record>,
    /// The last attempt's reply, if it was a whole one.
    pub(super) reply: Option<Reply>,
    pub(super) elapsed: Duration,
    /// The signal that cancelled it.
    pub(super) signal: Option<&'static str>,
}

/// An operation under way.
#[derive(Debug)]
pub(super) struct Drive<'a> {
    client: Client,
    request: &'a Request<Bytes>,
    story: Story<'a>,
    clock: Clock,
    partner: Partner,
    operation: Operation,
    rng: Xoshiro256PlusPlus,
    history: Vec<Record>,
    reply: Option<Reply>,
}

impl<'a> Drive<'a> {
    pub(super) fn new(
        policy: Policy,
        client: Client,
        prepared: &'a Prepared,
        story: Story<'a>,
    ) -> Result<Drive<'a>, Stop> {
        let mut seed = [0; 32];
        getrandom::fill(&mut seed)
            .map_err(|error| Stop::fault(format_args!("no random numbers to be had: {error}")))?;
        let clock = Clock {
            wall: wall(SystemTime::now()),
            begun: Instant::now(),
        };
        let now = clock.now();
        let partner = Partner::new(policy, now);
        let operation = Operation::new(&prepared.spec, partner.policy(), now);
        Ok(Drive {
            client,
            request: &prepared.request,
            story,
            clock,
            partner,
            operation,
            rng: Xoshiro256PlusPlus::from_seed(seed),
            history: Vec::new(),
            reply: None,
        })
    }

    pub(super) async fn run(mut self) -> Result<Finished, Stop> {
        let mut signals = Signals::listen()?;
        let mut signal = None;
        let mut decision = self.poll();
        let end = loop {
            decision = match decision {
                Decision::End(end) => break end,
                Decision::Send(attempt) => match self.attempt(attempt, &mut signals).await {
                    Ok(decision) => decision,
                    Err(name) => {
                        signal = Some(name);
                        self.cancel()
                    }
                },
                Decision::Wait(wait) => match self.wait(wait, &mut signals).await {
                    Ok(()) => self.poll(),
                    Err(name) => {
                        signal = Some(name);
                        self.cancel()
                    }
                },
            };
        };
        let elapsed = self.clock.begun.elapsed();
        self.story.ended(&end, elapsed);
        Ok(Finished {
            end,
            history: self.history,
            reply: self.reply,
            elapsed,
            signal,
        })
    }

    fn poll(&mut self) -> Decision {
        let now = self.clock.now();
        self.operation.poll(now, &mut self.partner, &mut self.rng)
    }

    fn cancel(&mut self) -> Decision {
        let now = self.clock.now();
        let (partner, rng) = (&mut self.partner, &mut self.rng);
        self.operation.cancel(now, Reason::Cancelled, partner, rng)
    }

    /// Makes the attempt, or says which signal cut it off.
    async fn attempt(
        &mut self,
        attempt: Attempt,
        signals: &mut Signals,
    ) -> Result<Decision, &'static str> {
        self.story.sends(&attempt, self.partner.policy());
        let began = self.clock.begun.elapsed();
        self.reply = None;
        let sending = self.client.send(self.request.clone(), attempt.timeout);
        let result = tokio::select! {
            biased;
            result = sending => Ok(result),
            name = signals.next() => Err(name),
        };
        let now = self.clock.now();
        let vendors = self.partner.policy().retry_after.vendors;
        let record = |outcome: Option<&Outcome>, note: String| Record {
            number: attempt.number,
            kind: attempt.kind,
            began,
            took: self.clock.begun.elapsed().saturating_sub(began),
            outcome: outcome.map(|outcome| outcome.kind),
            processed: Processed::Maybe,
            blame: None,
            hint: outcome.and_then(|outcome| outcome.hint),
            note,
            waits: Vec::new(),
        };
        let (outcome, mut record, reply) = match result {
            Ok(Ok(reply)) => {
                let outcome = reply.outcome(now, vendors);
                (outcome, record(Some(&outcome), String::new()), Some(reply))
            }
            Ok(Err(failure)) => {
                let outcome = failure.outcome(now, vendors);
                (outcome, record(Some(&outcome), failure.to_string()), None)
            }
            Err(name) => {
                self.history
                    .push(record(None, format!("cut off by {name}")));
                return Err(name);
            }
        };
        let judged = self.operation.judge(&outcome, self.partner.policy());
        (record.processed, record.blame) = (judged.processed, judged.blame);
        self.reply = reply;
        let (partner, rng) = (&mut self.partner, &mut self.rng);
        let decision = self.operation.on_outcome(now, &outcome, partner, rng);
        self.story.came_to(&record);
        self.history.push(record);
        Ok(decision)
    }

    /// Sleeps, or says which signal woke it.
    async fn wait(&mut self, wait: Wait, signals: &mut Signals) -> Result<(), &'static str> {
        let left = wait.until.since(self.clock.now());
        self.note_wait(wait, left);
        tokio::select! {
            biased;
            name = signals.next() => Err(name),
            () = tokio::time::sleep(left.min(NAP)) => Ok(()),
        }
    }

    /// Told once, however many naps it takes.
    fn note_wait(&mut self, wait: Wait, left: Duration) {
        let waits = self.history.last_mut().map(|record| &mut record.waits);
        let known = waits
            .as_ref()
            .and_then(|waits| waits.last())
            .is_some_and(|(last, _)| last.until == wait.until);
        // A draw can be so short that it is over already: it was decided all the same.
        if known || left.is_zero() && wait.retry.is_none() {
            return;
        }
        self.story.waits(&wait, left);
        if let Some(waits) = waits {
            waits.push((wait, left));
        }
    }
}
