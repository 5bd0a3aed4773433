//! Opening: whose file it is, whether it is whole, whether somebody else has it.
#![allow(clippy::unwrap_used)]

mod support;

use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use ressac_store::{Outbox, SqliteOptions, SqliteStore, StoreError};
use support::{CHILD, accepted, child, lease, open};

async fn refused(path: &Path) -> StoreError {
    let before = std::fs::read(path).unwrap();
    let error = SqliteStore::open(SqliteOptions::new(path))
        .await
        .unwrap_err();
    assert_eq!(
        std::fs::read(path).unwrap(),
        before,
        "a refused file was changed"
    );
    error
}

/// A closed store with a few hundred messages.
async fn filled(folder: &Path) -> PathBuf {
    let path = folder.join("store.db");
    let store = open(&path).await;
    for index in 0..200 {
        accepted(&store, vec![index; 2_000]).await;
    }
    store.close().await.unwrap();
    path
}

fn assert_corrupt(error: &StoreError, path: &Path) {
    assert!(matches!(error, StoreError::Corrupt { .. }), "{error:?}");
    let text = error.to_string();
    assert!(text.contains(path.to_str().unwrap()), "{text}");
    assert!(text.contains("Restore a backup"), "{text}");
}

#[tokio::test]
async fn a_garbage_header_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = filled(folder.path()).await;
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.write_all_at(b"not a database", 0).unwrap();
    assert_corrupt(&refused(&path).await, &path);
}

#[tokio::test]
async fn a_truncated_file_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = filled(folder.path()).await;
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    let whole = file.metadata().unwrap().len();
    for length in [whole - 4_096, whole / 2, 4_096, 60] {
        file.set_len(length).unwrap();
        assert_corrupt(&refused(&path).await, &path);
    }
}

#[tokio::test]
async fn a_flipped_page_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = filled(folder.path()).await;
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    let pages = file.metadata().unwrap().len() / 4_096;
    file.write_all_at(&[0xa5; 4_096], pages / 2 * 4_096)
        .unwrap();
    assert_corrupt(&refused(&path).await, &path);
}

#[tokio::test]
async fn a_file_of_another_application_is_refused_untouched() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("other.db");
    let other = rusqlite::Connection::open(&path).unwrap();
    other
        .execute_batch("CREATE TABLE theirs (a); INSERT INTO theirs VALUES (1)")
        .unwrap();
    other.close().unwrap();
    let error = refused(&path).await;
    assert!(matches!(error, StoreError::Foreign { .. }), "{error:?}");
}

#[tokio::test]
async fn a_newer_schema_is_refused_untouched() {
    let folder = tempfile::tempdir().unwrap();
    let path = filled(folder.path()).await;
    let newer = rusqlite::Connection::open(&path).unwrap();
    newer.pragma_update(None, "user_version", 99).unwrap();
    newer
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        .unwrap();
    newer.close().unwrap();
    let error = refused(&path).await;
    assert!(
        matches!(error, StoreError::Newer { found: 99, .. }),
        "{error:?}"
    );
}

#[tokio::test]
async fn a_folder_that_is_not_there_is_an_io_error() {
    let folder = tempfile::tempdir().unwrap();
    let options = SqliteOptions::new(folder.path().join("missing").join("store.db"));
    let error = SqliteStore::open(options).await.unwrap_err();
    assert!(matches!(error, StoreError::Io { .. }), "{error:?}");
}

/// Not a test by itself: tries to open the store of its parent.
#[tokio::test]
async fn child_opens() {
    let Some(path) = std::env::var_os(CHILD) else {
        return;
    };
    let error = SqliteStore::open(SqliteOptions::new(PathBuf::from(path)))
        .await
        .unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("in use by another process (process "),
        "{text}"
    );
}

#[tokio::test]
async fn a_second_opener_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let store = open(&path).await;
    let again = SqliteStore::open(SqliteOptions::new(&path)).await;
    assert!(matches!(again, Err(StoreError::Locked { .. })), "{again:?}");
    assert!(child("child_opens", &path).status().unwrap().success());
    accepted(&store, vec![1]).await;
    drop(store);
    open(&path).await;
}

/// A new boot voids old leases at once: nobody waits for the lease of a killed process.
#[tokio::test]
async fn a_new_boot_voids_old_leases() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let store = open(&path).await;
    let old = lease(&store).await;
    store.close().await.unwrap();
    drop(store);
    let store = open(&path).await;
    let lost = store.save_partner(&old, Vec::new()).await;
    assert!(
        matches!(lost, Err(StoreError::LeaseLost { .. })),
        "{lost:?}"
    );
    let partners = ["acme".to_owned()];
    let new = store
        .acquire("other", &partners, std::time::Duration::from_secs(1))
        .await
        .unwrap();
    assert!(new[0].epoch > old.epoch);
}

/// ST-4: the settings that make writes last are really on, and the library is not one with the bug
/// that loses pages.
#[tokio::test]
async fn writes_last() {
    assert!(rusqlite::version_number() >= 3_051_003);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let store = open(&path).await;
    accepted(&store, vec![1]).await;
    let looker = rusqlite::Connection::open(&path).unwrap();
    let journal: String = looker
        .pragma_query_value(None, "journal_mode", |r| r.get(0))
        .unwrap();
    assert_eq!(journal, "wal");
    let id: i32 = looker
        .pragma_query_value(None, "application_id", |r| r.get(0))
        .unwrap();
    assert_eq!(id.to_be_bytes(), *b"RSAC");
    let applied: i64 = looker
        .query_row("SELECT count(*) FROM migration", [], |r| r.get(0))
        .unwrap();
    assert_eq!(applied, 1);
}
