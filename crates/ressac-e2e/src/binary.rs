//! Where the binary under test is.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The `ressac` to test: the one that `RESSAC_BIN` names, else the one that lies beside the test's own
/// executable, brought up to date first. Cargo does not build it for us: nothing depends on a binary.
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
    folder.join("ressac")
}
