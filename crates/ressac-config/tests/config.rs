//! What a configuration means once it is read.

#![allow(clippy::unwrap_used)]

use std::path::PathBuf;
use std::time::Duration;

use ressac_config::{
    Addresses, Config, Environment, HttpVersion, NamedPolicy, Origin, StoreConfig, lints,
};
use ressac_policy::{CallWindow, Mode, Policy, Ratio};

fn parse(text: &str) -> Config {
    Config::parse("t.toml", text, &Environment::of([])).unwrap()
}

fn codes(text: &str) -> Vec<&'static str> {
    let error = Config::parse("t.toml", text, &Environment::of([])).unwrap_err();
    error.diagnostics().iter().map(|d| d.code()).collect()
}

/// The file that the introduction shows.
const EXAMPLE: &str = r#"
[policy.payments]
retries = 5
base = "500ms"
cap = "30s"
jitter = "full"
window = "15m"
attempt_timeout = "10s"
retry_after = { max = "5m", spread = 1.0, over_max = "clamp" }
budget = { ratio = 0.1, window = "10s", reserve = 10, trickle = "0.1/s" }
limit = { rate = "50/s", concurrency = 8 }

[policy.payments.breaker]
failure_rate = 0.5
min_calls = 20
window = "10s"
open = "5s"
open_max = "60s"
probes = 3

[partner.acme]
url = "https://api.acme.example"
policy = "payments"
idempotency = { header = "Idempotency-Key" }

[gateway]                                  # all optional: these are the defaults
listen = "127.0.0.1:7070"
store = "sqlite:ressac.db"                 # or "postgres://…" for many instances
max_body = "10MB"
"#;

#[test]
fn the_example_is_read_and_has_no_bad_habit() {
    let config = parse(EXAMPLE);
    let acme = config.partner("acme").unwrap();
    let policy = config.policy_of(acme).policy();
    assert_eq!(policy.mode, Mode::Durable);
    assert_eq!(
        (policy.retries, policy.window),
        (5, Some(Duration::from_secs(900)))
    );
    assert_eq!(policy.limit.rate.unwrap().per_second_f64(), 50.0);
    assert_eq!(policy.retry_after.max, Some(Duration::from_secs(300)));
    let key = acme.idempotency.as_ref().unwrap();
    assert_eq!((key.ttl, key.quoted), (Duration::from_secs(86_400), false));
    assert_eq!(config.gateway(), Config::default().gateway());
    assert!(lints(&config).is_empty());
}

#[test]
fn an_empty_file_has_the_built_in_policies() {
    let config = parse("");
    assert_eq!(config.policy("sync").unwrap().policy(), &Policy::sync());
    assert_eq!(
        config.policy("durable").unwrap().policy(),
        &Policy::durable()
    );
    assert_eq!(config.policies().count(), 2);
}

#[test]
fn every_off_switches_off() {
    let config = parse(
        r#"
        [policy.bare]
        window = "off"
        budget = "off"
        breaker = "off"
        limit = { rate = "off", concurrency = "off" }
        suspend_after = "off"
        [policy.half]
        budget = { trickle = "off" }
        breaker = { failure_rate = "off", slow_rate = "off", consecutive = "off", window = 100 }
        "#,
    );
    let bare = config.policy("bare").unwrap().policy();
    assert_eq!(
        (bare.window, bare.budget, bare.breaker, bare.suspend_after),
        (None, None, None, None)
    );
    assert_eq!((bare.limit.rate, bare.limit.concurrency), (None, None));
    let half = config.policy("half").unwrap().policy();
    assert_eq!(half.budget.unwrap().trickle, None);
    let breaker = half.breaker.unwrap();
    assert_eq!(
        (breaker.failure_rate, breaker.slow_rate, breaker.consecutive),
        (None, None, None)
    );
    assert_eq!(breaker.window, CallWindow::Count(100));
}

