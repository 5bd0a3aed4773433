//! `ressac dead` against a running gateway, against none, and against something else.

#![allow(clippy::unwrap_used)]

mod common;

use std::io::{BufRead, BufReader, Read};
use std::process::Child;
use std::time::{Duration, Instant};

use common::{Ran, command, ressac};
use ressac_mock::{Mock, Options, Scenario};
use serde_json::Value;

/// A gateway that is killed with its test.
struct Served {
    child: Child,
    url: String,
    _folder: tempfile::TempDir,
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Served {
    fn start(partner: &str) -> Served {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("ressac.toml");
        let text = format!(
            "[gateway]\nlisten = \"127.0.0.1:0\"\n\
             [policy.brief]\nextends = \"durable\"\nretries = 0\nsuspend_after = \"off\"\n\
             [partner.acme]\nurl = \"{partner}\"\npolicy = \"brief\"\n\
             idempotency = {{ header = \"Idempotency-Key\" }}\n\
             [partner.other]\nurl = \"{partner}\"\npolicy = \"brief\"\n"
        );
        std::fs::write(&file, text).unwrap();
        let mut child = command(&["serve", file.to_str().unwrap(), "--log", "warn"])
            .spawn()
            .unwrap();
        let mut err = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        let url = loop {
            line.clear();
            assert_ne!(err.read_line(&mut line).unwrap(), 0, "the gateway ended");
            if let Some((_, url)) = line.trim_end().split_once("listens on ") {
                break url.to_owned();
            }
        };
        // Read on, so that the gateway never blocks on a full pipe.
        std::thread::spawn(move || err.read_to_end(&mut Vec::new()));
        Served {
            child,
            url,
            _folder: folder,
        }
    }

    fn post(&self, partner: &str, path: &str) {
        let url = format!("{}/v1/partners/{partner}/messages", self.url);
        let header = format!("Ressac-Path: {path}");
        let ran = ressac(&["send", &url, "-d", "x", "-H", &header]);
        assert_eq!(ran.code, 0, "{ran:?}");
    }

    fn dead(&self, args: &[&str]) -> Ran {
        ressac(&[&["dead", "--url", &self.url], args].concat())
    }

    /// The dead letters that `args` choose, once there are so many.
    fn wait_for(&self, number: usize, args: &[&str]) -> Vec<Value> {
        let begun = Instant::now();
        loop {
            let list = self.dead(&[&["list", "--json"], args].concat()).json();
            let list = list.as_array().unwrap();
            if list.len() == number {
                return list.clone();
            }
            assert!(begun.elapsed() < Duration::from_secs(30), "{list:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

fn partner() -> Mock {
    let scenario = Scenario::parse(
        "version = 1\n\
         [[route]]\nname = \"bad\"\npath = \"/bad\"\nscript = \"422 text=\\\"no\\\" x*\"\n\
         [[route]]\nname = \"mend\"\npath = \"/mend\"\nscript = \"400 x3, 201 create x*\"\n",
    )
    .unwrap();
    Mock::start_blocking_with(scenario, Options::default()).unwrap()
}

#[test]
fn letters_are_listed_shown_replayed_and_discarded() {
    let mock = partner();
    let gateway = Served::start(&mock.url());
    assert_eq!(gateway.dead(&["list"]).out, "no dead letters\n");
    for _ in 0..3 {
        gateway.post("acme", "/mend");
    }
    gateway.wait_for(3, &["--partner", "acme"]);
    gateway.post("other", "/bad");
    let bad = gateway.wait_for(1, &["--partner", "other", "--reason", "permanent"]);
    let id = bad[0]["id"].as_str().unwrap();

    let table = gateway.dead(&["list"]).out;
    assert_eq!(table.lines().count(), 5, "{table}");
    assert!(table.lines().next().unwrap().starts_with("ID "), "{table}");
    let line = table.lines().find(|line| line.contains(id)).unwrap();
    for word in ["other", "permanent", "ours", "yes", " 1 "] {
        assert!(line.contains(word), "{line}");
    }
    let few = gateway.dead(&["list", "--limit", "2"]);
    assert_eq!(few.out.lines().count(), 3, "{few:?}");
    assert!(few.err.contains("more than 2"), "{few:?}");

    let shown = gateway.dead(&["show", id]).out;
    for word in [id, "other", "/bad", "History", "422", "permanent"] {
        assert!(shown.contains(word), "{shown}");
    }

    // Without a terminal nobody can say yes.
    let all = ["replay", "--all", "--partner", "acme"];
    let refused = gateway.dead(&all);
    assert_eq!(refused.code, 64, "{refused:?}");
    assert!(refused.err.contains("3 dead letters of acme") && refused.err.contains("--yes"));
    let replayed = gateway.dead(&[&all[..], &["--yes"]].concat());
    assert_eq!(replayed.code, 0, "{replayed:?}");
    assert!(
        replayed.out.ends_with("3 dead letters replayed\n"),
        "{replayed:?}"
    );
    gateway.wait_for(0, &["--partner", "acme"]);

    assert_eq!(
        gateway.dead(&["discard", id]).out,
        format!("{id} discarded\n")
    );
    let gone = gateway.wait_for(1, &["--partner", "other", "--reason", "discarded"]);
    assert_eq!(gone[0]["reason"], "discarded");
    let rest = gateway.dead(&["list", "--partner", "other"]);
    assert_eq!(rest.out, "no dead letters\n", "{rest:?}");
    assert!(rest.err.contains("1 discarded letter hidden"), "{rest:?}");

    // What was thrown away stays so: not chosen by --all, and refused by its id.
    let all = gateway.dead(&["replay", "--all", "--partner", "other", "--yes"]);
    assert_eq!(
        (all.code, all.out.as_str()),
        (0, "no dead letters replayed\n"),
        "{all:?}"
    );
    let again = gateway.dead(&["replay", id]);
    assert_eq!((again.code, again.out.as_str()), (1, ""), "{again:?}");
    assert!(again.err.contains("The message was discarded"), "{again:?}");
    let wanted = [
        "replay",
        "--all",
        "--partner",
        "other",
        "--reason",
        "discarded",
        "--yes",
    ];
    let wanted = gateway.dead(&wanted);
    assert_eq!(wanted.code, 64, "{wanted:?}");
    assert!(wanted.err.contains("ended for good"), "{wanted:?}");

    let nobody = gateway.dead(&["list", "--partner", "acne"]);
    assert_eq!((nobody.code, nobody.out.as_str()), (1, ""), "{nobody:?}");
    assert!(nobody.err.contains("acne"), "{nobody:?}");
}

/// Of many, each refusal is told and counted, and the rest goes on.
#[test]
fn refusals_among_many_are_counted() {
    let letter = |id: &str, processed: &str| {
        format!("{{\\\"id\\\":\\\"{id}\\\",\\\"processed\\\":\\\"{processed}\\\"}}")
    };
    let list = [
        letter("a", "no"),
        letter("b", "maybe"),
        letter("c", "yes"),
        letter("d", "no"),
    ];
    let problem = |title: &str| format!("409 json={{\\\"title\\\":\\\"{title}\\\"}} x*");
    let routes = [
        (
            "list",
            "/v1/messages",
            format!("200 json={{\\\"messages\\\":[{}]}} x*", list.join(",")),
        ),
        ("b", "/v1/messages/b/replay", problem("Too late")),
        ("c", "/v1/messages/c/replay", problem("Thrown away")),
        (
            "rest",
            "/v1/messages/{id}/replay",
            format!("202 json={} x*", letter("x", "no")),
        ),
    ];
    let mut text = "version = 1\n".to_owned();
    for (name, path, script) in routes {
        text +=
            &format!("[[route]]\nname = \"{name}\"\npath = \"{path}\"\nscript = \"{script}\"\n");
    }
    let scenario = Scenario::parse(&text).unwrap();
    let mock = Mock::start_blocking_with(scenario, Options::default()).unwrap();
    let url = mock.url();
    let all = [
        "dead",
        "--url",
        &url,
        "replay",
        "--all",
        "--partner",
        "acme",
    ];
    let asked = ressac(&all);
    assert!(
        asked
            .err
            .contains("4 dead letters of acme, of which 2 may have arrived"),
        "{asked:?}"
    );
    let ran = ressac(&[&all[..], &["--yes"]].concat());
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(
        ran.out.ends_with("2 dead letters replayed, 2 refused\n"),
        "{ran:?}"
    );
    assert!(
        ran.err.contains("b: Too late") && ran.err.contains("c: Thrown away"),
        "{ran:?}"
    );
}

#[test]
fn a_refusal_shows_what_the_gateway_says() {
    let mock = partner();
    let gateway = Served::start(&mock.url());
    const ID: &str = "01a22c1f-3a14-75ac-8c36-a4999a6b5428";
    for verb in ["show", "replay", "discard"] {
        let ran = gateway.dead(&[verb, ID]);
        assert_eq!((ran.code, ran.out.as_str()), (1, ""), "{ran:?}");
        assert!(
            ran.err.contains("No such message: no message has this id"),
            "{ran:?}"
        );
    }
    let mixed = gateway.dead(&["replay", ID, "--partner", "acme"]);
    assert_eq!(mixed.code, 64, "{mixed:?}");
}

#[test]
fn a_gateway_that_is_not_there_is_said_clearly() {
    // A free port could be taken by a test beside this one; nobody listens on the first.
    let url = "http://127.0.0.1:1";
    let id = "01a22c1f-3a14-75ac-8c36-a4999a6b5428";
    for args in [
        &["list"][..],
        &["show", id],
        &["replay", id],
        &["discard", id],
    ] {
        let ran = ressac(&[&["dead", "--url", url], args].concat());
        assert_eq!((ran.code, ran.out.as_str()), (1, ""), "{ran:?}");
        assert!(ran.err.contains("cannot be reached"), "{ran:?}");
        assert!(ran.err.contains("is `ressac serve` running?"), "{ran:?}");
    }
}

#[test]
fn something_else_than_a_gateway_is_said_clearly() {
    for (script, word) in [
        ("200 text=\\\"hi\\\" x*", "not as a gateway"),
        ("200 json={} x*", "not as a gateway"),
        ("500 x*", "answers 500"),
    ] {
        let text = format!(
            "version = 1\n[[route]]\nname = \"r\"\npath = \"/{{rest...}}\"\nscript = \"{script}\"\n"
        );
        let scenario = Scenario::parse(&text).unwrap();
        let mock = Mock::start_blocking_with(scenario, Options::default()).unwrap();
        let id = "01a22c1f-3a14-75ac-8c36-a4999a6b5428";
        for args in [&["list"][..], &["show", id], &["discard", id]] {
            let ran = ressac(&[&["dead", "--url", &mock.url()], args].concat());
            assert_eq!((ran.code, ran.out.as_str()), (1, ""), "{ran:?}");
            assert!(ran.err.contains(word), "{ran:?}");
        }
    }
}

/// A cursor that never ends would be followed for ever.
#[test]
fn a_list_ends_where_it_must() {
    let text = "version = 1\n[[route]]\nname = \"r\"\npath = \"/{rest...}\"\n\
                script = \"200 json={\\\"messages\\\":[],\\\"next\\\":\\\"a&b\\\"} x*\"\n";
    let scenario = Scenario::parse(text).unwrap();
    let mock = Mock::start_blocking_with(scenario, Options::default()).unwrap();
    let ran = ressac(&["dead", "list", "--url", &mock.url()]);
    assert_eq!(
        (ran.code, ran.out.as_str()),
        (0, "no dead letters\n"),
        "{ran:?}"
    );
    let targets: Vec<_> = mock
        .journal()
        .into_iter()
        .map(|e| e.target)
        .filter(|t| !t.is_empty())
        .collect();
    assert_eq!(
        targets,
        [
            "/v1/messages?state=dead&limit=101",
            "/v1/messages?state=dead&limit=101&cursor=a%26b"
        ]
    );
}

#[test]
fn what_is_no_id_is_said_in_plain_words() {
    let ran = ressac(&["dead", "show", "nonsense"]);
    assert_eq!(ran.code, 64, "{ran:?}");
    assert!(
        ran.err
            .contains("no message's id; `ressac dead list` shows them"),
        "{ran:?}"
    );
}
