//! No space left: what was acknowledged stays, what cannot be kept is refused, and work goes on when
//! there is room.
#![allow(clippy::unwrap_used, clippy::print_stdout)]
#![cfg(target_os = "linux")]

use std::net::SocketAddr;
use std::process::Command as Now;
use std::time::{Duration, Instant};

use ressac_e2e::{Answer, Caller, Counts, Gateway, Site, partner_of, ressac};
use ressac_mock::{Mock, Reset};
use tokio::process::Command;

const DRAIN: Duration = Duration::from_secs(60);

/// Attempts are frequent, so that a dead partner costs space as fast as it can.
const POLICY: &str = "
[policy.fast]
mode = 'durable'
retries = 10000
window = '10m'
base = '20ms'
cap = '200ms'
attempt_timeout = '5s'
breaker = { open = '100ms', open_max = '500ms', probes = 1, ramp_start = '1000/s' }
budget = { ratio = 1.0, reserve = 1000, trickle = '100/s' }
limit = { concurrency = 32 }
";

/// A partner that is down until [`up`].
async fn down() -> (Mock, String) {
    let mock = partner_of(
        "idempotency = { header = 'Idempotency-Key', max_keys = 100000 }\n\
         outage = [{ from = '0s', to = '1h', clock = 'armed', do = 'down' }]",
        "scope = 'key'\nscript = '201 create x*'",
    )
    .await;
    mock.arm();
    let toml = format!(
        "{POLICY}\n[partner.p]\nurl = '{}'\npolicy = 'fast'\n\
         idempotency = {{ header = 'Idempotency-Key' }}\n",
        mock.url()
    );
    (mock, toml)
}

fn up(mock: &Mock) {
    mock.reset(&[Reset::Faults]);
}

/// What somebody holds who was told 202.
#[derive(Debug, Default)]
struct Acknowledged(Vec<String>);

impl Acknowledged {
    /// Hands messages in until one is refused, which is shown; and some more of them.
    async fn fill(&mut self, caller: &Caller, gateway: SocketAddr, size: usize) -> Answer {
        let refusal = loop {
            match self.offer(caller, gateway, size).await {
                None => assert!(self.0.len() < 50_000, "the limit does not hold"),
                Some(refusal) => break refusal,
            }
        };
        for _ in 0..20 {
            self.offer(caller, gateway, size).await;
        }
        refusal
    }

    /// Hands one in. A refusal must be such that a caller knows what to do.
    async fn offer(&mut self, caller: &Caller, gateway: SocketAddr, size: usize) -> Option<Answer> {
        let body = format!("{:08}{}", self.0.len(), "x".repeat(size - 8));
        let answer = caller.post(gateway, "p", &[], body).await.unwrap();
        if answer.status == 202 {
            self.0.push(answer.id());
            return None;
        }
        assert_eq!(answer.status, 503, "{}", answer.json);
        assert!(
            ["store-full", "store-failing"].contains(&answer.problem()),
            "{}",
            answer.json
        );
        assert!(answer.headers.contains_key("retry-after"), "{answer:?}");
        Some(answer)
    }

    /// Each is delivered, and done once.
    async fn check(&self, caller: &Caller, gateway: SocketAddr, mock: &Mock) {
        let counts = caller.drained(gateway, "p", DRAIN).await;
        let all = Counts {
            delivered: self.0.len() as u64,
            ..Counts::default()
        };
        assert_eq!(counts, all, "acknowledged and lost, or not delivered");
        let effects = mock.effects_by_key();
        for id in &self.0 {
            assert_eq!(effects.get(id), Some(&1), "{id}");
        }
    }
}

/// How a disk is made small.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// A file system in memory, in a mount namespace of the gateway's own.
    Tmpfs,
    /// A limit on the size of its files.
    FileSize,
}

const TMPFS: &str =
    "mount -t tmpfs -o size=8m tmpfs \"$0\" && head -c 3000000 /dev/zero > \"$0/filler\"";

impl Way {
    fn possible(self, site: &Site) -> bool {
        let disk = site.store().parent().unwrap().to_owned();
        match self {
            Way::Tmpfs => {
                let tried = Now::new("unshare")
                    .args(["-Urm", "sh", "-c", TMPFS])
                    .arg(disk)
                    .output();
                tried.is_ok_and(|tried| tried.status.success())
            }
            Way::FileSize => Now::new("prlimit").arg("--version").output().is_ok(),
        }
    }

    fn command(self, site: &Site) -> Command {
        let gateway = Gateway::command(ressac(), &site.config());
        let gateway = gateway.as_std();
        let mut command = match self {
            Way::Tmpfs => {
                let mut command = Command::new("unshare");
                command.args(["-Urm", "sh", "-c", &format!("{TMPFS} && exec \"$@\"")]);
                command.arg(site.store().parent().unwrap());
                command
            }
            Way::FileSize => {
                let mut command = Command::new("sh");
                // The signal that comes with the limit is ignored: the write fails instead.
                command.args(["-c", "trap '' XFSZ; ulimit -S -f 4096; exec \"$@\"", "sh"]);
                command
            }
        };
        command.arg(gateway.get_program()).args(gateway.get_args());
        command
    }

    fn make_room(self, gateway: &Gateway, site: &Site) {
        let pid = gateway.pid();
        match self {
            Way::Tmpfs => {
                let filler = site.store().with_file_name("filler");
                std::fs::remove_file(format!("/proc/{pid}/root{}", filler.display())).unwrap();
            }
            Way::FileSize => {
                let mut lift = Now::new("prlimit");
                lift.args(["--pid", &pid.to_string(), "--fsize=unlimited"]);
                assert!(lift.status().unwrap().success());
            }
        }
    }
}

