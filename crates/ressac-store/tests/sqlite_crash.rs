//! kill -9 in the middle of writing: what was answered is there.
#![allow(clippy::unwrap_used)]

mod support;

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;

use ressac_store::{Outbox, SqliteStore, State};
use support::{CHILD, accepted, begin, child, delivered, lease, open};
use uuid::Uuid;

/// Not a test by itself: accepts, begins and settles until it is killed, and says what was answered.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn child_writes() {
    let Some(path) = std::env::var_os(CHILD) else {
        return;
    };
    let store = Arc::new(open(Path::new(&path)).await);
    let lease = Arc::new(lease(&store).await);
    let say = |word: &str, id: Uuid| {
        // Straight to the pipe: what was said must not be lost with the process.
        let line = format!("{word} {id}\n");
        std::io::stdout().write_all(line.as_bytes()).unwrap();
        std::io::stdout().flush().unwrap();
    };
    let mut tasks = Vec::new();
    for task in 0..8u8 {
        let (store, lease) = (Arc::clone(&store), Arc::clone(&lease));
        tasks.push(tokio::spawn(async move {
            for turn in 0.. {
                let id = accepted(&store, vec![task; 500 + turn % 7 * 1_000])
                    .await
                    .id;
                say("accepted", id);
                if turn % 3 > 0 {
                    let begun = store.begin(&lease, vec![begin(&store, id)]).await.unwrap();
                    assert_eq!(begun, [Ok(())]);
                    say("begun", id);
                }
                if turn % 3 > 1 {
                    let settled = store.settle(&lease, vec![delivered(id)]).await.unwrap();
                    assert_eq!(settled, [Ok(())]);
                    say("settled", id);
                }
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
}

fn run_and_kill(path: &Path, after: usize) -> HashMap<Uuid, String> {
    let mut child = child("child_writes", path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut last = HashMap::new();
    let mut seen = 0;
    for line in lines.by_ref() {
        let line = line.unwrap();
        // The harness of the child may write before and between.
        let Some((word, id)) = line.rsplit_once(' ') else {
            continue;
        };
        let Ok(id) = id.parse::<Uuid>() else { continue };
        let word = word.rsplit(' ').next().unwrap();
        last.insert(id, word.to_owned());
        seen += 1;
        if seen == after {
            child.kill().unwrap();
        }
    }
    child.wait().unwrap();
    assert!(
        seen >= after,
        "the child ended by itself after {seen} answers"
    );
    last
}

async fn check(store: &SqliteStore, answered: &HashMap<Uuid, String>) {
    for (id, word) in answered {
        let record = store.get(*id).await.unwrap();
        let record = record.unwrap_or_else(|| panic!("{id} was {word} and is gone"));
        let content = store.load(*id).await.unwrap().unwrap();
        assert_eq!(content.body.len() as u64, record.body_len);
        let state = record.summary.state;
        // It may be one step further: the answer was on its way when the kill came.
        let fits = match word.as_str() {
            "accepted" => true,
            "begun" => state == State::Sending || state == State::Delivered,
            "settled" => state == State::Delivered,
            other => panic!("unknown word {other}"),
        };
        assert!(fits, "{id} was {word} and is {state}");
        assert_eq!(record.attempts.len(), usize::from(state != State::Waiting));
    }
}

/// ST-1, ST-3, ST-5: three kills on one file.
#[tokio::test]
async fn nothing_answered_is_lost_by_kill_9() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let mut answered = HashMap::new();
    for after in [50, 400, 900] {
        let (of_child, path_of_child) = (after, path.clone());
        let killed =
            tokio::task::spawn_blocking(move || run_and_kill(&path_of_child, of_child)).await;
        answered.extend(killed.unwrap());
        let store = open(&path).await;
        check(&store, &answered).await;
        let counts = store.counts("acme").await.unwrap();
        let in_flight = store.in_flight("acme", 0, 1_000).await.unwrap();
        assert_eq!(counts.sending, in_flight.len() as u64);
        assert!(counts.waiting + counts.sending + counts.delivered >= answered.len() as u64);
        store.close().await.unwrap();
    }
}
