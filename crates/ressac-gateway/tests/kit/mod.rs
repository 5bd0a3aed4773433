//! A gateway with one partner, which is a mock, and a small HTTP/1.1 caller.
#![allow(dead_code)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use ressac_config::{Config, Environment};
use ressac_gateway::{BootClock, Gateway, Idempotency, PartnerSettings, Settings};
use ressac_mock::{Mock, Scenario};
use ressac_policy::Policy;
use ressac_store::{SqliteOptions, SqliteStore};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

pub(crate) struct Options {
    pub(crate) keyed: bool,
    pub(crate) max_body: usize,
    pub(crate) keep: Option<Duration>,
    pub(crate) policy: Policy,
}

impl Default for Options {
    fn default() -> Self {
        let mut policy = Policy::durable();
        policy.backoff.base = Duration::from_millis(50);
        policy.backoff.cap = Duration::from_millis(400);
        policy.attempt_timeout = Duration::from_secs(5);
        Options {
            keyed: true,
            max_body: 1_000_000,
            keep: None,
            policy,
        }
    }
}

pub(crate) struct Kit {
    pub(crate) mock: Mock,
    pub(crate) gateway: Gateway,
    settings: Settings,
    folder: tempfile::TempDir,
}

impl Kit {
    /// A partner `p` whose every path follows this script.
    pub(crate) async fn start(script: &str, options: Options) -> Kit {
        let mock = partner(script).await;
        let url = format!("{}/in", mock.url()).parse().unwrap();
        let mut partner = PartnerSettings::new("p", url);
        partner.policy = options.policy;
        partner.idempotency = options.keyed.then(|| Idempotency {
            header: "idempotency-key".parse().unwrap(),
            ttl: None,
            quoted: false,
        });
        let settings = Settings {
            listen: ([127, 0, 0, 1], 0).into(),
            max_body: options.max_body,
            keep: options.keep,
            stop_timeout: Duration::from_secs(5),
            partners: vec![partner],
        };
        let folder = tempfile::tempdir().unwrap();
        Kit::opened(mock, settings, folder).await
    }

    /// A partner `p` as these lines of its table say; it honours no keys. `URL` and `TLS_URL` in
    /// them are the mock's, which speaks HTTP/1.1 and HTTP/2 at both; `CA` is the file of its
    /// authority.
    pub(crate) async fn configured(script: &str, lines: &str) -> Kit {
        let mock = partner(script).await;
        let folder = tempfile::tempdir().unwrap();
        let authority = folder.path().join("ca.pem");
        std::fs::write(&authority, mock.ca_pem()).unwrap();
        let lines = lines
            .replace("TLS_URL", &format!("'{}'", mock.tls_url()))
            .replace("URL", &format!("'{}'", mock.url()))
            .replace("CA", &format!("'{}'", authority.display()));
        let text = format!(
            "[policy.quick]\nbase = \"50ms\"\ncap = \"400ms\"\nattempt_timeout = \"5s\"\n\
             [partner.p]\npolicy = \"quick\"\n{lines}\n[gateway]\nlisten = \"127.0.0.1:0\"\n"
        );
        let config = Config::parse("t.toml", &text, &Environment::of([])).unwrap();
        let settings = Settings::from_config(&config).unwrap();
        Kit::opened(mock, settings, folder).await
    }

    async fn opened(mock: Mock, settings: Settings, folder: tempfile::TempDir) -> Kit {
        let gateway = open(&settings, &folder).await;
        Kit {
            mock,
            gateway,
            settings,
            folder,
        }
    }

    /// Stops the gateway gracefully and starts it again on the same store.
    pub(crate) async fn restart(self) -> Kit {
        let Kit {
            mock,
            gateway,
            settings,
            folder,
        } = self;
        gateway.stop().await;
        Kit::opened(mock, settings, folder).await
    }

    pub(crate) async fn post(&self, headers: &[(&str, &str)], body: &str) -> (u16, Value) {
        self.request("POST", "/v1/partners/p/messages", headers, body)
            .await
    }

    pub(crate) async fn request(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> (u16, Value) {
        let mut stream = TcpStream::connect(self.gateway.address()).await.unwrap();
        let mut head = format!(
            "{method} {path} HTTP/1.1\r\nhost: {}\r\ncontent-length: {}\r\n",
            self.gateway.address(),
            body.len()
        );
        // Close by ourselves, so that a test may send its own Connection header.
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if !headers.iter().any(|(name, _)| *name == "connection") {
            head.push_str("connection: close\r\n");
        }
        head.push_str("\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(body.as_bytes()).await.unwrap();
        let mut reply = Vec::new();
        let mut buffer = [0; 4096];
        let (status, json) = loop {
            let n = stream.read(&mut buffer).await.unwrap();
            reply.extend_from_slice(&buffer[..n]);
            if let Some(whole) = parse(&reply) {
                break whole;
            }
            assert!(
                n > 0,
                "the reply was cut: {}",
                String::from_utf8_lossy(&reply)
            );
        };
        (status, json)
    }

    /// Posts a message, and resets the connection so long after its last byte.
    pub(crate) async fn post_and_hang_up(&self, key: &str, after: Duration) {
        let mut stream = TcpStream::connect(self.gateway.address()).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let head = format!(
            "POST /v1/partners/p/messages HTTP/1.1\r\nhost: {}\r\nidempotency-key: {key}\r\n\
             content-length: 1\r\n\r\na",
            self.gateway.address()
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        tokio::time::sleep(after).await;
        drop(stream);
    }

    /// The message once it has that state; panics if that takes longer.
    pub(crate) async fn wait_for(&self, id: &str, state: &str, limit: Duration) -> Value {
        let start = Instant::now();
        loop {
            let (_, shown) = self
                .request("GET", &format!("/v1/messages/{id}"), &[], "")
                .await;
            if shown["state"] == state {
                return shown;
            }
            assert!(
                start.elapsed() < limit,
                "not {state} after {limit:?}: {shown:#}"
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

async fn partner(script: &str) -> Mock {
    let scenario = format!(
        "version = 1\n\
         idempotency = {{ header = \"Idempotency-Key\" }}\n\
         [[route]]\nname = \"in\"\npath = \"/{{rest...}}\"\nscript = '{script}'\n\
         resource = {{ id = \"doc_{{n}}\" }}\n"
    );
    let scenario = Scenario::parse(&scenario).unwrap();
    Mock::start_with(scenario, ressac_mock::Options::default())
        .await
        .unwrap()
}

async fn open(settings: &Settings, folder: &tempfile::TempDir) -> Gateway {
    let clock = BootClock::start();
    let options = SqliteOptions::new(folder.path().join("ressac.db")).clock(clock);
    let store = SqliteStore::open(options).await.unwrap();
    Gateway::start(settings.clone(), Arc::new(store), clock)
        .await
        .unwrap()
}

fn parse(reply: &[u8]) -> Option<(u16, Value)> {
    let end = reply.windows(4).position(|w| w == b"\r\n\r\n")? + 4;
    let head = std::str::from_utf8(&reply[..end]).unwrap();
    let status = head.split(' ').nth(1)?.parse().ok()?;
    let length = head
        .lines()
        .find_map(|line| {
            line.to_ascii_lowercase()
                .strip_prefix("content-length: ")?
                .parse()
                .ok()
        })
        .unwrap_or(0usize);
    let body = &reply[end..];
    if body.len() < length {
        return None;
    }
    Some((status, serde_json::from_slice(body).unwrap_or(Value::Null)))
}
