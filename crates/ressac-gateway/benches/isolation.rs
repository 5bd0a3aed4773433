//! Does a dead partner with 10 000 waiting messages delay a healthy one?
//!
//! Two gateways, each with a healthy partner and one that never answers; the second has the backlog.
//! Rounds alternate A B A B in one process on one machine, so that whatever else runs there meets
//! both. Time is from the call of the API to the arrival at the healthy partner, by its own clock.
//!
//! `cargo bench -p ressac-gateway`; `-- --quick` for a tenth of it.
#![allow(missing_docs, clippy::unwrap_used, clippy::print_stdout)]

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use ressac_gateway::{BootClock, Gateway, PartnerSettings, Settings};
use ressac_http::{Client, ClientConfig};
use ressac_mock::{Mock, Options, Scenario};
use ressac_policy::Policy;
use ressac_store::{SqliteOptions, SqliteStore};

struct Side {
    gateway: Gateway,
    healthy: Mock,
    client: Client,
    _dead: Mock,
    _folder: tempfile::TempDir,
}

impl Side {
    async fn start() -> Side {
        let route = |script: &str| {
            let text = format!(
                "version = 1\n[[route]]\nname = \"in\"\npath = \"/{{rest...}}\"\nscript = \"{script}\"\n"
            );
            Scenario::parse(&text).unwrap()
        };
        let options = || Options {
            journal_entries: 1_000_000,
            ..Options::default()
        };
        let healthy = Mock::start_with(route("201 x*"), options()).await.unwrap();
        let dead = Mock::start_with(route("200 hold=* x*"), options())
            .await
            .unwrap();
        let partner = |name: &str, mock: &Mock| {
            let mut partner = PartnerSettings::new(name, mock.url().parse().unwrap());
            // It is tried again and again, not left alone: the worst neighbour.
            partner.policy = Policy {
                attempt_timeout: Duration::from_secs(1),
                breaker: None,
                ..Policy::durable()
            };
            partner
        };
        let settings = Settings {
            listen: ([127, 0, 0, 1], 0).into(),
            partners: vec![partner("healthy", &healthy), partner("dead", &dead)],
            ..Settings::new()
        };
        let folder = tempfile::tempdir().unwrap();
        let clock = BootClock::start();
        let store = SqliteStore::open(SqliteOptions::new(folder.path().join("r.db")).clock(clock))
            .await
            .unwrap();
        let gateway = Gateway::start(settings, Arc::new(store), clock)
            .await
            .unwrap();
        let client = Client::new(ClientConfig::default()).unwrap();
        Side {
            gateway,
            healthy,
            client,
            _dead: dead,
            _folder: folder,
        }
    }

    async fn post(&self, partner: &str, key: &str) {
        let url = format!(
            "http://{}/v1/partners/{partner}/messages",
            self.gateway.address()
        );
        let request = Request::post(url)
            .header("idempotency-key", key)
            .header("x-key", key)
            .body(Bytes::from_static(&[b'x'; 1024]))
            .unwrap();
        let reply = self
            .client
            .send(request, Duration::from_secs(30))
            .await
            .unwrap();
        assert_eq!(reply.status, 202);
    }

    /// One message after the other; each one's time to the partner, sorted.
    async fn round(&self, name: &str, messages: usize) -> Vec<Duration> {
        let mut times = Vec::with_capacity(messages);
        for number in 0..messages {
            let key = format!("{name}-{number}");
            let before = self.healthy.now();
            self.post("healthy", &key).await;
            let arrived = loop {
                let journal = self.healthy.journal_since(0);
                if let Some(entry) = journal
                    .iter()
                    .rev()
                    .find(|e| e.header("x-key") == Some(&key))
                {
                    break entry.t_head;
                }
                tokio::time::sleep(Duration::from_micros(200)).await;
            };
            times.push(Duration::from_nanos(arrived.saturating_sub(before)));
            self.healthy.reset(&[ressac_mock::Reset::Journal]);
        }
        times.sort_unstable();
        times
    }
}

fn at(times: &[Duration], share: f64) -> f64 {
    let index = ((times.len() as f64 * share).ceil() as usize).clamp(1, times.len()) - 1;
    times[index].as_secs_f64() * 1e3
}

/// Median, smallest, largest.
fn spread(mut values: Vec<f64>) -> (f64, f64, f64) {
    values.sort_unstable_by(f64::total_cmp);
    (
        values[values.len() / 2],
        values[0],
        values[values.len() - 1],
    )
}

#[tokio::main]
async fn main() {
    let quick = std::env::args().any(|argument| argument == "--quick");
    let (rounds, messages, backlog) = if quick {
        (3, 30, 1_000)
    } else {
        (11, 150, 10_000)
    };
    let (alone, beside) = (Side::start().await, Side::start().await);
    for number in 0..backlog {
        beside.post("dead", &format!("dead-{number}")).await;
    }
    println!(
        "{rounds} rounds A B of {messages} messages; {backlog} waiting for the dead partner in B"
    );
    let (mut p50, mut p99) = ((Vec::new(), Vec::new()), (Vec::new(), Vec::new()));
    for round in 0..rounds {
        let a = alone.round(&format!("a{round}"), messages).await;
        let b = beside.round(&format!("b{round}"), messages).await;
        p50.0.push(at(&a, 0.5));
        p50.1.push(at(&b, 0.5));
        p99.0.push(at(&a, 0.99));
        p99.1.push(at(&b, 0.99));
    }
    for (name, (a, b)) in [("p50", p50), ("p99", p99)] {
        let ratios = a.iter().zip(&b).map(|(a, b)| b / a).collect();
        let (ratio, low, high) = spread(ratios);
        println!(
            "{name}: alone {:.2} ms, beside the dead one {:.2} ms, ratio {ratio:.2} ({low:.2} to {high:.2})",
            spread(a).0,
            spread(b).0,
        );
    }
    alone.gateway.stop().await;
    beside.gateway.stop().await;
}
