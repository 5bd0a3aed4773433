//! The cost of a decision, beside the parts people put together by hand today.
//!
//! `cargo bench -p ressac-policy --bench decision`
//!
//! All contenders run in the same process in interleaved rounds (A B C A B C …), so that a machine
//! that is busy with something else is busy for all of them. Each number is the median over the
//! rounds, with the smallest and the largest; a ratio is the median of the ratios within a round.
//! Time is passed in to Ressac and read by the others: that is how each is used.
#![allow(missing_docs, clippy::unwrap_used, clippy::print_stdout)]
// A shell has what the engine must not: a clock, threads and a lock.
#![allow(clippy::disallowed_types, clippy::disallowed_methods)]

use std::hint::black_box;
use std::sync::{Arc, Barrier, Mutex};
use std::time::{Duration, Instant};

use backon::{BackoffBuilder, ExponentialBuilder};
use failsafe::CircuitBreaker;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;
use recloser::Recloser;
use ressac_policy::{
    Backoff, BreakerConfig, BudgetConfig, Decision, Hint, HintSource, Operation, OperationSpec,
    Outcome, Partner, Policy, Ratio, Timestamp,
};
use tower::retry::budget::{Budget as _, TpsBudget};

/// On one thread, rounds so short that most fit into a time slice of a busy machine: a longer one
/// would be interrupted more often, and the dearest contender look dearer than it is.
const ALONE: Size = Size {
    rounds: 301,
    calls: 10_000,
};

/// On two, so long that the threads run beside each other and not one after the other.
const SHARED: Size = Size {
    rounds: 61,
    calls: 50_000,
};

#[derive(Clone, Copy)]
struct Size {
    rounds: usize,
    calls: u32,
}

fn main() {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let alone: Vec<Contender> = vec![
        ("ressac: happy path", happy),
        ("ressac: the same with one failure", failing),
        ("tower budget + recloser", |calls| {
            timed(1, calls, tower_recloser(calls))
        }),
        ("tower budget + failsafe", |calls| {
            timed(1, calls, tower_failsafe(calls))
        }),
        ("tower budget alone", |calls| {
            timed(1, calls, tower_alone(calls))
        }),
        ("backon: one delay", |calls| {
            timed(1, calls, backon_delay(calls))
        }),
    ];
    let shared: Vec<Contender> = vec![
        ("ressac behind a Mutex: happy path", |calls| {
            timed(2, calls, locked(calls))
        }),
        ("tower budget + recloser", |calls| {
            timed(2, calls, tower_recloser(calls))
        }),
        ("tower budget + failsafe", |calls| {
            timed(2, calls, tower_failsafe(calls))
        }),
    ];
    println!("load before: {load}");
    let one = run(ALONE, &alone);
    table("one thread", &alone, &one);
    let failed = one[1]
        .iter()
        .zip(&one[0])
        .map(|(with, without)| with - without);
    let share = failed
        .clone()
        .zip(&one[0])
        .map(|(failed, happy)| failed / happy);
    println!(
        "a failed attempt's decision alone: {:.1} ns, {:.2} x the happy path\n",
        median(&mut failed.collect::<Vec<_>>()),
        median(&mut share.collect::<Vec<_>>()),
    );
    table("two threads, one partner", &shared, &run(SHARED, &shared));
}

