//! Files that are whole or absent: written beside their place, then renamed.

use std::io;
use std::path::Path;

use tempfile::NamedTempFile;

/// A draft in the folder of `path`, with the permissions that any new file gets.
pub(crate) fn beside(path: &Path) -> io::Result<NamedTempFile> {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    let mut builder = tempfile::Builder::new();
    builder.prefix(".ressac-");
    // The umask is taken off. By default a draft would be its owner's only.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    builder.tempfile_in(folder).map_err(|error| {
        // The name of the draft is nobody's business; the caller names the file that was asked for.
        let text = error.to_string();
        let cause = text.split(" at path \"").next().unwrap_or(&text);
        io::Error::new(error.kind(), cause)
    })
}