#[test]
fn cf_1_nobody_else_can_reach_the_gateway() {
    for address in [
        "0.0.0.0:7070",
        "[::]:7070",
        "192.168.1.1:80",
        "[::ffff:10.0.0.1]:80",
    ] {
        assert_eq!(
            codes(&format!("[gateway]\nlisten = \"{address}\"")),
            ["bad-value"],
            "{address}"
        );
    }
    for address in [
        "127.0.0.1:0",
        "127.8.8.8:80",
        "[::1]:7070",
        "[::ffff:127.0.0.1]:80",
    ] {
        parse(&format!("[gateway]\nlisten = \"{address}\""));
    }
}

const SECRETS: &str = r#"
[partner.acme]
url = "https://api.acme.example"
headers = { Authorization = "env:TOKEN", X-Plain = "environment" }
"#;

#[test]
fn cf_2_a_reference_resolves_or_is_an_error_with_its_line() {
    let environment = Environment::of([("TOKEN", "Bearer 1")]);
    let config = Config::parse("t.toml", SECRETS, &environment).unwrap();
    let headers = &config.partner("acme").unwrap().headers;
    assert_eq!(headers[0].1.expose(), "Bearer 1");
    assert_eq!(headers[1].1.expose(), "environment");
    // Nothing that is printed holds it.
    assert!(!format!("{config:?}{environment:?}").contains("Bearer"));

    let error = Config::parse("t.toml", SECRETS, &Environment::of([])).unwrap_err();
    assert_eq!(error.diagnostics()[0].location(), Some(("t.toml", 4)));
    assert_eq!(error.diagnostics()[0].code(), "unresolved");
    for empty in ["", "Bearer\n1"] {
        assert!(Config::parse("t.toml", SECRETS, &Environment::of([("TOKEN", empty)])).is_err());
    }
    // Whoever wants the policies only need not have the secrets.
    let config = Config::parse("t.toml", SECRETS, &Environment::ignored()).unwrap();
    assert_eq!(config.partner("acme").unwrap().headers.len(), 1);
}

#[test]
fn cf_2_files_are_found_from_the_folder_of_the_configuration() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("token"), "Bearer 2\n").unwrap();
    std::fs::write(at("ca.pem"), "pem").unwrap();
    let text = "[partner.acme]\nurl = \"https://a.example\"\nca_file = \"ca.pem\"\n\
                headers = { Authorization = \"file:token\" }\n\
                [gateway]\nstore = \"sqlite:data/r.db\"\n";
    std::fs::write(at("ressac.toml"), text).unwrap();
    let config = Config::load(&[at("ressac.toml")]).unwrap();
    let acme = config.partner("acme").unwrap();
    assert_eq!(acme.headers[0].1.expose(), "Bearer 2");
    assert_eq!(acme.ca_file, Some(at("ca.pem")));
    assert_eq!(config.gateway().store, StoreConfig::Sqlite(at("data/r.db")));
    // A file that is no file, or too large, is an error and no hang.
    std::fs::write(at("ressac.toml"), text.replace("file:token", "file:.")).unwrap();
    assert!(Config::load(&[at("ressac.toml")]).is_err());
    std::fs::write(at("token"), "x".repeat(70_000)).unwrap();
    std::fs::write(at("ressac.toml"), text).unwrap();
    assert!(Config::load(&[at("ressac.toml")]).is_err());
}

#[test]
fn a_partner_is_spoken_to_in_the_version_it_was_given() {
    let said = |line: &str| {
        let config = parse(&format!("[partner.a]\nurl = \"http://a\"\n{line}"));
        config.partner("a").unwrap().http_version
    };
    assert_eq!(said(""), HttpVersion::Auto);
    assert_eq!(said("http_version = \"auto\""), HttpVersion::Auto);
    assert_eq!(said("http_version = \"1.1\""), HttpVersion::Http1);
    assert_eq!(said("http_version = \"2\""), HttpVersion::Http2);

    let wrong = "[partner.a]\nurl = \"http://a\"\nhttp_version = \"http2\"";
    let error = Config::parse("t.toml", wrong, &Environment::of([])).unwrap_err();
    let [only] = error.diagnostics() else {
        panic!("{error}");
    };
    assert_eq!(only.location(), Some(("t.toml", 3)));
    assert!(error.to_string().contains("did you mean \"2\"?"), "{error}");
}

