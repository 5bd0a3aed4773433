//! Accepts per second through the store, beside what SQLite alone does with the same rows.
//!
//! `cargo bench -p ressac-store` runs both by turns (A B A B …) on the same disk and prints medians with
//! their spread, and the processor time per message. `cargo bench -p ressac-store -- due` fills a store
//! with a million waiting messages and times the reads of the delivery loop.
//!
//! A: `callers` tasks, each waits for the answer to its message before it sends the next.
//! B: one thread, no channel, groups of `callers` rows per transaction: the limit of group commit.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ressac_store::{Class, NewMessage, Outbox, SqliteOptions, SqliteStore};
use rusqlite::{Connection, params};

const ROUNDS: usize = 7;
const BODY: usize = 1_024;

/// What one run came to.
struct Run {
    per_second: f64,
    cpu_us: f64,
    batch: f64,
}

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    if std::env::args().any(|arg| arg == "due") {
        runtime.block_on(due(1_000_000));
        return;
    }
    println!("callers | each: median rows/s (least-most), processor time per row, rows per commit");
    println!("        | {:<50} | B: SQLite alone", "A: the store");
    for (callers, rows) in [(1, 3_000), (16, 20_000), (256, 40_000)] {
        let (mut a, mut b) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let folder = tempfile::tempdir_in(".").unwrap();
            a.push(runtime.block_on(through_the_store(folder.path(), callers, rows)));
            let folder = tempfile::tempdir_in(".").unwrap();
            b.push(raw(folder.path(), callers, rows));
        }
        let (a, b) = (summary(&a), summary(&b));
        println!("{callers:>7} | {a} | {b}");
    }
}

fn summary(runs: &[Run]) -> String {
    let sorted = |value: fn(&Run) -> f64| {
        let mut values: Vec<f64> = runs.iter().map(value).collect();
        values.sort_by(f64::total_cmp);
        values
    };
    let rate = sorted(|run| run.per_second);
    let cpu = sorted(|run| run.cpu_us)[runs.len() / 2];
    let batch = sorted(|run| run.batch)[runs.len() / 2];
    let (least, median, most) = (rate[0], rate[rate.len() / 2], rate[rate.len() - 1]);
    format!("{median:>10.0} ({least:>8.0}-{most:>8.0}) {cpu:>7.1} us {batch:>8.1}")
}

/// Processor time of this process so far, all threads, to 10 ms.
fn cpu() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default();
    let ticks: u64 = fields
        .split_whitespace()
        .skip(11)
        .take(2)
        .filter_map(|t| t.parse::<u64>().ok())
        .sum();
    Duration::from_millis(ticks * 10)
}

fn message(partner: usize, now: u64) -> NewMessage {
    let partner = format!("partner-{}", partner % 10);
    NewMessage {
        operation: vec![b'o'; 200],
        headers: vec![("content-type".into(), b"application/json".to_vec())],
        ..NewMessage::new(partner, "POST", "/v1/payments", vec![b'x'; BODY], now)
    }
}

