//! A store that cannot be used is refused in words, with an exit code, and not touched.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

use ressac_e2e::{Caller, Ended, Gateway, Site, partner};

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

/// LA-3, from the door: one process owns the store. The second one goes, the first one works on; and a
/// killed owner leaves nothing behind that keeps its successor out.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn second_owner_is_refused() {
    let site = Site::new(NOBODY);
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
