//! Where the binary under test is.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The `ressac` to test: the one that `RESSAC_BIN` names, else the one that lies beside the test's own
/// executable, brought up to date first where it is not.
///
/// # Panics
///
/// If it cannot be built.
pub fn ressac() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| match std::env::var_os("RESSAC_BIN") {
        Some(path) => PathBuf::from(path),
        None => build(),
    })
}

fn build() -> PathBuf {
    // target/debug/deps/test-0123 → target/debug
    let test = std::env::current_exe().unwrap();
    let folder = test.parent().and_then(Path::parent).unwrap();
    let binary = folder.join("ressac");
    if is_current(&binary) {
        return binary;
    }
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["build", "--quiet", "-p", "ressac-cli"]);
    if folder.ends_with("release") {
        command.arg("--release");
    }
    // The folder of the profile is that of the target, or of a triple in it.
    command.arg("--target-dir").arg(folder.parent().unwrap());
    let status = command.current_dir(env!("CARGO_MANIFEST_DIR")).status();
    assert!(
        status.as_ref().is_ok_and(std::process::ExitStatus::success),
        "cargo build -p ressac-cli: {status:?}; or name a binary in RESSAC_BIN"
    );
    binary
}

/// Is the binary younger than everything it is made of? `cargo test --workspace` builds it on its
/// way; building it once more alone, with other features, would build its dependencies again.
fn is_current(binary: &Path) -> bool {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let modified = |path: &Path| std::fs::metadata(path).and_then(|data| data.modified());
    let Ok(built) = modified(binary) else {
        return false;
    };
    let mut folders = vec![top.join("crates"), top.join("examples")];
    let mut files = vec![top.join("Cargo.toml"), top.join("Cargo.lock")];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(folder) else {
            return false;
        };
        for entry in entries.flatten() {
            let path = entry.path();
            match path.is_dir() {
                // Tests are no part of it.
                true if path.ends_with("tests") || path.ends_with("ressac-e2e") => {}
                true => folders.push(path),
                false => files.push(path),
            }
        }
    }
    files
        .iter()
        .all(|file| modified(file).is_ok_and(|time| time < built))
}