type Contender = (&'static str, fn(u32) -> f64);

/// Nanoseconds a call, for each contender in each round.
fn run(size: Size, contenders: &[Contender]) -> Vec<Vec<f64>> {
    let mut results = vec![Vec::with_capacity(size.rounds); contenders.len()];
    for round in 0..=size.rounds {
        for (index, (_, contender)) in contenders.iter().enumerate() {
            let nanos = contender(size.calls);
            // The first round warms up.
            if round > 0 {
                results[index].push(nanos);
            }
        }
    }
    results
}

fn table(title: &str, contenders: &[Contender], results: &[Vec<f64>]) {
    println!("| {title} | ns a call, median | smallest to largest | ratio to the first |");
    println!("| --- | --- | --- | --- |");
    for ((name, _), rounds) in contenders.iter().zip(results) {
        let ratios = rounds
            .iter()
            .zip(&results[0])
            .map(|(own, first)| own / first);
        println!(
            "| {name} | {:.1} | {:.1} to {:.1} | {:.2} |",
            median(&mut rounds.clone()),
            rounds.iter().copied().fold(f64::INFINITY, f64::min),
            rounds.iter().copied().fold(0.0, f64::max),
            median(&mut ratios.collect::<Vec<_>>()),
        );
    }
    println!();
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// `run` makes so many calls on so many threads at once; wall nanoseconds for one call of one thread.
fn timed(threads: usize, calls: u32, run: impl Fn(u64) + Send + Sync) -> f64 {
    let start = Barrier::new(threads);
    let longest = std::thread::scope(|scope| {
        let handles: Vec<_> = (0..threads)
            .map(|thread| {
                let (run, start) = (&run, &start);
                scope.spawn(move || {
                    start.wait();
                    let began = Instant::now();
                    run(thread as u64);
                    began.elapsed()
                })
            })
            .collect();
        handles
            .into_iter()
            .map(|h| h.join().unwrap())
            .max()
            .unwrap()
    });
    per_call(longest, calls)
}

fn per_call(time: Duration, calls: u32) -> f64 {
    time.as_nanos() as f64 / f64::from(calls)
}

/// Budget deposit, breaker admission, success recorded, limits and window looked at: by an owner
/// of the partner, as a lane of the gateway or a simulated client is one.
fn happy(calls: u32) -> f64 {
    let (mut partner, policy) = partner();
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
    let began = Instant::now();
    for call in 0..calls {
        let now = Timestamp::from_nanos(1_000_000_000_000 + u64::from(call) * 1_000);
        let mut operation = Operation::new(&OperationSpec::new("GET"), &policy, now);
        let decision = operation.poll(now, &mut partner, &mut rng);
        assert!(matches!(decision, Decision::Send(_)));
        let outcome = Outcome::status(black_box(200));
        black_box(&operation.on_outcome(now, &outcome, &mut partner, &mut rng));
    }
    per_call(began.elapsed(), calls)
}

/// The same, and its first attempt meets a 503 with a hint: judged, waited for, sent again.
fn failing(calls: u32) -> f64 {
    let (mut partner, policy) = partner();
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
    let hint = Some(Hint {
        wait: Duration::from_micros(1),
        source: HintSource::RetryAfter,
    });
    let mut now = Timestamp::from_secs(1_000);
    let began = Instant::now();
    for _ in 0..calls {
        let mut operation = Operation::new(&OperationSpec::new("GET"), &policy, now);
        let decision = operation.poll(now, &mut partner, &mut rng);
        assert!(matches!(decision, Decision::Send(_)));
        let outcome = Outcome::status(black_box(503)).with_hint(hint);
        let waits = operation.on_outcome(now, &outcome, &mut partner, &mut rng);
        let Decision::Wait(wait) = waits else {
            panic!("{waits:?}");
        };
        now = wait.until;
        let decision = operation.poll(now, &mut partner, &mut rng);
        assert!(matches!(decision, Decision::Send(_)));
        let outcome = Outcome::status(black_box(200));
        black_box(&operation.on_outcome(now, &outcome, &mut partner, &mut rng));
    }
    per_call(began.elapsed(), calls)
}

/// The happy path of many threads, which reach the partner through a lock, twice a call.
fn locked(calls: u32) -> impl Fn(u64) + Send + Sync {
    let (partner, policy) = partner();
    let partner = Mutex::new(partner);
    move |thread| {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(thread);
        for call in 0..calls {
            let now = Timestamp::from_nanos(1_000_000_000_000 + u64::from(call) * 1_000);
            let mut operation = Operation::new(&OperationSpec::new("GET"), &policy, now);
            let decision = operation.poll(now, &mut partner.lock().unwrap(), &mut rng);
            assert!(matches!(decision, Decision::Send(_)));
            let outcome = Outcome::status(black_box(200));
            black_box(&operation.on_outcome(now, &outcome, &mut partner.lock().unwrap(), &mut rng));
        }
    }
}

/// The built-in policy, with tokens for a retry of every call and a breaker that half of them
/// failing does not open.
fn partner() -> (Partner, Arc<Policy>) {
    let policy = Arc::new(Policy {
        backoff: Backoff {
            base: Duration::from_micros(1),
            ..Backoff::default()
        },
        budget: Some(BudgetConfig {
            ratio: Ratio::ONE,
            ..BudgetConfig::default()
        }),
        breaker: Some(BreakerConfig {
            failure_rate: Ratio::from_f64(0.9),
            ..BreakerConfig::default()
        }),
        ..Policy::sync()
    });
    let partner = Partner::new(Arc::clone(&policy), Timestamp::from_secs(1_000));
    (partner, policy)
}

fn tower_budget() -> TpsBudget {
    TpsBudget::new(Duration::from_secs(10), 10, 0.1)
}

fn tower_recloser(calls: u32) -> impl Fn(u64) + Send + Sync {
    let (budget, breaker) = (tower_budget(), Recloser::custom().build());
    move |_| {
        for call in 0..calls {
            budget.deposit();
            black_box(breaker.call(|| Ok::<_, ()>(black_box(call)))).unwrap();
        }
    }
}

fn tower_failsafe(calls: u32) -> impl Fn(u64) + Send + Sync {
    let (budget, breaker) = (tower_budget(), failsafe::Config::new().build());
    move |_| {
        for call in 0..calls {
            budget.deposit();
            black_box(breaker.call(|| Ok::<_, ()>(black_box(call)))).unwrap();
        }
    }
}

fn tower_alone(calls: u32) -> impl Fn(u64) + Send + Sync {
    let budget = tower_budget();
    move |_| {
        for _ in 0..calls {
            black_box(&budget).deposit();
        }
    }
}

fn backon_delay(calls: u32) -> impl Fn(u64) + Send + Sync {
    move |_| {
        for _ in 0..calls {
            black_box(ExponentialBuilder::default().with_jitter().build().next());
        }
    }
}
