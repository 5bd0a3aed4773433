//! What a call costs with Ressac, beside the stacks people put together by hand.
//!
//! `cargo bench -p ressac --features reqwest --bench http_client`
//!
//! All contenders call the same server, a process of its own, in interleaved rounds (A B C A B C …),
//! so that a machine that is busy with something else is busy for all of them. The figure to go by is
//! the client's processor time for a request: rates on loopback are noise. Each number is the median
//! over the rounds with the smallest and the largest; a ratio is the median of the ratios within a
//! round. `RESSAC_BENCH_ROUNDS` (21) and `RESSAC_BENCH_CALLS` (4000) change the size.
#![allow(missing_docs, clippy::unwrap_used, clippy::print_stdout)]

mod http;

use std::sync::Arc;
use std::time::{Duration, Instant};

use http::{Contender, Server, contenders, median, setting};
use ressac::{Partner, Policy};

/// Calls in flight at a time.
const TASKS: usize = 8;

/// Of one round.
struct Figures {
    cpu_micros: f64,
    per_second: f64,
    p50_micros: f64,
    p99_micros: f64,
}

fn main() {
    http::serve_if_asked();
    let rounds = setting("RESSAC_BENCH_ROUNDS", 21, 1);
    let calls = setting("RESSAC_BENCH_CALLS", 4_000, 64);
    println!(
        "load before: {}",
        std::fs::read_to_string("/proc/loadavg").unwrap_or_default()
    );
    let server = Server::start();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let contenders: Vec<Arc<Contender>> =
        contenders(&server.url).into_iter().map(Arc::new).collect();
    let mut results: Vec<Vec<Figures>> = contenders.iter().map(|_| Vec::new()).collect();
    for round in 0..=rounds {
        for index in 0..contenders.len() {
            // Each goes first as often as the others.
            let index = (index + round) % contenders.len();
            let figures = runtime.block_on(run(&contenders[index], calls));
            // The first round warms up.
            if round > 0 {
                results[index].push(figures);
            }
        }
    }
    table(&contenders, &results, rounds, calls);
    shared(rounds, calls);
}

async fn run(contender: &Arc<Contender>, calls: usize) -> Figures {
    let (began, cpu) = (Instant::now(), cpu());
    let tasks: Vec<_> = (0..TASKS)
        .map(|_| {
            let contender = Arc::clone(contender);
            tokio::spawn(async move {
                let mut took = Vec::with_capacity(calls / TASKS);
                for _ in 0..calls / TASKS {
                    let began = Instant::now();
                    assert_eq!((contender.call)().await, 64);
                    took.push(began.elapsed().as_secs_f64() * 1e6);
                }
                took
            })
        })
        .collect();
    let mut took = Vec::with_capacity(calls);
    for task in tasks {
        took.extend(task.await.unwrap());
    }
    let (elapsed, cpu) = (began.elapsed(), self::cpu() - cpu);
    took.sort_by(f64::total_cmp);
    let count = took.len() as f64;
    Figures {
        cpu_micros: cpu.as_secs_f64() * 1e6 / count,
        per_second: count / elapsed.as_secs_f64(),
        p50_micros: took[took.len() / 2],
        p99_micros: took[took.len() * 99 / 100],
    }
}

/// Of this process, all threads, user and system.
fn cpu() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn table(contenders: &[Arc<Contender>], results: &[Vec<Figures>], rounds: usize, calls: usize) {
    println!("{rounds} rounds of {calls} calls, {TASKS} in flight, one client thread\n");
    println!(
        "| POST of 32 bytes, reply of 64 | client CPU a request, µs: median | smallest to largest | \
         ratio to bare | requests/s | p50 µs | p99 µs |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- |");
    for (contender, rounds) in contenders.iter().zip(results) {
        let column = |read: fn(&Figures) -> f64| rounds.iter().map(read).collect::<Vec<_>>();
        let cpu = column(|figures| figures.cpu_micros);
        let mut ratios: Vec<f64> = cpu
            .iter()
            .zip(&results[0])
            .map(|(own, bare)| own / bare.cpu_micros)
            .collect();
        println!(
            "| {} | {:.2} | {:.2} to {:.2} | {:.3} | {:.0} | {:.0} | {:.0} |",
            contender.name,
            median(&mut cpu.clone()),
            cpu.iter().copied().fold(f64::INFINITY, f64::min),
            cpu.iter().copied().fold(0.0, f64::max),
            median(&mut ratios),
            median(&mut column(|figures| figures.per_second)),
            median(&mut column(|figures| figures.p50_micros)),
            median(&mut column(|figures| figures.p99_micros)),
        );
    }
    println!();
}

/// 64 tasks on two threads: one partner for all, beside one for each.
fn shared(rounds: usize, calls: usize) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_time()
        .build()
        .unwrap();
    let (mut one, mut each, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..=rounds {
        let partner = Partner::new(Policy::sync());
        let shared = runtime.block_on(operations(calls, || partner.clone()));
        let own = runtime.block_on(operations(calls, || Partner::new(Policy::sync())));
        if round > 0 {
            one.push(shared);
            each.push(own);
            ratios.push(shared / own);
        }
    }
    println!(
        "| 64 tasks on 2 threads, an operation that does nothing | ns, median | smallest to largest |"
    );
    println!("| --- | --- | --- |");
    for (name, values) in [("one partner for all", &one), ("one for each", &each)] {
        println!(
            "| {name} | {:.0} | {:.0} to {:.0} |",
            median(&mut values.clone()),
            values.iter().copied().fold(f64::INFINITY, f64::min),
            values.iter().copied().fold(0.0, f64::max),
        );
    }
    println!("\nratio shared to unshared: {:.2}", median(&mut ratios));
}

/// Wall nanoseconds of one thread for an operation.
async fn operations(calls: usize, partner: impl Fn() -> Partner) -> f64 {
    let began = Instant::now();
    let tasks: Vec<_> = (0..64)
        .map(|_| {
            let partner = partner();
            tokio::spawn(async move {
                for call in 0..calls {
                    let op = |_| std::future::ready(Ok::<_, std::io::Error>(()));
                    partner.retry(op).await.unwrap();
                    if call % 64 == 0 {
                        tokio::task::yield_now().await;
                    }
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    began.elapsed().as_nanos() as f64 * 2.0 / (64 * calls) as f64
}
