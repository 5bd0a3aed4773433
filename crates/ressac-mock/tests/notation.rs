//! The short notation: what parses, what is refused and where, and that printing loses nothing.
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;
use ressac_mock::{
    Action, Barrier, Body, Create, Cut, DateForm, DateWord, End, Hold, Pick, Point, Reply,
    RetryAfter, Script, Step, Times,
};

/// Prints and parses again, and must find the same.
fn round(text: &str) -> String {
    let script: Script = text.parse().unwrap_or_else(|e| panic!("{text}: {e}"));
    let printed = script.to_string();
    assert_eq!(
        printed.parse::<Script>().unwrap(),
        script,
        "{text} -> {printed}"
    );
    printed
}

#[test]
fn the_scripts_of_the_manual() {
    for text in [
        "503 ra=2 x2, 201 create",
        "503 x*",
        "rst@req, 200",
        "201 create fin@req",
        "429 date=+10m ra=@+3s, 429 date=-10m ra=@+3s",
        "429 ra=@850+3s, 429 ra=@asc+3s, 429 ra=@-1h",
        "429 ra=\"1, 2\"",
        "200 cl=100 body=100 rst@body+10",
        "503 barrier=100, 200 x*",
        "200 barrier=4:100ms",
        "hold=15s, 200",
        "200 hold=20ms..2s",
        "409 json={\"a\": [1, {\"b\": \"x, y\"}]} ra=1",
        "401 h=WWW-Authenticate:Bearer",
        "503 h=X:\"a b, c\"",
        "200 text=\"a \\\"b\\\", c\\n\"",
        "pick(0.2:503 ra=1, 0.1:rst@req, else:200) x*",
        "201 create=slow:2s, 201 create=abandon",
        "200 close, stall, 200 rst@end",
    ] {
        round(text);
    }
    assert_eq!(
        round("  503   ra=2  x2 ,201 create x1 "),
        "503 ra=2 x2, 201 create"
    );
    assert_eq!(round("200 body=1M hold=3600s"), "200 body=1048576 hold=1h");
    assert_eq!(round("200 h=\"X: y z\""), "200 h=X:\"y z\"");
}

#[test]
fn mistakes_are_pointed_at_and_named() {
    for (text, column, part) in [
        ("", 1, "empty"),
        ("503,", 5, "empty"),
        ("503, , 200", 5, "empty"),
        ("x3", 1, "empty"),
        ("99", 1, "not a status"),
        ("103", 1, "not a status"),
        ("1000", 1, "not a status"),
        ("200 503", 5, "must come first"),
        ("503 hodl=2s", 5, "did you mean `hold`"),
        ("503 ra", 5, "needs a value"),
        ("503 close=1", 5, "takes no value"),
        ("503 ra=1 ra=2", 10, "contradicts"),
        ("503 close stall", 11, "contradicts"),
        ("503 ra=1.5", 5, "quotes"),
        ("503 ra=@3s", 5, "no sign"),
        ("503 ra=\"a\nb\"", 5, "control character"),
        ("503 hold=2", 5, "not a duration"),
        ("503 hold=2s..1s", 5, "shorter duration first"),
        ("503 hold=99999999999999h", 5, "too long"),
        ("503 x0", 5, "serves nobody"),
        ("503 x*, 200", 1, "never reached"),
        ("503 x9999999999", 5, "too many"),
        ("200 body=65M", 5, "too large"),
        ("200 text=\"a", 10, "never closed"),
        ("200 json={\"a\":1", 10, "never closed"),
        ("200 json={]", 11, "closes"),
        ("200 json={a}", 5, "not JSON"),
        ("204 body=1", 1, "has no body"),
        ("rst@req body=1", 1, "nothing is sent"),
        ("201 create rst@head", 1, "whole request"),
        ("200 body=5 rst@body+6", 1, "ends before"),
        ("503 rst@body+1", 1, "ends before"),
        ("200 rst@middle", 5, "no point"),
        ("200 barrier=0", 5, "1 to 10000"),
        ("200 h=X", 5, "without `:`"),
        ("200 h=X Y:1", 5, "without `:`"),
        ("pick(0.5:200)", 5, "no `else`"),
        ("pick(0.5:200, 0.6:503, else:200)", 15, "pass 1"),
        ("pick(2:200, else:503)", 6, "not a probability"),
        ("pick(else:200, 0.1:503)", 16, "put `else` last"),
        ("pick(0.5:99, else:200)", 10, "not a status"),
        ("pick(else:200) ra=1", 16, "inside the arms"),
    ] {
        let err = text.parse::<Script>().expect_err(text);
        assert!(err.to_string().contains(part), "{text}: {err}");
        assert_eq!(err.column(), column, "{text}: {err}");
    }
}

#[test]
fn words_to_come_are_refused_by_name() {
    for word in [
        "gap=1s",
        "drip=1/1s",
        "drip-head=1/1s",
        "chunked",
        "nolast",
        "badchunk",
        "until-close",
        "interim=103",
        "garbage=64",
        "early",
        "expect=never",
        "quiet-close",
        "idle=1s",
        "idle-rst=1s",
        "race=fin",
        "pass",
        "refused-stream",
        "rst-stream=CANCEL",
        "end-stream",
        "goaway=below",
        "code=NO_ERROR",
        "fin@interim",
        "rst@interim",
        "file=x",
    ] {
        let err = format!("200 {word}").parse::<Script>().unwrap_err();
        let name = word.split('=').next().unwrap();
        assert_eq!(err.message(), format!("`{name}` is not supported yet"));
        assert_eq!(err.column(), 5);
    }
}

