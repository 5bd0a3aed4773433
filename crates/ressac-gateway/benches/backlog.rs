//! What does a million waiting messages cost? Memory, and the time until the gateway works again
//! after a kill.
//!
//! `cargo bench -p ressac-gateway --bench backlog`; `-- --quick` for a twentieth of it.
#![allow(missing_docs, clippy::unwrap_used, clippy::print_stdout)]

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use ressac_gateway::{BootClock, Gateway, PartnerSettings, Settings};
use ressac_policy::{Operation, OperationSpec, Policy, Timestamp};
use ressac_store::{Begin, Class, NewMessage, Outbox, SqliteOptions, SqliteStore};
use tokio::task::JoinSet;

const CALLERS: usize = 512;
const BODY: Bytes = Bytes::from_static(&[b'x'; 512]);

async fn open(path: &Path, clock: BootClock) -> Arc<SqliteStore> {
    let options = SqliteOptions::new(path).clock(clock).quick_check_below(0);
    Arc::new(SqliteStore::open(options).await.unwrap())
}

fn message(policy: &Policy, now: u64) -> NewMessage {
    let operation = Operation::new(
        &OperationSpec::new("POST"),
        policy,
        Timestamp::from_nanos(now),
    );
    let mut message = NewMessage::new("down", "POST", "", BODY, now);
    message.deadline = Some(operation.deadline().as_nanos());
    message.operation = serde_json::to_vec(&operation).unwrap();
    message
}

/// Messages accepted, and some of them begun, as a kill leaves them.
async fn fill(path: &Path, count: usize, open_attempts: usize) {
    let (clock, policy) = (BootClock::start(), Policy::durable());
    let store = open(path, clock).await;
    let mut tasks = JoinSet::new();
    for caller in 0..CALLERS {
        let (store, policy) = (Arc::clone(&store), policy.clone());
        tasks.spawn(async move {
            for _ in (caller..count).step_by(CALLERS) {
                store.accept(message(&policy, store.now())).await.unwrap();
            }
        });
    }
    while tasks.join_next().await.is_some() {}
    let leases = store
        .acquire("bench", &["down".to_owned()], Duration::from_secs(60))
        .await
        .unwrap();
    let due = store
        .due("down", Class::First, store.now(), open_attempts, None)
        .await
        .unwrap();
    let begun = due
        .into_iter()
        .map(|message| Begin {
            id: message.id,
            attempt: 1,
            started_at: store.now(),
            operation: message.operation,
        })
        .collect();
    store.begin(&leases[0], begun).await.unwrap();
    store.close().await.unwrap();
}

fn resident_mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS"))
        .unwrap();
    let kib: f64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kib / 1024.0
}

/// Start to ready, and what is resident after it has worked for a while.
async fn start(path: &Path) -> (Duration, f64) {
    // Nothing listens on this port: every attempt is refused, and the breaker opens.
    let mut partner = PartnerSettings::new("down", "http://127.0.0.1:9/".parse().unwrap());
    partner.policy = Policy::durable();
    let settings = Settings {
        listen: ([127, 0, 0, 1], 0).into(),
        partners: vec![partner],
        ..Settings::new()
    };
    let began = Instant::now();
    let clock = BootClock::start();
    let gateway = Gateway::start(settings, open(path, clock).await, clock)
        .await
        .unwrap();
    let ready = began.elapsed();
    tokio::time::sleep(Duration::from_secs(10)).await;
    let resident = resident_mib();
    gateway.stop().await;
    (ready, resident)
}

/// A child for each start, so that one's memory is not another's.
fn child(path: &Path) -> String {
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .arg("--start")
        .arg(path)
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[tokio::main]
async fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let Some(at) = arguments.iter().position(|argument| argument == "--start") {
        let (ready, resident) = start(Path::new(&arguments[at + 1])).await;
        println!(
            "ready after {:.0} ms, {resident:.0} MiB resident",
            ready.as_secs_f64() * 1e3
        );
        return;
    }
    let quick = arguments.iter().any(|argument| argument == "--quick");
    let count = if quick { 50_000 } else { 1_000_000 };
    let folder = tempfile::tempdir().unwrap();
    for (name, count, open_attempts) in [("empty", 0, 0), ("full", count, 256)] {
        let path = folder.path().join(format!("{name}.db"));
        let began = Instant::now();
        fill(&path, count, open_attempts).await;
        let seconds = began.elapsed().as_secs_f64();
        let bytes = std::fs::metadata(&path).unwrap().len();
        println!(
            "{count} waiting ({seconds:.0} s to accept, {:.0} MiB on disk), {open_attempts} attempts open: {}",
            bytes as f64 / f64::from(1 << 20),
            child(&path),
        );
    }
}