#[test]
fn cf_4_what_is_not_honoured_is_refused() {
    // An inherited setting of the wrong place, a policy that the gateway cannot follow, no unknown
    // key anywhere.
    for text in [
        "[partner.a]\nurl = \"http://a\"\nwindow = \"5m\"",
        "[partner.a]\nurl = \"http://a\"\npolicy = \"sync\"",
        "[gateway]\ntoken = \"x\"",
        "[policy.p]\nbreaker = { reset = \"5s\" }",
        "[server]\nlisten = \"x\"",
        "[policy.p]\nretries = 1000001",
    ] {
        assert_eq!(codes(text).len(), 1, "{text}");
    }
    assert_eq!(
        parse("[policy.p]\nretries = 40")
            .policy("p")
            .unwrap()
            .policy()
            .retries,
        40
    );
}

#[test]
fn cf_5_retries_are_retries() {
    let error = Config::parse(
        "t.toml",
        "[policy.p]\nmax_attempts = 3",
        &Environment::of([]),
    )
    .unwrap_err();
    assert!(error.to_string().contains("one less than the attempts"));
}

const FAMILY: &str = r#"
[policy.grandparent]
mode = "durable"
retries = 7
budget = { ratio = 0.2, reserve = 20 }
limit = { rate = "5/s" }

[policy.parent]
extends = "grandparent"
base = "3s"
budget = { reserve = 30 }

[policy.child]
extends = "parent"
retries = 9

[policy.frugal]
extends = "parent"
budget = "off"

[policy.again]
extends = "frugal"
budget = { ratio = 0.3 }
"#;

#[test]
fn cf_6_fields_merge_one_by_one_and_say_whose_value_won() {
    let config = parse(FAMILY);
    let child = config.policy("child").unwrap();
    let policy = child.policy();
    assert_eq!((policy.mode, policy.retries), (Mode::Durable, 9));
    assert_eq!(policy.backoff.base, Duration::from_secs(3));
    assert_eq!(policy.backoff.cap, Policy::durable().backoff.cap);
    let budget = policy.budget.unwrap();
    assert_eq!(
        (budget.ratio, budget.reserve),
        (Ratio::from_f64(0.2).unwrap(), 30)
    );

    let who = |field: &str| match child.origin(field) {
        Origin::Policy { policy, line, .. } => (policy, line),
        Origin::BuiltIn { policy } => (policy.to_owned(), 0),
    };
    assert_eq!(who("retries"), ("child".into(), 15));
    assert_eq!(who("base"), ("parent".into(), 10));
    assert_eq!(who("budget.reserve"), ("parent".into(), 11));
    assert_eq!(who("budget.ratio"), ("grandparent".into(), 5));
    assert_eq!(who("cap"), ("durable".into(), 0));
}

#[test]
fn cf_6_what_was_switched_off_comes_back_with_the_defaults() {
    let config = parse(FAMILY);
    let frugal = config.policy("frugal").unwrap();
    assert_eq!(frugal.policy().budget, None);
    let off = frugal
        .fields()
        .into_iter()
        .find(|field| field.name == "budget.ratio")
        .unwrap();
    assert_eq!(off.value, "off");
    assert!(matches!(off.origin, Origin::Policy { policy, .. } if policy == "frugal"));
    let again = config.policy("again").unwrap();
    let budget = again.policy().budget.unwrap();
    assert_eq!(
        (budget.ratio, budget.reserve),
        (Ratio::from_f64(0.3).unwrap(), 10)
    );
    assert_eq!(
        again.origin("budget.reserve"),
        Origin::BuiltIn { policy: "durable" }
    );
}

