//! A store that cannot be used is refused in words, with an exit code, and not touched.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

use ressac_e2e::{Caller, Ended, Gateway, Site, partner, partner_of};
use ressac_mock::Reset;

/// "Our own fault", of the documented codes.
const FAULT: i32 = 70;
const PAGE: u64 = 4_096;
const START: Duration = Duration::from_secs(30);

/// A partner that nobody has to reach.
const NOBODY: &str = "[partner.p]\nurl = 'http://127.0.0.1:9'\n";

/// A site whose store has messages, and was closed cleanly.
async fn used() -> Site {
    let mock = partner("script = '201 create x*'").await;
    let site = Site::new(&format!("[partner.p]\nurl = '{}'\n", mock.url()));
    let gateway = Gateway::start(&site).await;
    let caller = Caller::new();
    for size in [10, 100, 20_000, 100_000, 300] {
        let answer = caller
            .post(gateway.address(), "p", &[], "x".repeat(size))
            .await
            .unwrap();
        assert_eq!(answer.status, 202);
    }
    caller
        .drained(gateway.address(), "p", Duration::from_secs(30))
        .await;
    gateway.stop().await;
    site
}

/// It did not start, and said which file, and what to do. Answers the message.
fn refused(ended: &Ended, file: &Path, words: &[&str]) -> String {
    let log = &ended.log;
    assert_eq!(ended.code(), Some(FAULT), "{log}");
    assert!(!log.contains("panicked"), "{log}");
    assert!(!log.contains("listens on"), "{log}");
    let line = log
        .lines()
        .find(|line| line.starts_with("error: "))
        .unwrap_or_default();
    assert!(
        line.contains(file.to_str().unwrap()),
        "the file is not named: {log}"
    );
    for word in words {
        assert!(line.contains(word), "no {word:?}: {log}");
    }
    line.to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn corrupt_store_a_header_of_garbage() {
    let site = Site::new(NOBODY);
    let garbage: Vec<u8> = (0..3 * PAGE).map(|i| (i * 7 % 251) as u8).collect();
    std::fs::write(site.store(), &garbage).unwrap();
    let ended = Gateway::run(&site, START).await;
    let line = refused(&ended, &site.store(), &["damaged", "Restore a backup"]);
    assert!(
        std::fs::read(site.store()).unwrap() == garbage,
        "the file was changed"
    );
    println!("corrupt_store, garbage: exit {FAULT}, {line}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn corrupt_store_a_file_cut_short() {
    let site = used().await;
    let file = std::fs::OpenOptions::new()
        .write(true)
        .open(site.store())
        .unwrap();
    let whole = file.metadata().unwrap().len();
    // Within the header, within a page, between two pages, without the last one.
    for size in [whole - PAGE, whole / 2 / PAGE * PAGE, whole / 2 + 100, 50] {
        file.set_len(size).unwrap();
        let ended = Gateway::run(&site, START).await;
        let line = refused(&ended, &site.store(), &["damaged", "Restore a backup"]);
        println!("corrupt_store, {size} of {whole} bytes: exit {FAULT}, {line}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn corrupt_store_a_page_of_other_bytes() {
    let site = used().await;
    let file = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open(site.store())
        .unwrap();
    let pages = file.metadata().unwrap().len() / PAGE;
    let (mut good, bad) = ([0; PAGE as usize], [0xaa; PAGE as usize]);
    let mut tried = 0;
    for page in (1..pages).step_by(pages.div_ceil(8) as usize) {
        file.read_exact_at(&mut good, page * PAGE).unwrap();
        file.write_all_at(&bad, page * PAGE).unwrap();
        let ended = Gateway::run(&site, START).await;
        refused(&ended, &site.store(), &["damaged", "Restore a backup"]);
        file.write_all_at(&good, page * PAGE).unwrap();
        tried += 1;
    }
    // With its own bytes again it is as good as before.
    let gateway = Gateway::start(&site).await;
    let counts = Caller::new().counts(gateway.address(), "p").await;
    assert_eq!(counts.delivered, 5);
    gateway.stop().await;
    println!("corrupt_store, one page of {pages} overwritten: refused {tried} times of {tried}");
}

/// The database lost, its log still there: an empty store would be a silent loss.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn corrupt_store_emptied_beside_its_log() {
    let site = Site::new(NOBODY);
    let gateway = Gateway::start(&site).await;
    let answer = Caller::new()
        .post(gateway.address(), "p", &[], "x")
        .await
        .unwrap();
    assert_eq!(answer.status, 202);
    gateway.kill_nine().await;
    std::fs::write(site.store(), b"").unwrap();
    let ended = Gateway::run(&site, START).await;
    let line = refused(&ended, &site.store(), &["damaged"]);
    println!("corrupt_store, emptied: exit {FAULT}, {line}");
}

/// Where a page begins that holds nothing but this letter behind its pointer to the next one.
fn page_of(file: &std::fs::File, letter: u8) -> u64 {
    let pages = file.metadata().unwrap().len() / PAGE;
    let mut page = [0; PAGE as usize];
    let found = (0..pages).find(|number| {
        file.read_exact_at(&mut page, number * PAGE).unwrap();
        page[4..].iter().all(|byte| *byte == letter)
    });
    found.expect("the body is not in the file") * PAGE
}

/// ST-9: a body that can no longer be read, in a gateway that runs. Its message waits, is looked at now
/// and then, not in a loop, holds nobody up, and goes when it can be read again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn st_9_a_body_that_cannot_be_read_is_no_loop() {
    let top = "outage = [{ from = '0s', to = '1h', clock = 'armed', do = 'down' }]";
    let mock = partner_of(top, "script = '201 create x*'").await;
    mock.arm();
    let site = Site::new(&format!(
        "[policy.fast]\nmode = 'durable'\nretries = 10000\nbase = '50ms'\ncap = '100ms'\n\
         breaker = 'off'\nbudget = 'off'\n[partner.p]\nurl = '{}'\npolicy = 'fast'\n",
        mock.url()
    ));
    let caller = Caller::new();
    let gateway = Gateway::start(&site).await;
    let answer = caller
        .post(gateway.address(), "p", &[], "z".repeat(50_000))
        .await
        .unwrap();
    // Closed, so that the body lies in the file and not in the log.
    gateway.stop().await;

    let gateway = Gateway::start(&site).await;
    let file = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open(site.store())
        .unwrap();
    let at = page_of(&file, b'z');
    let mut pointer = [0; 4];
    file.read_exact_at(&mut pointer, at).unwrap();
    file.write_all_at(&[0xff; 4], at).unwrap();
    mock.reset(&[Reset::Faults]);
    let mut neighbours = Vec::new();
    for number in 0..20 {
        let body = format!("message {number}");
        let answer = caller
            .post(gateway.address(), "p", &[], body)
            .await
            .unwrap();
        neighbours.push(answer.id());
    }
    for id in &neighbours {
        caller
            .becomes(gateway.address(), id, "delivered", Duration::from_secs(10))
            .await;
    }
    tokio::time::sleep(Duration::from_secs(4)).await;
    let looks = gateway.log().matches("could not be read").count();
    let message = caller
        .get(gateway.address(), &format!("/v1/messages/{}", answer.id()))
        .await;
    assert!(
        ["waiting", "sending"].contains(&message["state"].as_str().unwrap()),
        "{message:#}"
    );
    assert!(
        (1..=5).contains(&looks),
        "looked at {looks} times in 4 s:\n{}",
        gateway.log()
    );
    assert_eq!(mock.journal().len(), neighbours.len());

    file.write_all_at(&pointer, at).unwrap();
    caller
        .becomes(
            gateway.address(),
            &answer.id(),
            "delivered",
            Duration::from_secs(10),
        )
        .await;
    gateway.stop().await;
    println!("st_9: looked at {looks} times in 4 s; delivered when it could be read again");
}

/// LA-3, from the door: one process owns the store. The second one goes, the first one works on; and a
/// killed owner leaves nothing behind that keeps its successor out.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn second_owner_is_refused() {
    // With a key: the kill may come within an attempt, and what is then in doubt waits too.
    let site = Site::new(&format!(
        "{NOBODY}idempotency = {{ header = 'Idempotency-Key' }}\n"
    ));
    let first = Gateway::start(&site).await;
    let owner = format!("(process {})", first.pid());
    let ended = Gateway::run(&site, START).await;
    let line = refused(
        &ended,
        &site.store(),
        &["in use", &owner, "name another file"],
    );
    println!("second_owner: exit {FAULT}, {line}");
    let answer = Caller::new()
        .post(first.address(), "p", &[], "x")
        .await
        .unwrap();
    assert_eq!(answer.status, 202);
    first.kill_nine().await;
    let next = Gateway::start(&site).await;
    let counts = Caller::new().counts(next.address(), "p").await;
    assert_eq!(counts.waiting + counts.sending, 1);
    next.stop().await;
}

/// A folder that is not there is no damage, and is said as what it is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_that_is_not_there_is_named() {
    let site = Site::new(NOBODY);
    let store = site.store();
    std::fs::remove_dir(store.parent().unwrap()).unwrap();
    let ended = Gateway::run(&site, START).await;
    let line = refused(&ended, &store, &["No such file", "Check"]);
    println!("no folder: exit {FAULT}, {line}");
}
