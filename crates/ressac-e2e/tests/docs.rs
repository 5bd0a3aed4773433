//! Every command of README and docs is run: the `sh` blocks of a document, in order, as one script
//! in a folder of its own. What would take long is scaled down by the table below, never left out.
#![allow(missing_docs, clippy::unwrap_used, clippy::print_stdout)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use ressac_e2e::ressac;

/// A line as it stands in a document, and as it is run here.
const SCALED: [(&str, &str); 7] = [
    // Building and testing is what runs this test; the binary is the one it built.
    (
        "cargo run --release -- demo",
        "ressac demo --messages 10 --outage 1s --retry-after 1",
    ),
    ("cargo test --workspace", "true"),
    ("cargo install --path crates/ressac-cli", "ressac --version"),
    // In a debug build the whole of these takes minutes.
    (
        "ressac sim compare --policy sync --policy durable --capacity 1200 --rate 1000 --outage 2m",
        "ressac sim compare --policy sync --policy durable --capacity 1200 --rate 1000 --outage 2m --seeds 1",
    ),
    (
        "ressac sim suggest --policy durable --capacity 1200 --rate 1000 --outage 2m",
        "ressac sim suggest --policy durable --capacity 1200 --rate 1000 --outage 2m --tries 3 --seeds 1",
    ),
    ("cargo bench -p ressac-policy", "true"),
    ("cargo bench -p ressac-store", "true"),
];

/// The ports that the documents name. They run as written, one after another.
const PORTS: [u16; 3] = [7070, 7171, 7172];

fn top() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

fn documents() -> Vec<PathBuf> {
    let mut all = vec![top().join("README.md")];
    for entry in fs::read_dir(top().join("docs")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|kind| kind == "md") {
            all.push(path);
        }
    }
    all.sort();
    all
}

/// The `sh` blocks of a document, joined.
fn script(text: &str) -> String {
    let (mut script, mut inside) = (String::new(), false);
    for line in text.lines() {
        match line.trim_start() {
            "```sh" => inside = true,
            "```" if inside => inside = false,
            _ if inside => {
                let run = SCALED.iter().find(|(written, _)| line == *written);
                script.push_str(run.map_or(line, |(_, run)| run));
                script.push('\n');
            }
            _ => {}
        }
    }
    script
}

#[test]
fn every_command_of_the_documents_runs() {
    for tool in ["bash", "curl", "jq", "python3"] {
        let there = Command::new(tool)
            .arg("--version")
            .stdout(Stdio::null())
            .status()
            .is_ok();
        if !there {
            assert!(
                std::env::var_os("CI").is_none(),
                "{tool} is missing; .ci/run installs it"
            );
            println!("{tool} is not installed: the commands of the documents are not run");
            return;
        }
    }
    PORTS.into_iter().for_each(wait_until_free);
    let mut ran = 0;
    for document in documents() {
        let mut script = script(&fs::read_to_string(&document).unwrap());
        if document.ends_with("docs/cli.md") {
            script = reference(&script);
        }
        if !script.is_empty() {
            run(&document, &script);
            ran += 1;
        }
    }
    assert!(ran >= 4, "only {ran} documents have commands");
}

/// What `docs/benchmarks.md` says makes its figures takes hours, and a quiet machine: the nightly
/// run makes them, each by the very line that stands there.
#[test]
fn the_nightly_run_makes_every_figure_of_the_benchmarks() {
    let page = fs::read_to_string(top().join("docs/benchmarks.md")).unwrap();
    let nightly = fs::read_to_string(top().join(".ci/nightly")).unwrap();
    let runs: Vec<_> = nightly.lines().map(str::trim).collect();
    let commands: Vec<_> = page
        .lines()
        .filter_map(|line| line.strip_prefix("$ "))
        .map(|line| line.split('#').next().unwrap_or(line).trim())
        .collect();
    assert!(commands.len() >= 8, "{commands:?}");
    let missing: Vec<_> = commands.iter().filter(|c| !runs.contains(c)).collect();
    assert!(missing.is_empty(), ".ci/nightly does not run {missing:#?}");
}

/// Another run of these tests may be at it: it ends.
fn wait_until_free(port: u16) {
    for _ in 0..600 {
        if std::net::TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    panic!("port {port}, which the documents use, is taken: stop what listens there");
}

/// The examples of the command line's reference are one line each, with names that stand for the
/// reader's own: here they get a partner, a gateway with dead letters, and files to work on.
fn reference(examples: &str) -> String {
    let mut lines = examples.replace("https://api.acme.example", "http://127.0.0.1:7171");
    const ID: &str = "01a22c1f-3a14-75ac-8c36-a4999a6b5428";
    for number in 0.. {
        if !lines.contains(ID) {
            break;
        }
        lines = lines.replacen(ID, &format!("$(dead {number})"), 1);
    }
    // Each line by itself; between two, what the one began may end.
    let joined = lines.replace("\\\n", " ");
    let steps: Vec<_> = joined
        .lines()
        .map(|line| format!("{line}\nsleep 0.3"))
        .collect();
    format!(
        "{}\n{}\n",
        include_str!("docs_reference.sh"),
        steps.join("\n")
    )
}

fn run(document: &Path, commands: &str) {
    let folder = tempfile::tempdir().unwrap();
    copy(&top().join("examples"), &folder.path().join("examples"));
    let binary = ressac();
    let path = format!(
        "{}:{}",
        binary.parent().unwrap().display(),
        std::env::var("PATH").unwrap_or_default()
    );
    // `-e`: a command that fails ends the script. What runs in the background ends with it.
    let script =
        format!("set -euo pipefail\ntrap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n{commands}");
    let output = Command::new("bash")
        .arg("-c")
        .arg(&script)
        .current_dir(folder.path())
        .env("PATH", path)
        .env_remove("CI")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{} does not run as it says ({}):\n{script}\n--- stdout\n{}\n--- stderr\n{}",
        document.display(),
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    println!(
        "{}: {} lines run",
        document.display(),
        commands.lines().count()
    );
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}
