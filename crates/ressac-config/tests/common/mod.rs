//! Golden files: compared, or written with `RESSAC_UPDATE=1`.

use std::path::Path;

/// What differs, if anything.
pub(crate) fn golden(file: &Path, actual: &str) -> Result<(), String> {
    if std::env::var_os("RESSAC_UPDATE").is_some() {
        std::fs::write(file, actual).map_err(|error| error.to_string())?;
    }
    let expected = std::fs::read_to_string(file).unwrap_or_default();
    if expected == actual {
        return Ok(());
    }
    Err(format!("{} differs; it is now:\n{actual}", file.display()))
}

/// A file below this crate's tests.
pub(crate) fn below(path: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests")
        .join(path)
}