#[test]
fn the_mode_comes_from_the_policy_or_from_its_use() {
    let config = parse(
        "[policy.free]\n[policy.used]\n[policy.said]\nmode = \"durable\"\n[policy.heir]\nextends \
         = \"said\"\n\
         [policy.own]\nextends = \"said\"\nmode = \"sync\"\n\
         [partner.a]\nurl = \"http://a\"\npolicy = \"used\"\n",
    );
    let mode = |name: &str| config.policy(name).unwrap().policy().mode;
    assert_eq!(mode("free"), Mode::Synchronous);
    assert_eq!(mode("used"), Mode::Durable);
    assert_eq!(mode("heir"), Mode::Durable);
    assert_eq!(mode("own"), Mode::Synchronous);
    // Asked for by a caller who waits.
    let used = config.policy_as("used", Mode::Synchronous).unwrap();
    assert_eq!(used.policy(), &Policy::sync());
    assert_eq!(
        config
            .policy_as("said", Mode::Synchronous)
            .unwrap()
            .policy()
            .mode,
        Mode::Durable
    );
    assert!(config.policy_as("nobody", Mode::Synchronous).is_err());
}

#[test]
fn several_files_are_one_and_a_name_stands_in_one_of_them() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| -> PathBuf {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let a = write("a.toml", "[policy.p]\nretries = 3\nmode = \"durable\"\n");
    let b = write(
        "b.toml",
        "[partner.acme]\nurl = \"http://a\"\npolicy = \"p\"\n",
    );
    let config = Config::load(&[&a, &b]).unwrap();
    assert_eq!(
        config
            .policy_of(config.partner("acme").unwrap())
            .policy()
            .retries,
        3
    );

    let c = write(
        "c.toml",
        "[policy.p]\nretries = 4\n[gateway]\n[partner.acme]\nurl = \"http://b\"\n",
    );
    let d = write("d.toml", "[gateway]\naddresses = \"public\"\n");
    let error = Config::load(&[&a, &b, &c, &d]).unwrap_err();
    assert_eq!(error.diagnostics().len(), 3, "{error}");
    let text = error.diagnostics()[0].render(false);
    assert!(
        text.contains("a.toml:1:9") && text.contains("c.toml:1:9"),
        "{text}"
    );
    assert_eq!(
        Config::load(&[&a, &d]).unwrap().gateway().addresses,
        Addresses::Public
    );

    let missing = folder.path().join("missing.toml");
    let huge = write("huge.toml", &"#".repeat(2 << 20));
    let binary = folder.path().join("binary.toml");
    std::fs::write(&binary, [0xff, 0xfe]).unwrap();
    let error = Config::load(&[&missing, &huge, &binary]).unwrap_err();
    assert_eq!(error.diagnostics().len(), 3, "{error}");
}

#[test]
fn a_policy_by_file_and_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ressac.toml");
    // Its secret is not there, and not needed.
    std::fs::write(&path, format!("{SECRETS}\n[policy.p]\nretries = 2\n")).unwrap();
    let spec = |name: &str| format!("{}:{name}", path.display());
    let named = Config::policy_from(&spec("p")).unwrap();
    assert_eq!((named.name(), named.policy().retries), ("p", 2));
    assert_eq!(named.policy().mode, Mode::Synchronous);
    assert_eq!(
        Config::policy_from(&spec("durable")).unwrap(),
        NamedPolicy::built_in(Mode::Durable)
    );
    for wrong in [
        spec("q"),
        "p".into(),
        ":p".into(),
        String::new(),
        "nowhere.toml:p".into(),
    ] {
        assert!(Config::policy_from(&wrong).is_err(), "{wrong}");
    }
}

#[test]
fn wd_2_zero_retries_is_one_attempt_and_a_window_of_zero_is_refused() {
    assert_eq!(
        parse("[policy.p]\nretries = 0")
            .policy("p")
            .unwrap()
            .policy()
            .retries,
        0
    );
    assert_eq!(codes("[policy.p]\nwindow = \"0s\""), ["contradiction"]);
}