fn time() -> impl Strategy<Value = Duration> {
    (0u64..10_000_000_000).prop_map(Duration::from_millis)
}

fn text() -> impl Strategy<Value = String> {
    "[ -~äß²]{0,12}"
}

fn body() -> impl Strategy<Value = Body> {
    prop_oneof![
        (0u64..=64 * 1024 * 1024).prop_map(Body::Pattern),
        any::<String>().prop_map(Body::Text),
        any::<String>().prop_map(|s| Body::Json(serde_json::json!({ "k": [s, 1] }).to_string())),
    ]
}

fn retry_after() -> impl Strategy<Value = RetryAfter> {
    let form = prop_oneof![
        Just(DateForm::Imf),
        Just(DateForm::Rfc850),
        Just(DateForm::Asctime)
    ];
    prop_oneof![
        text().prop_map(RetryAfter::Text),
        "[0-9]{1,29}".prop_map(RetryAfter::Text),
        Just(RetryAfter::Auto),
        (form, -10_000_000_000i64..10_000_000_000)
            .prop_map(|(form, offset_ms)| RetryAfter::Date { form, offset_ms }),
    ]
}

fn end() -> impl Strategy<Value = End> {
    let cut = prop_oneof![Just(Cut::Fin), Just(Cut::Rst)];
    let point = prop_oneof![
        Just(Point::Head),
        Just(Point::Req),
        Just(Point::Hdr),
        Just(Point::End),
        any::<u64>().prop_map(Point::Body),
    ];
    prop_oneof![
        Just(End::Close),
        Just(End::Stall),
        (cut, point).prop_map(|(c, p)| End::At(c, p))
    ]
}

fn hold() -> impl Strategy<Value = Hold> {
    prop_oneof![
        Just(Hold::Forever),
        time().prop_map(Hold::For),
        (time(), 1u64..1_000_000).prop_map(|(a, d)| Hold::Between(a, a + Duration::from_millis(d))),
    ]
}

fn reply() -> impl Strategy<Value = Reply> {
    let create = prop_oneof![
        Just(Create::Now),
        Just(Create::Abandon),
        time().prop_map(Create::Slow),
    ];
    let date = prop_oneof![
        Just(DateWord::Omit),
        (-10_000_000_000i64..10_000_000_000).prop_map(DateWord::Shift),
    ];
    let barrier =
        (1u32..=10_000, time()).prop_map(|(arrivals, timeout)| Barrier { arrivals, timeout });
    let header = (
        "[A-Za-z][A-Za-z0-9-]{0,8}",
        text().prop_map(|t| t.trim().to_owned()),
    );
    (
        (
            of(200u16..=999),
            vec(header, 0..3),
            of(body()),
            of(retry_after()),
            of(date),
        ),
        (
            of(hold()),
            of(any::<u64>()),
            of(end()),
            of(create),
            of(barrier),
        ),
    )
        .prop_map(|(a, b)| {
            let mut r = Reply::default();
            (r.status, r.headers, r.body, r.retry_after, r.date) = a;
            (r.hold, r.content_length, r.end, r.create, r.barrier) = b;
            r
        })
        .prop_filter("an empty step cannot be written", |r| {
            *r != Reply::default()
        })
}

fn step() -> impl Strategy<Value = Step> {
    let pick = (vec((1u32..300, reply()), 0..3), reply()).prop_map(|(arms, other)| {
        let arms = arms
            .into_iter()
            .map(|(p, r)| (f64::from(p) / 1000.0, r))
            .collect();
        Action::Pick(Pick {
            arms,
            otherwise: Box::new(other),
        })
    });
    let action = prop_oneof![4 => reply().prop_map(|r| Action::Reply(Box::new(r))), 1 => pick];
    (action, 1u64..1000).prop_map(|(action, n)| Step {
        action,
        times: Times::N(n),
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn printing_loses_nothing(steps in vec(step(), 1..4), endless in any::<bool>()) {
        let mut script = Script { steps };
        if endless && let Some(last) = script.steps.last_mut() {
            last.times = Times::Forever;
        }
        let printed = script.to_string();
        match printed.parse::<Script>() {
            Ok(again) => prop_assert_eq!(again, script, "{}", printed),
            // The generator makes contradictions too; they are refused as such, and as nothing
            // else.
            Err(e) => {
                let known = ["whole request", "has no body", "nothing is sent", "ends before"];
                let text = e.to_string();
                prop_assert!(known.iter().any(|k| text.contains(k)), "{}: {}", printed, text);
            }
        }
    }

    #[test]
    fn any_text_is_parsed_or_refused_inside_itself(text in ".{0,60}") {
        if let Err(e) = text.parse::<Script>() {
            prop_assert!(e.offset() <= text.len());
        }
    }

    #[test]
    fn words_in_any_order_never_panic(
        text in "(503|200|x2|x\\*|ra=|hold=|json=|h=|text=|pick\\(|else:|0\\.5:|[a-z@+=\"{}()\\[\\],: \\\\]){0,20}"
    ) {
        if let Ok(script) = text.parse::<Script>() {
            prop_assert_eq!(script.to_string().parse::<Script>().unwrap(), script);
        }
    }
}
