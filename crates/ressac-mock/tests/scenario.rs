//! Scenario files: both forms mean the same, and every mistake has a place and a fix.
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use proptest::prelude::*;
use ressac_mock::{OutageAction, OutageClock, QuotaKind, Scenario, Scope, Script};

const WHOLE: &str = r#"
version = 1
seed = 42
outage = [{ from = "2s", to = "7s", clock = "first-request", routes = ["pay"], do = "503 ra=auto" }]
idempotency = { header = "X-Key", required = ["pay"], fingerprint = ["method", "body"], lease = "10s", ttl = "1h", max_keys = 50 }
[[listener]]
name = "plain"
speak = ["http/1.1"]
[[listener]]
name = "second"
[[route]]
name = "pay"
method = ["POST"]
path = "/{token}/v1/payments"
scope = "token"
script = "503 ra=2 x2, 201 create"
resource = { id = "pay_{n}" }
quota = { limit = 20, per = "1s", kind = "gcra", burst = 5, scope = "token", over = "503 ra=auto", announce = true }
[[route]]
name = "words"
path = "/words"
step = [{ status = 200, delay_body = "1s", drip = "3/20ms", drip_head = "1/5ms", body = 10, chunked = true, nolast = true },
        { status = 201, interim = 103, create = true, end = "rst@interim" },
        { garbage = "64" }, { status = 503, early = true, end = "close" }, { status = 200, expect = "late:2s", race = "rst" },
        { status = 200, until_close = true }, { status = 200, idle = "1s" }, { status = 200, idle_rst = "1s" },
        { refused_stream = true }, { rst_stream = "CANCEL" }, { content_length = 9, end_stream = true },
        { goaway = "covers", code = "INTERNAL_ERROR" }, { badchunk = true }, { pass = true, end = "quiet-close" },
        { pick = "0.5:503, else:200", times = "*" }]
[[route]]
name = "cut"
listener = "second"
path = "/{token}/cut/{rest...}"
step = [{ status = 200, content_length = 100, body = { size = 100 }, end = "rst@body+10", times = 2 },
        { status = 429, retry_after = { date = "+3s", form = "rfc850" } },
        { status = 409, json = { a = [1, "x"] }, headers = [["X-A", "1"], ["X-A", "2"]], retry_after = 1 },
        { delay_head = "*", create = "slow:2s", barrier = { arrivals = 3, timeout = "1s" } },
        { status = 503, retry_after = "soon", date = "none", end = "close", times = "*" }]
"#;

#[test]
fn a_whole_file() {
    let s = Scenario::parse(WHOLE).unwrap();
    assert_eq!((s.seed, s.listeners.len(), s.routes.len()), (42, 2, 3));
    let quota = s.routes[0].quota.as_ref().unwrap();
    assert_eq!(
        (quota.limit, quota.kind),
        (20, QuotaKind::Gcra { burst: 5 })
    );
    let words: Script = "200 body=10 gap=1s drip=3/20ms drip-head=1/5ms chunked nolast, \
        201 interim=103 create rst@interim, garbage=64, 503 early close, \
        200 expect=late:2s race=rst, 200 until-close, 200 idle=1s, 200 idle-rst=1s, \
        refused-stream, rst-stream=CANCEL, cl=9 end-stream, goaway=covers code=INTERNAL_ERROR, \
        badchunk, pass quiet-close, pick(0.5:503, else:200) x*"
        .parse()
        .unwrap();
    assert_eq!(s.routes[1].script, words);
    let o = &s.outages[0];
    assert_eq!(
        (o.from, o.to),
        (Duration::from_secs(2), Duration::from_secs(7))
    );
    assert_eq!(o.clock, OutageClock::FirstRequest);
    assert!(matches!(o.action, OutageAction::Reply(_)));
    let store = s.idempotency.unwrap();
    assert_eq!((store.header.as_str(), store.max_keys), ("X-Key", 50));
    assert_eq!(
        (s.routes[0].scope, s.routes[2].scope),
        (Scope::Token, Scope::Global)
    );
    assert_eq!(s.routes[2].listener.as_deref(), Some("second"));
    let short: Script = "200 body=100 cl=100 rst@body+10 x2, 429 ra=@850+3s, \
        409 json={\"a\":[1,\"x\"]} h=X-A:1 h=X-A:2 ra=1, hold=* create=slow:2s barrier=3:1s, \
        503 ra=\"soon\" date=none close x*"
        .parse()
        .unwrap();
    assert_eq!(s.routes[2].script, short);
}

