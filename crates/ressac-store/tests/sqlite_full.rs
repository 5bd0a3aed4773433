//! A full store and a full disk: nothing accepted is lost, and work goes on when there is room.
#![allow(clippy::unwrap_used)]

mod support;

use std::path::Path;
use std::sync::Arc;

use ressac_store::{Outbox, Refusal, SqliteOptions, SqliteStore, StoreError};
use support::{accepted, begin, delivered, lease, message};
use uuid::Uuid;

async fn open_small(path: &Path) -> SqliteStore {
    SqliteStore::open(SqliteOptions::new(path).max_bytes(Some(2 << 20)))
        .await
        .unwrap()
}

async fn fill(store: &SqliteStore) -> Vec<Uuid> {
    let mut ids = Vec::new();
    loop {
        match store.accept(message(store, vec![7; 10_000])).await {
            Ok(_) => {
                let newest = store
                    .list(&ressac_store::Filter::default(), None, 1)
                    .await
                    .unwrap();
                ids.push(newest.items[0].id);
            }
            Err(StoreError::Full { .. }) => return ids,
            Err(other) => panic!("{other}"),
        }
        assert!(ids.len() < 1_000, "the limit does not hold");
    }
}

/// ST-2: at the limit new messages are refused; what was accepted is intact, can be begun and settled,
/// and pruning makes room again.
#[tokio::test]
async fn a_full_store_settles_what_it_has() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let store = open_small(&path).await;
    let ids = fill(&store).await;
    assert!(ids.len() > 100, "only {} messages fit", ids.len());
    assert!(std::fs::metadata(&path).unwrap().len() <= 2 << 20);

    let lease = lease(&store).await;
    let begins = ids.iter().map(|id| begin(&store, *id)).collect();
    let begun = store.begin(&lease, begins).await.unwrap();
    assert!(begun.iter().all(Result::is_ok), "{begun:?}");
    let settles = ids.iter().map(|id| delivered(*id)).collect();
    let settled = store.settle(&lease, settles).await.unwrap();
    assert!(settled.iter().all(Result::is_ok), "{settled:?}");
    for id in &ids {
        assert_eq!(
            store.load(*id).await.unwrap().unwrap().body,
            vec![7; 10_000]
        );
    }

    assert_eq!(
        store.prune(u64::MAX, 1_000).await.unwrap(),
        ids.len() as u64
    );
    accepted(&store, vec![7; 10_000]).await;
    store.close().await.unwrap();
    let store = open_small(&path).await;
    assert_eq!(store.counts("acme").await.unwrap().waiting, 1);
}

/// ST-2: messages so small that delivering one takes more space than it does itself, and a partner that
/// fails at length before it accepts them: all that was accepted can be delivered, and what gives way is
/// what partners said.
#[tokio::test]
async fn a_full_store_delivers_all_of_its_small_messages() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let store = open_small(&path).await;
    let mut ids = Vec::new();
    let full = loop {
        let new = message(&store, vec![7; 64]);
        let id = new.id;
        match store.accept(new).await {
            Ok(_) => ids.push(id),
            Err(full) => break full,
        }
    };
    assert!(matches!(full, StoreError::Full { .. }), "{full}");
    assert!(ids.len() > 500, "only {} messages fit", ids.len());
    let lease = lease(&store).await;
    for number in 1..=4 {
        for some in ids.chunks(100) {
            let begins = some.iter().map(|id| ressac_store::Begin {
                attempt: number,
                ..begin(&store, *id)
            });
            let begun = store.begin(&lease, begins.collect()).await.unwrap();
            assert!(begun.iter().all(Result::is_ok), "{begun:?}");
            let settles = some
                .iter()
                .map(|id| failed_or_delivered(*id, number, &store));
            let settled = store.settle(&lease, settles.collect()).await.unwrap();
            assert!(settled.iter().all(Result::is_ok), "{settled:?}");
        }
    }
    let counts = store.counts("acme").await.unwrap();
    assert_eq!((counts.delivered, counts.waiting), (ids.len() as u64, 0));
    assert!(std::fs::metadata(&path).unwrap().len() <= 2 << 20);
    let last = store.get(ids[ids.len() - 1]).await.unwrap().unwrap();
    assert_eq!(last.summary.attempts, 4, "what is forgotten still counts");
    assert_eq!(last.attempts.last().unwrap().record.kind, "status");
}

