//! Keys that the client makes.

use std::path::Path;

/// Made before the first attempt and written down, so that it outlives this process.
pub(crate) fn own(state: Option<&Path>, op: &str, make: impl FnOnce() -> String) -> String {
    let file = state.map(|dir| dir.join(format!("key-{op}")));
    if let Some(known) = file.as_ref().and_then(|f| std::fs::read_to_string(f).ok()) {
        return known;
    }
    let key = make();
    if let Some(file) = file
        && let Err(error) = std::fs::write(&file, &key)
    {
        eprintln!("prove-client: {}: {error}", file.display());
    }
    key
}
