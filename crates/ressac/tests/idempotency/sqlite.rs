//! Keys in a file: a restart and kill -9.

use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use axum::routing::post;
use ressac::idempotency::{IdempotencyLayer, SqliteOptions, SqliteStore};

use crate::effects::one_of_64;
use crate::support::{Effects, Reply, pay, payments, serve};

/// Names the file of a child process.
const CHILD: &str = "RESSAC_TEST_KEYS";

const LEASE: Duration = Duration::from_secs(5);

async fn open(path: &Path) -> SqliteStore {
    SqliteStore::open(SqliteOptions::new(path)).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ik_3_of_64_requests_at_once_one_has_an_effect() {
    let folder = tempfile::tempdir().unwrap();
    one_of_64(open(&folder.path().join("keys.db")).await).await;
}

/// IK-2: what was answered before a restart is answered again after it.
#[tokio::test]
async fn a_restart_replays() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keys.db");
    let effects = Effects::default();
    let before = serve(payments(&effects, IdempotencyLayer::new(open(&path).await))).await;
    let first = pay("k").to(before).await;
    let after = serve(payments(&effects, IdempotencyLayer::new(open(&path).await))).await;
    let again = pay("k").to(after).await;
    assert!(again.replayed());
    assert_eq!(again.kept(), first.kept());
    assert_eq!(pay("k").body("other").to(after).await.status, 422);
    // The old one still answers, as in a rolling restart.
    assert!(pay("k").to(before).await.replayed());
    assert_eq!(effects.count(), 1);
}

/// Not a test by itself: serves until it is killed.
#[tokio::test]
async fn child_serves() {
    let Some(path) = std::env::var_os(CHILD) else {
        return;
    };
    let say = |line: &str| {
        let mut out = std::io::stdout();
        writeln!(out, "\nchild: {line}").unwrap();
        out.flush().unwrap();
    };
    let effects = Effects::default();
    let keys = IdempotencyLayer::new(open(Path::new(&path)).await).lease(LEASE);
    let hang = post(move || async move {
        say("at work");
        std::future::pending::<()>().await;
    });
    let app = payments(&effects, keys.clone())
        .merge(axum::Router::new().route("/hang", hang).layer(keys));
    say(&serve(app).await.to_string());
    tokio::time::sleep(Duration::from_secs(120)).await;
}

struct Killed {
    child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Killed {
    fn start(path: &Path) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "sqlite::child_serves", "--nocapture"])
            .env(CHILD, path)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Killed { child, lines }
    }

    fn hears(&mut self) -> String {
        let said = self.lines.by_ref().map(Result::unwrap);
        let mut said = said.filter_map(|line| Some(line.strip_prefix("child: ")?.to_owned()));
        said.next().unwrap()
    }
}

impl Drop for Killed {
    fn drop(&mut self) {
        // SIGKILL on Unix: nothing of the process runs any more.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// IK-6: killed with a request in hand, the key answers 409 until the lease ends, then runs again.
/// IK-2: what had been answered is answered the same.
#[tokio::test]
async fn kill_9_keeps_what_was_answered_and_frees_what_was_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keys.db");
    let mut child = Killed::start(&path);
    let server: SocketAddr = child.hears().parse().unwrap();
    let first = pay("done").to(server).await;
    assert_eq!(first.text(), "1: 10 EUR");
    let marked = Instant::now();
    let open_request = pay("open").path("/hang").begin(server).await;
    let (killed, said) = tokio::task::spawn_blocking(move || {
        let said = child.hears();
        (child, said)
    })
    .await
    .unwrap();
    assert_eq!(said, "at work");
    drop(killed);
    drop(open_request);

    let effects = Effects::default();
    let counted = effects.clone();
    let keys = IdempotencyLayer::new(open(&path).await).lease(LEASE);
    let hang = post(move || async move { format!("ran again, {}", counted.add()) });
    let app = payments(&effects, keys.clone())
        .merge(axum::Router::new().route("/hang", hang).layer(keys));
    let server = serve(app).await;
    let again = pay("done").to(server).await;
    assert!(again.replayed());
    assert_eq!(again.kept(), first.kept());

    let mut busy = 0;
    let ran: Reply = loop {
        let reply = pay("open").path("/hang").to(server).await;
        if reply.status != 409 {
            break reply;
        }
        let wait: u64 = reply.header("retry-after").unwrap().parse().unwrap();
        assert!((1..=LEASE.as_secs()).contains(&wait), "{wait}");
        busy += 1;
        assert!(marked.elapsed() < Duration::from_secs(60), "409 for ever");
        tokio::time::sleep(Duration::from_millis(100)).await;
    };
    assert!(busy > 0, "the mark was gone at once");
    assert!(marked.elapsed() >= LEASE, "{:?}", marked.elapsed());
    assert_eq!(
        (ran.status, ran.text(), ran.replayed()),
        (200, "ran again, 1", false)
    );
    assert_eq!(effects.count(), 1);
}