/// An attempt with a long reply; the fourth is the good one.
fn failed_or_delivered(id: Uuid, number: u32, store: &SqliteStore) -> ressac_store::Settle {
    let mut settle = delivered(id);
    settle.attempt = Some(ressac_store::AttemptRecord {
        number,
        kind: "status".into(),
        status: Some(503),
        note: "n".repeat(1_000),
        reply_head: vec![b'h'; 500],
        reply_body: vec![b'b'; 4_096],
        ..Default::default()
    });
    if number < 4 {
        settle.next = ressac_store::NewState::Waiting {
            due: store.now(),
            because: "backoff".into(),
            class: ressac_store::Class::Retry,
        };
    }
    settle
}

/// A message too large for the room left does not drag the small ones with it into the same fate.
#[tokio::test]
async fn a_large_message_sinks_no_small_one() {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(open_small(&folder.path().join("store.db")).await);
    let mut tasks = Vec::new();
    for size in [100, 3 << 20, 100, 3 << 20, 100] {
        let store = Arc::clone(&store);
        tasks.push(tokio::spawn(async move {
            (size, store.accept(message(&store, vec![7; size])).await)
        }));
    }
    for task in tasks {
        match task.await.unwrap() {
            (100, outcome) => assert!(outcome.is_ok(), "{outcome:?}"),
            (_, outcome) => assert!(
                matches!(outcome, Err(StoreError::Full { .. })),
                "{outcome:?}"
            ),
        }
    }
    assert_eq!(store.counts("acme").await.unwrap().waiting, 3);
}

/// The reserve is finite: past it settles are refused too, and nothing is half-written.
#[tokio::test]
async fn past_the_reserve_everything_is_refused_whole() {
    let folder = tempfile::tempdir().unwrap();
    let store = open_small(&folder.path().join("store.db")).await;
    let ids = fill(&store).await;
    let lease = lease(&store).await;
    let mut open = Vec::new();
    let mut refused = None;
    for id in &ids {
        let mut item = begin(&store, *id);
        item.operation = vec![1; 100_000];
        match store.begin(&lease, vec![item]).await {
            Ok(begun) => {
                assert_eq!(begun, [Ok(())]);
                open.push(*id);
            }
            Err(error) => {
                refused = Some(error);
                break;
            }
        }
    }
    assert!(
        matches!(refused, Some(StoreError::Full { .. })),
        "{refused:?}"
    );
    let in_flight = store.in_flight("acme", 0, 1_000).await.unwrap();
    assert_eq!(in_flight.iter().map(|m| m.id).collect::<Vec<_>>(), open);
    assert_eq!(
        store.counts("acme").await.unwrap().sending,
        open.len() as u64
    );
    // A settle gives the space of its operation back, so it still fits.
    let settles: Vec<_> = open.iter().map(|id| delivered(*id)).collect();
    let settled = store.settle(&lease, settles).await.unwrap();
    assert!(
        settled
            .iter()
            .all(|result| *result != Err(Refusal::NotFound)),
        "{settled:?}"
    );
    assert_eq!(
        store.counts("acme").await.unwrap().delivered,
        open.len() as u64
    );
}

/// ST-7: one command that does not fit takes its commit down; the others that rode in it do not suffer.
#[tokio::test]
async fn a_command_that_does_not_fit_sinks_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let store = open_small(&path).await;
    let ids = fill(&store).await;
    let lease = lease(&store).await;
    let large = ids[1..11].iter().map(|id| {
        let operation = vec![1; 200_000];
        ressac_store::Begin {
            operation,
            ..begin(&store, *id)
        }
    });
    let batches = [
        vec![begin(&store, ids[0])],
        large.collect(),
        vec![begin(&store, ids[11])],
    ];
    // All three ride in one commit: the lock keeps the writer from it until they are queued.
    let other = rusqlite::Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let mut sent = Vec::new();
    for batch in batches {
        let mut answer = store.begin(&lease, batch);
        let early = tokio::time::timeout(std::time::Duration::ZERO, &mut answer).await;
        assert!(
            early.is_err(),
            "answered while the writer was held: {early:?}"
        );
        sent.push(answer);
    }
    other.execute_batch("ROLLBACK").unwrap();
    let mut answers = Vec::new();
    for answer in sent {
        answers.push(answer.await);
    }
    assert_eq!(answers[0], Ok(vec![Ok(())]));
    assert!(
        matches!(answers[1], Err(StoreError::Full { .. })),
        "{:?}",
        answers[1]
    );
    assert_eq!(answers[2], Ok(vec![Ok(())]));
    let in_flight = store.in_flight("acme", 0, 100).await.unwrap();
    assert_eq!(
        in_flight.iter().map(|m| m.id).collect::<Vec<_>>(),
        [ids[0], ids[11]]
    );
    assert_eq!(store.counts("acme").await.unwrap().sending, 2);
}