async fn full_disk(way: Way) {
    let (mock, toml) = down().await;
    let site = Site::new(&toml);
    if !way.possible(&site) {
        println!("full_disk: no {way:?} on this machine, nothing was looked at");
        assert_ne!(
            way,
            Way::FileSize,
            "neither a small disk nor a small file can be had"
        );
        return;
    }
    let gateway = Gateway::start_by(way.command(&site)).await;
    let (caller, mut acknowledged) = (Caller::new(), Acknowledged::default());
    let refusal = acknowledged.fill(&caller, gateway.address(), 20_000).await;
    let kept = acknowledged.0.len();
    assert!(kept > 20, "only {kept} were taken");

    // A while of failing attempts with nowhere to write them.
    tokio::time::sleep(Duration::from_secs(1)).await;
    up(&mock);
    tokio::time::sleep(Duration::from_secs(2)).await;
    let without = caller.counts(gateway.address(), "p").await;
    assert_eq!(without.dead, 0, "{without:?}");
    assert_eq!(
        without.waiting + without.sending + without.delivered,
        kept as u64
    );

    way.make_room(&gateway, &site);
    let begun = Instant::now();
    acknowledged.check(&caller, gateway.address(), &mock).await;
    let drained = begun.elapsed();
    for _ in 0..10 {
        let refusal = acknowledged.offer(&caller, gateway.address(), 20_000).await;
        assert!(refusal.is_none(), "refused with room: {refusal:?}");
    }
    acknowledged.check(&caller, gateway.address(), &mock).await;
    println!(
        "full_disk by {way:?}: {kept} messages of 20 kB taken, then 503 {}; {} delivered before room \
         was made, all {:.1} s after it, and 10 more",
        refusal.problem(),
        without.delivered,
        drained.as_secs_f64()
    );
    gateway.stop().await;
}

/// ST-2.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn full_disk_st_2_a_file_system_without_room() {
    full_disk(Way::Tmpfs).await;
}

/// ST-2.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn full_disk_st_2_files_that_must_not_grow() {
    full_disk(Way::FileSize).await;
}

/// The store's own limit: all that was taken can be delivered within it, through an outage and a
/// restart; and a larger limit opens the door again.
async fn max_store(size: usize, mock: Mock, toml: String) {
    let site = Site::with_gateway(&toml, "max_store = '2MiB'\nmax_body = '1MB'");
    let gateway = Gateway::start(&site).await;
    let (caller, mut acknowledged) = (Caller::new(), Acknowledged::default());
    let refusal = acknowledged.fill(&caller, gateway.address(), size).await;
    assert_eq!(refusal.problem(), "store-full", "{}", refusal.json);
    let kept = acknowledged.0.len();
    // The outage goes on, and each of its attempts wants to be written down.
    tokio::time::sleep(Duration::from_secs(3)).await;
    gateway.stop().await;
    let failed = mock.journal().len();

    let gateway = Gateway::start(&site).await;
    let begun = Instant::now();
    up(&mock);
    acknowledged.check(&caller, gateway.address(), &mock).await;
    let drained = begun.elapsed();
    let bytes = std::fs::metadata(site.store()).unwrap().len();
    assert!(bytes <= 2 << 20, "{bytes} bytes");
    gateway.stop().await;

    site.configure(&toml, "max_store = '8MiB'\nmax_body = '1MB'");
    let gateway = Gateway::start(&site).await;
    let refusal = acknowledged.offer(&caller, gateway.address(), size).await;
    assert!(refusal.is_none(), "refused with room: {refusal:?}");
    acknowledged.check(&caller, gateway.address(), &mock).await;
    println!(
        "max_store = 2MiB: {kept} messages of {size} bytes taken, then 503 store-full; {failed} requests \
         failed; all delivered {:.1} s after the partner came back; {bytes} bytes; taken again with 8MiB",
        drained.as_secs_f64()
    );
    gateway.stop().await;
}

/// ST-2.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn max_store_of_large_messages_st_2() {
    let (mock, toml) = down().await;
    max_store(20_000, mock, toml).await;
}

/// ST-2: thousands of them, each of which needs room for its attempt.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn max_store_of_small_messages_st_2() {
    let (mock, toml) = down().await;
    max_store(64, mock, toml).await;
}

/// ST-2: the partner says much each time it fails, and nothing keeps attempts down: their history gives
/// way before a delivery does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn max_store_of_long_histories_st_2() {
    let mock = partner_of(
        "idempotency = { header = 'Idempotency-Key', max_keys = 100000 }\n\
         outage = [{ from = '0s', to = '1h', clock = 'armed', do = '503 body=4k' }]",
        "scope = 'key'\nscript = '201 create body=4k x*'",
    )
    .await;
    mock.arm();
    let toml = format!(
        "[policy.wild]\nmode = 'durable'\nretries = 10000\nbase = '20ms'\ncap = '200ms'\n\
         breaker = 'off'\nbudget = 'off'\nlimit = {{ concurrency = 32 }}\n\
         [partner.p]\nurl = '{}'\npolicy = 'wild'\n\
         idempotency = {{ header = 'Idempotency-Key' }}\n",
        mock.url()
    );
    max_store(64, mock, toml).await;
}
