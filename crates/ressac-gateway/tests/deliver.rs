//! The gateway against a faulty partner: real sockets, a real SQLite file.
#![allow(missing_docs, clippy::unwrap_used)]

mod kit;

use std::time::Duration;

use kit::{Kit, Options};

#[tokio::test(flavor = "multi_thread")]
async fn a_message_is_accepted_delivered_and_shown_with_its_history() {
    let kit = Kit::start("503 ra=1, 201 create x*", Options::default()).await;
    let (status, accepted) = kit.post(&[("idempotency-key", "k-1")], "UNB+UNOC:3").await;
    assert_eq!(status, 202);
    let id = accepted["id"].as_str().unwrap().to_owned();
    let shown = kit
        .wait_for(&id, "delivered", Duration::from_secs(20))
        .await;
    assert_eq!(shown["attempts"], 2);
    assert_eq!(shown["history"][0]["status"], 503);
    assert_eq!(shown["history"][0]["processed"], "maybe");
    assert_eq!(shown["history"][0]["blame"], "partner");
    assert_eq!(shown["history"][0]["hint_ms"], 1000);
    assert_eq!(shown["history"][1]["outcome"], "success");
    let entries = kit.mock.journal();
    assert_eq!(entries.len(), 2);
    assert!(
        entries
            .iter()
            .all(|e| e.header("idempotency-key") == Some("k-1"))
    );
    assert!(entries.iter().all(|e| &e.body_head[..] == b"UNB+UNOC:3"));
    // Never before the time the partner named.
    assert!(entries[1].t_head - entries[0].t_reply_before.unwrap() >= 1_000_000_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn ik_7_same_key_same_message_and_same_key_other_message() {
    let kit = Kit::start("201 create x*", Options::default()).await;
    let (_, first) = kit.post(&[("idempotency-key", "k-1")], "a").await;
    let (status, again) = kit.post(&[("idempotency-key", "\"k-1\"")], "a").await;
    assert_eq!((status, &again["id"]), (202, &first["id"]));
    let (status, problem) = kit.post(&[("idempotency-key", "k-1")], "b").await;
    assert_eq!(status, 422);
    assert_eq!(problem["type"], "urn:ressac:problem:key-reused");
    let (status, _) = kit
        .post(
            &[("idempotency-key", "k-1"), ("ressac-path", "/other")],
            "a",
        )
        .await;
    assert_eq!(status, 422, "another path is another message");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_partner_that_honours_no_keys_sees_none_and_gets_nothing_twice() {
    let options = Options {
        keyed: false,
        ..Options::default()
    };
    let kit = Kit::start("201 create rst@req x*", options).await;
    let (_, accepted) = kit.post(&[("idempotency-key", "k-1")], "a").await;
    let id = accepted["id"].as_str().unwrap().to_owned();
    let shown = kit.wait_for(&id, "dead", Duration::from_secs(10)).await;
    assert_eq!(
        (&shown["reason"], &shown["processed"]),
        (&"ambiguous".into(), &"maybe".into())
    );
    assert_eq!(shown["blame"], "network");
    let entries = kit.mock.journal();
    assert_eq!(entries.len(), 1, "VR-1, VR-3: not sent again");
    assert_eq!(entries[0].header("idempotency-key"), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_letter_is_replayed_with_its_key_and_keeps_its_history() {
    let kit = Kit::start("422, 201 create x*", Options::default()).await;
    let (_, accepted) = kit.post(&[("idempotency-key", "k-1")], "a").await;
    let id = accepted["id"].as_str().unwrap().to_owned();
    let dead = kit.wait_for(&id, "dead", Duration::from_secs(10)).await;
    assert_eq!(
        (&dead["reason"], &dead["blame"]),
        (&"permanent".into(), &"ours".into())
    );
    let (status, _) = kit
        .request("POST", &format!("/v1/messages/{id}/replay"), &[], "")
        .await;
    assert_eq!(status, 202);
    let shown = kit
        .wait_for(&id, "delivered", Duration::from_secs(10))
        .await;
    assert_eq!(
        (&shown["series"], &shown["attempts"]),
        (&2.into(), &2.into())
    );
    assert_eq!(shown["earlier_series"][0]["reason"], "permanent");
    let keys: Vec<_> = kit.mock.journal().iter().map(|e| e.key.clone()).collect();
    assert_eq!(keys, [Some("k-1".to_owned()), Some("k-1".to_owned())]);
    let (status, problem) = kit
        .request("POST", &format!("/v1/messages/{id}/replay"), &[], "")
        .await;
    assert_eq!(
        (status, &problem["type"]),
        (409, &"urn:ressac:problem:wrong-state".into())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_say_what_is_wrong_and_store_nothing() {
    let options = Options {
        max_body: 64,
        ..Options::default()
    };
    let kit = Kit::start("201 x*", options).await;
    let (status, problem) = kit
        .request("POST", "/v1/partners/nobody/messages", &[], "a")
        .await;
    assert_eq!(
        (status, &problem["type"]),
        (404, &"urn:ressac:problem:unknown-partner".into())
    );
    let (status, problem) = kit.post(&[], &"a".repeat(65)).await;
    assert_eq!(
        (status, &problem["type"]),
        (413, &"urn:ressac:problem:too-large".into())
    );
    let bad = [
        ("ressac-path", "/../x"),
        ("ressac-method", "TRACE"),
        ("ressac-deliverby", "2099-01-01T00:00:00Z"),
        ("ressac-deliver-by", "2020-01-01T00:00:00Z"),
        ("idempotency-key", "a b"),
    ];
    for header in bad {
        let (status, problem) = kit.post(&[header], "a").await;
        assert_eq!(status, 400, "{header:?} {problem}");
        assert!(!problem["detail"].as_str().unwrap().is_empty());
    }
    let (status, _) = kit
        .request(
            "POST",
            "/v1/partners/p/messages",
            &[("origin", "http://evil.example")],
            "a",
        )
        .await;
    assert_eq!(status, 403);
    let (_, page) = kit.request("GET", "/v1/messages", &[], "").await;
    assert_eq!(page["messages"].as_array().unwrap().len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn path_method_and_end_to_end_headers_travel_along() {
    let kit = Kit::start("201 create x*", Options::default()).await;
    let headers = [
        ("ressac-path", "/v1/payments?x=1"),
        ("ressac-method", "PUT"),
        ("content-type", "application/edifact"),
        ("x-trace", "7"),
        ("connection", "x-hop"),
        ("x-hop", "1"),
    ];
    let (status, accepted) = kit.post(&headers, "a").await;
    assert_eq!(status, 202);
    kit.wait_for(
        accepted["id"].as_str().unwrap(),
        "delivered",
        Duration::from_secs(10),
    )
    .await;
    let entry = &kit.mock.journal()[0];
    assert_eq!(
        (entry.method.as_str(), entry.target.as_str()),
        ("PUT", "/in/v1/payments?x=1")
    );
    assert_eq!(entry.header("content-type"), Some("application/edifact"));
    assert_eq!(
        (entry.header("x-trace"), entry.header("x-hop")),
        (Some("7"), None)
    );
    assert!(
        entry
            .headers
            .iter()
            .all(|(name, _)| !name.starts_with("ressac-"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deadline_ends_a_message_at_once_where_the_partner_named_a_later_time() {
    let kit = Kit::start("503 ra=3600 x*", Options::default()).await;
    let soon = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(60);
    let (_, accepted) = kit
        .post(&[("ressac-deliver-by", &soon.to_string())], "a")
        .await;
    let id = accepted["id"].as_str().unwrap().to_owned();
    let dead = kit.wait_for(&id, "dead", Duration::from_secs(10)).await;
    assert_eq!(dead["reason"], "window_closed");
    // The partner is held: a message without that deadline waits, and says for what.
    let (_, waits) = kit.post(&[], "b").await;
    let id = waits["id"].as_str().unwrap().to_owned();
    tokio::time::sleep(Duration::from_millis(300)).await;
    let (_, partners) = kit.request("GET", "/v1/partners", &[], "").await;
    let partner = &partners["partners"][0];
    assert_eq!(
        (&partner["breaker"]["state"], &partner["because"]),
        (&"open".into(), &"hold".into())
    );
    assert_eq!(partner["waiting"], 1);
    let (status, _) = kit
        .request("POST", &format!("/v1/messages/{id}/discard"), &[], "")
        .await;
    assert_eq!(status, 200);
    let dead = kit.wait_for(&id, "dead", Duration::from_secs(5)).await;
    assert_eq!(dead["reason"], "discarded");
    assert_eq!(kit.mock.journal().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hold_and_a_waiting_message_outlive_a_restart() {
    let kit = Kit::start("503 ra=3, 201 create x*", Options::default()).await;
    let (_, accepted) = kit.post(&[], "a").await;
    let id = accepted["id"].as_str().unwrap().to_owned();
    kit.wait_for(&id, "waiting", Duration::from_secs(5)).await;
    while kit.mock.journal().iter().filter(|e| e.is_done()).count() < 1 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    let kit = kit.restart().await;
    let (_, second) = kit.post(&[], "b").await;
    let second = second["id"].as_str().unwrap().to_owned();
    kit.wait_for(&second, "delivered", Duration::from_secs(30))
        .await;
    kit.wait_for(&id, "delivered", Duration::from_secs(30))
        .await;
    let entries = kit.mock.journal();
    let told = entries[0].retry_at.unwrap();
    assert!(
        entries[1..].iter().all(|e| e.t_head >= told),
        "nobody came inside the hold"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn dm_2_what_was_delivered_long_ago_goes_and_dead_letters_stay() {
    let options = Options {
        keep: Some(Duration::from_nanos(1)),
        ..Options::default()
    };
    let kit = Kit::start("201 create, 422, 201 create x*", options).await;
    let (_, first) = kit.post(&[], "a").await;
    kit.wait_for(
        first["id"].as_str().unwrap(),
        "delivered",
        Duration::from_secs(10),
    )
    .await;
    let (_, second) = kit.post(&[], "b").await;
    kit.wait_for(
        second["id"].as_str().unwrap(),
        "dead",
        Duration::from_secs(10),
    )
    .await;
    // A round is made at every start.
    let kit = kit.restart().await;
    for _ in 0..200 {
        let (_, page) = kit.request("GET", "/v1/messages", &[], "").await;
        if page["messages"].as_array().unwrap().len() == 1 {
            assert_eq!(page["messages"][0]["id"], second["id"]);
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("the delivered message is still there");
}

#[tokio::test(flavor = "multi_thread")]
async fn la_6_a_caller_that_hangs_up_leaves_no_message_behind() {
    let kit = Kit::start("201 create x*", Options::default()).await;
    for number in 0..40u64 {
        kit.post_and_hang_up(&format!("k-{number}"), Duration::from_micros(number * 150))
            .await;
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    for _ in 0..100 {
        let (_, partners) = kit.request("GET", "/v1/partners", &[], "").await;
        if partners["partners"][0]["waiting"] == 0 && partners["partners"][0]["sending"] == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let (_, waiting) = kit
        .request("GET", "/v1/messages?state=waiting", &[], "")
        .await;
    panic!("stored, and its lane does not know: {waiting:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_thrown_away_or_is_too_late_is_not_replayed() {
    let kit = Kit::start("422 x*", Options::default()).await;
    let (_, thrown) = kit.post(&[], "a").await;
    let thrown = thrown["id"].as_str().unwrap().to_owned();
    kit.wait_for(&thrown, "dead", Duration::from_secs(10)).await;
    let (status, _) = kit
        .request("POST", &format!("/v1/messages/{thrown}/discard"), &[], "")
        .await;
    assert_eq!(status, 200);
    let (status, problem) = kit
        .request("POST", &format!("/v1/messages/{thrown}/replay"), &[], "")
        .await;
    assert_eq!(
        (status, &problem["type"]),
        (409, &"urn:ressac:problem:discarded".into())
    );

    let soon = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(2);
    let (_, late) = kit
        .post(&[("ressac-deliver-by", &soon.to_string())], "b")
        .await;
    let late = late["id"].as_str().unwrap().to_owned();
    kit.wait_for(&late, "dead", Duration::from_secs(10)).await;
    tokio::time::sleep(Duration::from_millis(2_100)).await;
    let (status, problem) = kit
        .request("POST", &format!("/v1/messages/{late}/replay"), &[], "")
        .await;
    assert_eq!(
        (status, &problem["type"]),
        (409, &"urn:ressac:problem:deliver-by-passed".into())
    );
    let sent = kit.mock.journal();
    assert!(sent.iter().all(|e| {
        e.headers
            .iter()
            .all(|(name, _)| !name.starts_with("ressac-"))
    }));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_cannot_end_a_hold() {
    let kit = Kit::start("503 ra=60, 201 x*", Options::default()).await;
    kit.post(&[], "a").await;
    while kit.mock.journal().iter().filter(|e| e.is_done()).count() < 1 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    tokio::time::sleep(Duration::from_millis(200)).await;
    let (status, problem) = kit.request("POST", "/v1/partners/p/resume", &[], "").await;
    assert_eq!(
        (status, &problem["type"]),
        (409, &"urn:ressac:problem:not-suspended".into())
    );
    kit.post(&[], "b").await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(kit.mock.journal().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_password_does_not_empty_the_queue_into_dead_letters() {
    let kit = Kit::start("401 x*", Options::default()).await;
    for body in 0..20 {
        kit.post(&[], &body.to_string()).await;
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    let (_, partners) = kit.request("GET", "/v1/partners", &[], "").await;
    let partner = &partners["partners"][0];
    assert_eq!(partner["because"], "suspension");
    // Concurrency lets eight meet the 401 at once; all the others wait.
    assert!(partner["dead"].as_u64().unwrap() <= 8, "{partner}");
    assert!(partner["waiting"].as_u64().unwrap() >= 12, "{partner}");
}
