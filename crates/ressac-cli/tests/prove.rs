//! `ressac prove` as a whole: arguments, exit codes, evidence on disk, and `ressac send` as a client.

#![cfg(unix)]
#![allow(clippy::unwrap_used)]

mod common;

use std::path::Path;

use common::{Ran, ressac};

const CLAIMS: &str = "[client]\nname = \"ressac-send\"\nversion = \"1\"\nmode = \"exec\"\n\
    [claims]\nmethods = [\"GET\", \"PUT\", \"DELETE\"]\nstatuses = [503]\nattempts = 6\n\
    retry_after = { statuses = [503], forms = [\"seconds\"], max = \"2m\" }\n";

/// `ressac send` in exec mode: its exit codes are brought down to 0 and 1.
const SEND: &str = "set -- -X \"$PROVE_METHOD\"\n\
    if [ -n \"${PROVE_BODY_FILE:-}\" ]; then set -- \"$@\" -d \"@$PROVE_BODY_FILE\"; fi\n\
    \"$RESSAC\" send \"$@\" \"$PROVE_URL\" >/dev/null 2>&1 || exit 1";

struct Bench {
    folder: tempfile::TempDir,
}

impl Bench {
    fn new(claims: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("claims.toml"), claims).unwrap();
        std::fs::write(folder.path().join("send.sh"), SEND).unwrap();
        Self { folder }
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    /// Runs `prove` with these options over a shell script.
    fn prove(&self, options: &[&str], script: &[&str]) -> Ran {
        let claims = self.path("claims.toml");
        let mut args = vec!["prove", "--claims", &claims];
        args.extend(options);
        args.push("--");
        args.extend(script);
        let mut command = common::command(&args);
        command.env("RESSAC", env!("CARGO_BIN_EXE_ressac"));
        common::finish(command.spawn().unwrap())
    }
}

#[test]
fn ressac_send_is_proved_and_the_evidence_can_be_judged_again() {
    let bench = Bench::new(CLAIMS);
    let (out, script) = (bench.path("proof"), bench.path("send.sh"));
    let ran = bench.prove(
        &[
            "--run", "C10", "--run", "E0[0-9]", "--run", "F08", "--out", &out,
        ],
        &["sh", &script],
    );
    assert_eq!(
        ran.code, 64,
        "a pattern that fits nothing is no clean run: {ran:?}"
    );

    let ran = bench.prove(
        &["--run", "C10", "--run", "F08", "--out", &out],
        &["sh", &script],
    );
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(
        ran.out
            .contains("pass          C10/9110-10.2.3/not-a-trigger"),
        "{ran:?}"
    );
    assert!(
        ran.out.contains("not claimed   F08/9110-10.1.1/expect"),
        "{ran:?}"
    );
    assert!(ran.out.contains("1 pass, 0 warn, 0 fail"), "{ran:?}");
    assert!(
        ran.out.contains("9.2.2 also advises"),
        "the standing remarks: {ran:?}"
    );
    for name in [
        "report.json",
        "report.html",
        "junit.xml",
        "run.json",
        "cases/C10/scenario.toml",
        "cases/C10/journal.ndjson",
        "cases/C10/results.ndjson",
        "cases/C10/stdout",
        "cases/C10/stderr",
        "cases/C10/verdict.json",
        "cases/C10/wire.txt",
    ] {
        assert!(Path::new(&out).join(name).is_file(), "{name} is not kept");
    }
    let html = std::fs::read_to_string(Path::new(&out).join("report.html")).unwrap();
    assert!(html.contains("<svg") && !html.contains("<script") && !html.contains("src="));
    let junit = std::fs::read_to_string(Path::new(&out).join("junit.xml")).unwrap();
    assert!(
        junit.contains("<skipped message=\"not claimed: needs expect_100\"/>"),
        "{junit}"
    );

    let again = ressac(&["prove", "judge", &out]);
    assert_eq!(again.code, 0, "{again:?}");
    assert!(
        again
            .out
            .contains("pass          C10/9110-10.2.3/not-a-trigger"),
        "{again:?}"
    );
    let report = format!("{out}/report.json");
    let page = bench.path("grid.html");
    let grid = ressac(&["prove", "compare", &report, &report, "--html", &page]);
    assert_eq!((grid.code, grid.out.as_str()), (0, ""), "{grid:?}");
    assert!(
        std::fs::read_to_string(&page)
            .unwrap()
            .contains("ressac-send")
    );
    let table = ressac(&["prove", "compare", &report]);
    assert!(
        table.out.contains("| `C10/9110-10.2.3/not-a-trigger`"),
        "{table:?}"
    );
}