async fn through_the_store(folder: &Path, callers: usize, rows: usize) -> Run {
    let store = SqliteStore::open(SqliteOptions::new(folder.join("store.db")))
        .await
        .unwrap();
    let store = Arc::new(store);
    let (start, cpu_before) = (Instant::now(), cpu());
    let tasks: Vec<_> = (0..callers)
        .map(|caller| {
            let store = Arc::clone(&store);
            tokio::spawn(async move {
                for row in 0..rows / callers {
                    store
                        .accept(message(caller + row, store.now()))
                        .await
                        .unwrap();
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let (took, cpu_after) = (start.elapsed(), cpu());
    let (stats, rows) = (store.stats(), (rows / callers * callers) as f64);
    store.close().await.unwrap();
    Run {
        per_second: rows / took.as_secs_f64(),
        cpu_us: (cpu_after - cpu_before).as_micros() as f64 / rows,
        batch: rows / stats.commits as f64,
    }
}

/// An empty store's file, opened the way the writer opens it.
fn raw_connection(folder: &Path) -> Connection {
    let path = folder.join("store.db");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    drop(
        runtime
            .block_on(SqliteStore::open(SqliteOptions::new(&path)))
            .unwrap(),
    );
    let conn = Connection::open(path).unwrap();
    conn.execute_batch(
        "PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA wal_autocheckpoint = 0",
    )
    .unwrap();
    for partner in 0..10 {
        let name = format!("partner-{partner}");
        conn.execute("INSERT INTO partner (name) VALUES (?1)", [name])
            .unwrap();
    }
    conn.set_prepared_statement_cache_capacity(32);
    conn
}

fn raw(folder: &Path, group: usize, rows: usize) -> Run {
    let conn = raw_connection(folder);
    let (start, cpu_before) = (Instant::now(), cpu());
    let mut seq = 0;
    for _ in 0..rows / group {
        conn.prepare_cached("BEGIN IMMEDIATE")
            .unwrap()
            .execute([])
            .unwrap();
        for _ in 0..group {
            seq += 1;
            insert(&conn, seq);
        }
        for partner in 1..=group.min(10) {
            let many = group / group.min(10);
            conn.prepare_cached("UPDATE partner SET waiting = waiting + ?2 WHERE no = ?1")
                .unwrap()
                .execute(params![partner as i64, many as i64])
                .unwrap();
        }
        conn.prepare_cached("COMMIT").unwrap().execute([]).unwrap();
        let left: i64 = conn
            .prepare_cached("PRAGMA wal_checkpoint(NOOP)")
            .unwrap()
            .query_row([], |r| Ok(r.get::<_, i64>(1)? - r.get::<_, i64>(2)?))
            .unwrap();
        if left >= 1_000 {
            conn.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))
                .unwrap();
        }
    }
    let (took, rows) = (start.elapsed(), (rows / group * group) as f64);
    Run {
        per_second: rows / took.as_secs_f64(),
        cpu_us: (cpu() - cpu_before).as_micros() as f64 / rows,
        batch: group as f64,
    }
}

fn insert(conn: &Connection, seq: i64) {
    let new = message(seq as usize, 1_800_000_000_000_000_000);
    let partner = seq % 10 + 1;
    conn.prepare_cached(
        "INSERT INTO idempotency (partner, key, seq, fingerprint) VALUES (?1, ?2, ?3, ?4)",
    )
    .unwrap()
    .execute(params![partner, new.key, seq, new.fingerprint])
    .unwrap();
    conn.prepare_cached(
        "INSERT INTO message (seq, id, partner, state, class, line, due, deadline, accepted_at,
                              series, attempt, operation)
         VALUES (?1, ?2, ?3, 0, 0, 0, ?4, 9223372036854775807, ?4, 1, 0, ?5)",
    )
    .unwrap()
    .execute(params![
        seq,
        new.id.as_bytes(),
        partner,
        new.accepted_at as i64,
        new.operation
    ])
    .unwrap();
    conn.prepare_cached(
        "INSERT INTO content (seq, key, key_given, method, path, body_len, headers, body)
         VALUES (?1, ?2, 0, ?3, ?4, ?5, x'', ?6)",
    )
    .unwrap()
    .execute(params![
        seq,
        new.key,
        new.method,
        new.path,
        BODY as i64,
        new.body.as_ref()
    ])
    .unwrap();
}

/// Times the reads of the delivery loop over `rows` waiting messages.
async fn due(rows: i64) {
    let folder = tempfile::tempdir_in(".").unwrap();
    let path = folder.path().to_owned();
    let filling = tokio::task::spawn_blocking(move || {
        let conn = raw_connection(&path);
        for group in 0..rows / 10_000 {
            conn.execute_batch("BEGIN IMMEDIATE").unwrap();
            for row in 0..10_000 {
                insert(&conn, group * 10_000 + row + 1);
            }
            conn.execute_batch("COMMIT").unwrap();
        }
        conn.execute("UPDATE partner SET waiting = ?1 / 10", [rows])
            .unwrap();
        conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
            .unwrap();
    });
    filling.await.unwrap();
    let store = SqliteStore::open(SqliteOptions::new(folder.path().join("store.db")));
    let store = store.await.unwrap();
    println!("{rows} messages wait, a tenth of them for this partner; medians of 200 reads");
    let mut took: [Vec<Duration>; 3] = Default::default();
    for _ in 0..200 {
        let start = Instant::now();
        let page = store
            .due("partner-3", Class::First, u64::MAX / 4, 64, None)
            .await
            .unwrap();
        took[0].push(start.elapsed());
        assert_eq!(page.len(), 64);
        let start = Instant::now();
        store.next_due("partner-3").await.unwrap();
        took[1].push(start.elapsed());
        let start = Instant::now();
        store.counts("partner-3").await.unwrap();
        took[2].push(start.elapsed());
    }
    for (name, mut took) in ["due, 64 messages", "next_due", "counts"]
        .into_iter()
        .zip(took)
    {
        took.sort_unstable();
        println!(
            "{name:>16}: {:>6} us (p99 {} us)",
            took[100].as_micros(),
            took[198].as_micros()
        );
    }
}