#[test]
fn mistakes_have_line_column_and_fix() {
    let route = "version = 1\n[[route]]\nname = \"a\"\npath = \"/a\"\n";
    for (text, line, column, part) in [
        ("".to_owned(), 1, 1, "version = 1"),
        ("version = 2".to_owned(), 1, 11, "write `version = 1`"),
        ("version = 1\nversion = 1".to_owned(), 2, 1, "not TOML"),
        (
            "version = 1\n  sed = 3".to_owned(),
            2,
            3,
            "did you mean `seed`",
        ),
        ("version = 1\nseed = -3".to_owned(), 2, 8, "0 and 2^64"),
        ("version = 1\nseed = \"3\"".to_owned(), 2, 8, "is a string"),
        (
            format!("{route}script = \"503 x2, 20\""),
            5,
            19,
            "not a status",
        ),
        (
            format!("{route}script = '503 hodl=1s'"),
            5,
            15,
            "did you mean `hold`",
        ),
        (
            format!("{route}script = \"503 ra=auto\""),
            5,
            10,
            "nothing to count to",
        ),
        (
            format!("{route}script = \"200 file=no/such/file\""),
            5,
            10,
            "no/such/file cannot be read",
        ),
        (
            format!("{route}quota = {{}}\nscript = \"200\""),
            5,
            9,
            "needs `limit` and `per`",
        ),
        (
            format!("{route}quota = {{ limit = 0, per = \"1s\" }}\nscript = \"200\""),
            5,
            19,
            "write 1 to 100000",
        ),
        (
            format!("{route}quota = {{ limit = 1, per = \"1s\", burst = 2 }}\nscript = \"200\""),
            5,
            42,
            "belongs to gcra",
        ),
        (
            format!(
                "{route}quota = {{ limit = 1, per = \"1s\", over = \"429 create\" }}\nscript = \"200\""
            ),
            5,
            41,
            "a quota has no effects",
        ),
        (route.to_owned(), 2, 1, "without a script"),
        (
            format!("{route}script = \"200\"\nscope = \"token\""),
            6,
            9,
            "put `{token}`",
        ),
        (
            format!("{route}script = \"200\"\nscope = \"tokens\""),
            6,
            9,
            "write global",
        ),
        (
            format!("{route}script = \"200\"\nmethod = [\"post\"]"),
            6,
            10,
            "capitals",
        ),
        (
            format!("{route}script = \"200\"\nlistener = \"other\""),
            6,
            12,
            "no listener",
        ),
        (
            format!("{route}step = [{{ status = 99 }}]"),
            5,
            20,
            "200 to 999",
        ),
        (
            format!("{route}step = [{{ statsu = 200 }}]"),
            5,
            11,
            "did you mean `status`",
        ),
        (
            format!("{route}step = [{{ status = 200, drip = 1 }}]"),
            5,
            32,
            "is no drip",
        ),
        (
            format!("{route}step = [{{ status = 204, body = 3 }}]"),
            5,
            9,
            "has no body",
        ),
        (
            format!("{route}step = [{{ end = \"fin@interim\" }}]"),
            5,
            9,
            "there is none",
        ),
        (
            "version = 1\n[[listener]]\nname = \"x\"\ntls = { cert = \"old\" }".to_owned(),
            4,
            16,
            "write one of valid, expired",
        ),
        (
            "version = 1\n[[listener]]\nname = \"x\"\naccept = \"rst x2\"".to_owned(),
            4,
            10,
            "like `ok x*`",
        ),
        (
            "version = 1\n[[listener]]\nname = \"x\"\naccept = \"rst@hello x*\"".to_owned(),
            4,
            10,
            "no ClientHello",
        ),
        (
            "version = 1\n[[listener]]\nname = \"x\"\ntcp = { to = \"a:1\", down = true }"
                .to_owned(),
            4,
            7,
            "faults without an end",
        ),
        (
            "version = 1\noutage = [{ from = \"2s\", to = \"1s\", do = \"503\" }]".to_owned(),
            2,
            31,
            "ends before",
        ),
        (
            "version = 1\noutage = [{ to = \"1s\", do = \"503 x2\" }]".to_owned(),
            2,
            29,
            "remove `xN`",
        ),
        (
            "version = 1\noutage = [{ to = \"1s\", do = \"503\", routes = [\"x\"] }]".to_owned(),
            2,
            45,
            "no route",
        ),
        (
            "version = 1\nidempotency = { max_keys = 0 }".to_owned(),
            2,
            28,
            "1 to 1000000",
        ),
        (
            "version = 1\nidempotency = { tll = \"1s\" }".to_owned(),
            2,
            17,
            "did you mean `ttl`",
        ),
    ] {
        let err = Scenario::parse(&text).expect_err(&text);
        assert!(err.to_string().contains(part), "{text}\n{err}");
        assert_eq!((err.line(), err.column()), (line, column), "{text}\n{err}");
        assert!(!err.fix().is_empty());
    }
}

#[test]
fn files_name_themselves() {
    let dir = std::env::temp_dir().join(format!("ressac-mock-scenario-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let path = dir.join("bad.toml");
    std::fs::write(&path, "version = 1\nsede = 1\n").unwrap();
    let err = Scenario::load(&path).unwrap_err();
    assert!(
        err.to_string()
            .starts_with(&format!("{}:2:1: ", path.display())),
        "{err}"
    );
    std::fs::write(&path, WHOLE).unwrap();
    assert!(Scenario::load(&path).is_ok());
    std::fs::remove_dir_all(&dir).unwrap();
    let err = Scenario::load(&path).unwrap_err();
    assert_eq!((err.line(), err.file()), (0, Some(path.as_path())));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_file_cut_or_changed_anywhere_is_read_or_refused(
        at in 0..WHOLE.len(),
        len in 0usize..20,
        put in "[a-z0-9=\"{}\\[\\],.\n*@-]{0,6}"
    ) {
        let mut text = WHOLE.to_owned();
        let end = (at + len).min(text.len());
        text.replace_range(at..end, &put);
        if let Err(e) = Scenario::parse(&text) {
            prop_assert!(e.line() >= 1 && e.line() <= text.lines().count() + 1);
        }
    }
}
