//! `http_version` of a partner on the wire, and what the ends of HTTP/2 mean for a message.
#![allow(missing_docs, clippy::unwrap_used)]

mod kit;

use std::time::Duration;

use kit::Kit;
use serde_json::Value;

const H2C: &str = "url = URL\nhttp_version = \"2\"";

/// Posts a message without a key, and shows it once it has ended like this.
async fn ended(kit: &Kit, state: &str) -> Value {
    let (status, accepted) = kit.post(&[], "UNB+UNOC:3").await;
    assert_eq!(status, 202, "{accepted}");
    let id = accepted["id"].as_str().unwrap();
    kit.wait_for(id, state, Duration::from_secs(20)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_partner_is_spoken_to_in_its_version() {
    // Over TLS the mock takes HTTP/2 where it is offered, as "auto" shows.
    for (lines, version, proto) in [
        ("url = URL", "auto", "HTTP/1.1"),
        ("url = URL\nhttp_version = \"1.1\"", "1.1", "HTTP/1.1"),
        (H2C, "2", "HTTP/2"),
        ("url = TLS_URL\nca_file = CA", "auto", "HTTP/2"),
        (
            "url = TLS_URL\nca_file = CA\nhttp_version = \"1.1\"",
            "1.1",
            "HTTP/1.1",
        ),
        (
            "url = TLS_URL\nca_file = CA\nhttp_version = \"2\"",
            "2",
            "HTTP/2",
        ),
    ] {
        let kit = Kit::configured("201 create x*", lines).await;
        let shown = ended(&kit, "delivered").await;
        assert_eq!(shown["attempts"], 1, "{lines}");
        let [entry] = &kit.mock.journal()[..] else {
            panic!("{lines}: {:?}", kit.mock.journal());
        };
        assert_eq!(entry.proto, proto, "{lines}");
        assert_eq!(&entry.body_head[..], b"UNB+UNOC:3");
        let chosen = entry.tls.as_ref().map(|tls| tls.alpn.as_deref());
        let expected = match (lines.contains("TLS_URL"), proto) {
            (false, _) => None,
            (true, "HTTP/2") => Some(Some("h2")),
            (true, _) => Some(Some("http/1.1")),
        };
        assert_eq!(chosen, expected, "{lines}");
        let (_, said) = kit.request("GET", "/v1/partners", &[], "").await;
        assert_eq!(said["partners"][0]["http_version"], version, "{lines}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn vr_2_what_http2_says_was_not_processed_is_sent_again_without_a_key() {
    for (script, connections) in [
        ("refused-stream, 201 create", 1),
        ("goaway=below, 201 create", 2),
    ] {
        let kit = Kit::configured(script, H2C).await;
        let shown = ended(&kit, "delivered").await;
        assert_eq!(shown["attempts"], 2, "{script}");
        let first = &shown["history"][0];
        assert_eq!(
            (&first["outcome"], &first["processed"], &first["blame"]),
            (&"refused_stream".into(), &"no".into(), &"network".into()),
            "{script}"
        );
        let entries = kit.mock.journal();
        assert_eq!(entries.len(), 2, "{script}");
        assert!(entries.iter().all(|entry| entry.proto == "HTTP/2"));
        assert!(entries.iter().all(|entry| entry.key.is_none()));
        let other = entries[0].conn != entries[1].conn;
        assert_eq!(1 + usize::from(other), connections, "{script}");
        assert_eq!(effects(&kit), 1, "{script}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn vr_3_a_goaway_that_covers_the_message_leaves_it_ambiguous() {
    for script in [
        "201 create goaway=covers, 201 create x*",
        "201 create rst-stream=INTERNAL_ERROR, 201 create x*",
    ] {
        let kit = Kit::configured(script, H2C).await;
        let shown = ended(&kit, "dead").await;
        assert_eq!(
            (&shown["reason"], &shown["processed"], &shown["attempts"]),
            (&"ambiguous".into(), &"maybe".into(), &1.into()),
            "{script}"
        );
        assert_eq!(shown["blame"], "network", "{script}");
        assert_eq!(
            (kit.mock.journal().len(), effects(&kit)),
            (1, 1),
            "{script}"
        );
    }
}

/// Resources that the partner has made.
fn effects(kit: &Kit) -> usize {
    let entries = kit.mock.journal();
    entries
        .iter()
        .filter(|entry| entry.effect == ressac_mock::Effect::Created)
        .count()
}