#[cfg(target_os = "linux")]
mod disk {
    use std::io::{BufRead, BufReader, Write};
    use std::path::Path;
    use std::process::{Command, Stdio};

    use ressac_store::Outbox;

    use super::support::{CHILD, accepted, begin, child, delivered, lease, message, open};

    fn say(line: &str) {
        std::io::stdout()
            .write_all(format!("\n{line}\n").as_bytes())
            .unwrap();
        std::io::stdout().flush().unwrap();
    }

    /// Not a test by itself: fills its file to the limit that the system sets, then goes on when the
    /// limit is gone.
    #[tokio::test]
    async fn child_fills() {
        let Some(path) = std::env::var_os(CHILD) else {
            return;
        };
        let store = open(Path::new(&path)).await;
        let lease = lease(&store).await;
        let open = accepted(&store, b"first".to_vec()).await.id;
        let begun = store
            .begin(&lease, vec![begin(&store, open)])
            .await
            .unwrap();
        assert_eq!(begun, [Ok(())]);
        say(&format!("accepted {open}"));
        let mut failures = 0;
        while failures < 20 {
            let new = message(&store, vec![7; 10_000]);
            let id = new.id;
            match store.accept(new).await {
                Ok(_) => say(&format!("accepted {id}")),
                Err(_) => failures += 1,
            }
        }
        say("full");
        let mut line = String::new();
        std::io::stdin().read_line(&mut line).unwrap();
        let settled = store.settle(&lease, vec![delivered(open)]).await.unwrap();
        assert_eq!(settled, [Ok(())]);
        let id = accepted(&store, vec![7; 10_000]).await.id;
        say(&format!("accepted {id}"));
        store.close().await.unwrap();
        say("closed");
    }

    /// ST-2: the system refuses every write (here by a limit on file size, as a full disk does); the
    /// writer goes on when that is over, in the same process.
    #[tokio::test]
    async fn a_full_disk_loses_nothing_and_ends() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.db");
        let limited = child("disk::child_fills", &path);
        // The signal that comes with the limit is ignored, so that the write fails instead. 1 MiB.
        let mut shell = Command::new("sh");
        shell.args(["-c", "trap '' XFSZ; ulimit -S -f 2048; exec \"$@\"", "sh"]);
        shell
            .arg(limited.get_program())
            .args(limited.get_args())
            .env(CHILD, &path);
        let mut running = shell
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (mut ids, mut closed) = (Vec::new(), false);
        for line in BufReader::new(running.stdout.take().unwrap()).lines() {
            let line = line.unwrap();
            if let Some(id) = line.strip_prefix("accepted ") {
                ids.push(id.parse::<uuid::Uuid>().unwrap());
            } else if line == "full" {
                let pid = running.id().to_string();
                let lifted = Command::new("prlimit")
                    .args(["--pid", &pid, "--fsize=unlimited"])
                    .status()
                    .unwrap();
                assert!(lifted.success());
                running.stdin.take().unwrap().write_all(b"go on\n").unwrap();
            } else if line == "closed" {
                closed = true;
            }
        }
        assert!(running.wait().unwrap().success());
        // Twice what the log alone can hold: what lay in it was moved to make room.
        assert!(
            closed && ids.len() > 50,
            "closed {closed}, {} accepted",
            ids.len()
        );

        let store = open(&path).await;
        for id in &ids {
            assert!(store.load(*id).await.unwrap().is_some(), "{id} is lost");
        }
        let counts = store.counts("acme").await.unwrap();
        assert_eq!(
            (counts.delivered, counts.waiting),
            (1, ids.len() as u64 - 1)
        );
    }
}
