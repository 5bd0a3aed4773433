//! From SQLite's errors to ours.

use std::path::Path;

use rusqlite::ErrorCode;

use crate::error::StoreError;

/// Says what a failure of SQLite means for the caller.
pub(super) fn failure(path: &Path, error: &rusqlite::Error) -> StoreError {
    let detail = error.to_string();
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => StoreError::Full { detail },
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => StoreError::Corrupt {
            path: path.to_owned(),
            detail,
        },
        Some(
            ErrorCode::SystemIoFailure
            | ErrorCode::CannotOpen
            | ErrorCode::ReadOnly
            | ErrorCode::PermissionDenied
            | ErrorCode::AuthorizationForStatementDenied
            | ErrorCode::FileLockingProtocolFailed,
        ) => StoreError::Io { detail },
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreError::Io {
            detail: format!("another program holds a lock on the file ({detail})"),
        },
        _ => StoreError::Internal { detail },
    }
}

/// An error inside the writer or a reader, before the path of the file is known to it.
#[derive(Debug)]
pub(super) enum Fault {
    Sqlite(rusqlite::Error),
    Store(StoreError),
}

impl Fault {
    pub(super) fn told(self, path: &Path) -> StoreError {
        match self {
            Self::Sqlite(error) => failure(path, &error),
            Self::Store(error) => error,
        }
    }
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<crate::error::Refusal> for Fault {
    fn from(refusal: crate::error::Refusal) -> Self {
        Self::Store(StoreError::Refused(refusal))
    }
}
