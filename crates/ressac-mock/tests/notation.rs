//! The short notation: what parses, what is refused and where, and that printing loses nothing.
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;
use ressac_mock::{
    Action, Barrier, Body, Create, Cut, DateForm, DateWord, Drip, End, Expect, Framing, Goaway,
    H2Code, Hold, Pick, Point, Reply, RetryAfter, Script, Step, Times,
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
        "200 gap=1s body=10 drip=3/20ms, 200 drip-head=1/5ms, 200 gap=* body=1, 200 gap=1s..2s",
        "200 chunked body=100 nolast, 200 body=100 badchunk, 200 body=50 until-close, 200 chunked",
        "201 create interim=103 rst@interim, 200 interim=103, interim=100 fin@interim",
        "garbage=64, 200",
        "503 early close, 413 early rst@end",
        "200 expect=417, 200 expect=never, 200 expect=late:2s, 401 expect=final, 200 expect=auto",
        "200 quiet-close, 200 idle=1s, 200 idle-rst=20ms, 200 race=fin, 200 barrier=8 race=rst",
        "200 file=reply.json, 200 file=\"a b.json\"",
        "pass x2, 503, pass rst@body+10, hold=1s pass x*",
        "refused-stream, 201 create rst-stream=INTERNAL_ERROR, 200 body=9 rst-stream=CANCEL@body+3",
        "200 rst-stream=NO_ERROR@hdr, 200 cl=100 body=40 end-stream",
        "goaway=below, 201 create goaway=covers code=INTERNAL_ERROR, 200 goaway=graceful",
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
        ("200 cl=5 chunked", 1, "another framing"),
        ("200 chunked until-close", 13, "contradicts"),
        ("204 chunked", 1, "has no body"),
        ("200 interim=101", 5, "no interim status"),
        ("200 fin@interim", 1, "there is none"),
        ("200 garbage=5", 1, "instead of a reply"),
        ("garbage=0", 1, "write 1 to 1M"),
        ("200 early create", 1, "whole request"),
        ("200 early race=fin", 1, "ends the connection"),
        ("200 early expect=never", 1, "asks for one"),
        ("200 expect=maybe", 5, "write auto"),
        ("200 drip=5", 5, "is no drip"),
        ("200 drip=0/1s", 5, "no number of bytes"),
        ("200 race=now", 5, "write fin or rst"),
        ("200 body=5 pass", 1, "upstream's body"),
        ("201 create pass", 1, "effect is the upstream"),
        ("200 rst-stream=CANSEL", 5, "did you mean `CANCEL`"),
        ("200 rst-stream=CANCEL@end", 5, "hdr or body+N"),
        ("200 goaway=never", 5, "below, covers or graceful"),
        ("200 code=CANCEL", 1, "without a `goaway`"),
        ("200 cl=9 body=1 race=fin", 1, "cannot be kept alive"),
        ("200 chunked nolast close", 1, "by itself"),
        ("200 quiet-close=1", 5, "takes no value"),
        ("200 file=", 5, "without a name"),
    ] {
        let err = text.parse::<Script>().expect_err(text);
        assert!(err.to_string().contains(part), "{text}: {err}");
        assert_eq!(err.column(), column, "{text}: {err}");
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

fn end() -> BoxedStrategy<End> {
    let cut = prop_oneof![Just(Cut::Fin), Just(Cut::Rst)];
    let point = prop_oneof![
        Just(Point::Head),
        Just(Point::Req),
        Just(Point::Interim),
        Just(Point::Hdr),
        Just(Point::End),
        any::<u64>().prop_map(Point::Body),
    ];
    let code = (0u32..14).prop_map(H2Code);
    let stream_point = prop_oneof![
        Just(Point::Req),
        Just(Point::Hdr),
        any::<u64>().prop_map(Point::Body)
    ];
    prop_oneof![
        Just(End::Close),
        Just(End::QuietClose),
        Just(End::Stall),
        Just(End::RefusedStream),
        Just(End::EndStream),
        prop_oneof![
            Just(Goaway::Below),
            Just(Goaway::Covers),
            Just(Goaway::Graceful)
        ]
        .prop_map(End::Goaway),
        (cut.clone(), time()).prop_map(|(c, t)| End::Idle(c, t)),
        cut.clone().prop_map(End::Race),
        (code, stream_point).prop_map(|(c, p)| End::RstStream(c, p)),
        (cut, point).prop_map(|(c, p)| End::At(c, p))
    ]
    .boxed()
}

fn framing() -> impl Strategy<Value = Framing> {
    prop_oneof![
        Just(Framing::Chunked),
        Just(Framing::NoLast),
        Just(Framing::BadChunk),
        Just(Framing::UntilClose),
    ]
}

fn drip() -> impl Strategy<Value = Drip> {
    (1u32.., time()).prop_map(|(bytes, every)| Drip { bytes, every })
}

fn expect() -> impl Strategy<Value = Expect> {
    prop_oneof![
        Just(Expect::Auto),
        Just(Expect::Never),
        Just(Expect::Fail),
        Just(Expect::Final),
        time().prop_map(Expect::Late),
    ]
}

/// The rarer words, seldom together.
fn rare() -> BoxedStrategy<Reply> {
    let plain = Reply::default;
    prop_oneof![
        4 => Just(plain()),
        1 => hold().prop_map(move |h| Reply { gap: Some(h), ..plain() }),
        1 => drip().prop_map(move |d| Reply { drip: Some(d), ..plain() }),
        1 => drip().prop_map(move |d| Reply { drip_head: Some(d), ..plain() }),
        1 => framing().prop_map(move |f| Reply { framing: Some(f), ..plain() }),
        1 => (102u16..200).prop_map(move |s| Reply { interim: Some(s), ..plain() }),
        1 => (1u32..=1_048_576).prop_map(move |n| Reply { garbage: Some(n), ..plain() }),
        1 => expect().prop_map(move |e| Reply { expect: Some(e), ..plain() }),
        1 => Just(Reply { early: true, ..plain() }),
        1 => Just(Reply { pass: true, ..plain() }),
        1 => (0u32..14).prop_map(move |c| Reply { code: Some(H2Code(c)), ..plain() }),
    ]
    .boxed()
}

fn hold() -> impl Strategy<Value = Hold> {
    prop_oneof![
        Just(Hold::Forever),
        time().prop_map(Hold::For),
        (time(), 1u64..1_000_000).prop_map(|(a, d)| Hold::Between(a, a + Duration::from_millis(d))),
    ]
}

fn reply() -> BoxedStrategy<Reply> {
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
        rare(),
    )
        .prop_map(|(a, b, mut r)| {
            (r.status, r.headers, r.body, r.retry_after, r.date) = a;
            (r.hold, r.content_length, r.end, r.create, r.barrier) = b;
            r
        })
        .prop_filter("an empty step cannot be written", |r| {
            *r != Reply::default()
        })
        .boxed()
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
                let known = [
                    "whole request",
                    "has no body",
                    "nothing is sent",
                    "ends before",
                    "there is none",
                    "another framing",
                    "instead of a reply",
                    "ends the connection",
                    "asks for one",
                    "the end comes before",
                    "upstream's",
                    "by itself",
                    "without a `goaway`",
                    "cannot be kept alive",
                ];
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