#[test]
fn a_client_that_cannot_be_driven_is_3_and_a_wrong_one_1() {
    let bench = Bench::new(CLAIMS);
    for script in ["exit 0", "exit 1", "exit 7", "kill -9 $$"] {
        let ran = bench.prove(&["--run", "B01"], &["sh", "-c", script]);
        assert_eq!(ran.code, 3, "{script}: {ran:?}");
        assert!(ran.err.contains("set-up failed"), "{script}: {ran:?}");
    }
    let ran = bench.prove(&["--run", "B01"], &["/no/such/program"]);
    assert_eq!(ran.code, 3, "{ran:?}");
    assert!(ran.err.contains("cannot start /no/such/program"), "{ran:?}");
    // Sends everything twice.
    let twice = format!("{SEND}\n{SEND}");
    std::fs::write(bench.path("twice.sh"), twice).unwrap();
    let ran = bench.prove(&["--run", "B01"], &["sh", &bench.path("twice.sh")]);
    assert_eq!(ran.code, 3, "the set-up counts its requests: {ran:?}");
}

#[test]
fn the_list_of_known_failures_is_held_to() {
    let bench = Bench::new(CLAIMS);
    let list = bench.path("known.txt");
    let script = bench.path("send.sh");
    for (text, code, says) in [
        (
            "C10/9110-10.2.3/not-a-trigger  # it passes\n",
            1,
            "stands on the list",
        ),
        ("Z99/x/y  # no such case\n", 64, "`Z99/x/y` is no case"),
        ("C10/9110-10.2.3/not-a-trigger\n", 64, "has no reason"),
    ] {
        std::fs::write(&list, text).unwrap();
        let ran = bench.prove(
            &["--run", "C10", "--known-failing", &list],
            &["sh", &script],
        );
        assert_eq!(ran.code, code, "{text}: {ran:?}");
        assert!(
            format!("{}{}", ran.out, ran.err).contains(says),
            "{text}: {ran:?}"
        );
    }
    std::fs::write(&list, "A04/9110-9.2.2/exhaustion  # not run here\n").unwrap();
    let ran = bench.prove(
        &["--run", "F08", "--known-failing", &list],
        &["sh", &script],
    );
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(
        ran.err
            .contains("A04/9110-9.2.2/exhaustion is known to fail, and is not run")
    );
}

#[test]
fn bad_arguments_and_claims_are_64_with_what_to_do() {
    let bench =
        Bench::new("[client]\nname = \"x\"\nmode = \"exec\"\n[claims]\nflags = [\"deadlin\"]\n");
    let ran = bench.prove(&[], &["true"]);
    assert_eq!(ran.code, 64, "{ran:?}");
    assert!(
        ran.err.contains("claims.toml:5") && ran.err.contains("known flags"),
        "{ran:?}"
    );
    let good = Bench::new(CLAIMS);
    for (options, says) in [
        (&["--profile", "acme"][..], "no profile"),
        (&["--run", "X*"], "fits no case"),
        (&["--case-limit", "0s"], "no time"),
        (&["--jobs", "0"], "--jobs"),
        (&["--known-failing", "/no/such/list"], "cannot read"),
    ] {
        let ran = good.prove(options, &["true"]);
        assert_eq!(ran.code, 64, "{options:?}: {ran:?}");
        assert!(ran.err.contains(says), "{options:?}: {ran:?}");
    }
    for args in [
        &["prove"][..],
        &["prove", "--claims", "x.toml"],
        &["prove", "explain", "Z99"],
        &["prove", "compare", "/no/such/report.json"],
        &["prove", "judge", "/no/such/folder"],
    ] {
        assert_eq!(ressac(args).code, 64, "{args:?}");
    }
}

#[test]
fn cases_are_listed_and_explained() {
    let list = ressac(&["prove", "list", "--level", "must", "--run", "*/9110-*"]);
    assert_eq!(list.code, 0, "{list:?}");
    assert!(list.out.contains("C01/9110-10.2.3/seconds-503"), "{list:?}");
    assert!(
        !list.out.contains("A01/") && !list.out.contains("idem"),
        "{list:?}"
    );
    let told = ressac(&["prove", "explain", "C07"]);
    assert_eq!(told.code, 0, "{told:?}");
    for word in [
        "why", "mistake", "script", "passes", "evidence", "source", "profile", "mutants",
    ] {
        assert!(told.out.contains(word), "{word}: {told:?}");
    }
}
