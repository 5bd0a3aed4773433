//! `kill -9` at random moments: nothing acknowledged is lost, and nothing is done twice.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use ressac_e2e::{Caller, Chance, Counts, Gateway, Site, partner_of};
use ressac_mock::{Effect, Entry, Mock};
use serde_json::Value;
use tokio::sync::{Mutex, watch};

/// The two tests load the machine; one at a time.
static ALONE: Mutex<()> = Mutex::const_new(());

/// Waits are short, and what is scripted stops nothing: half of all calls must fail before the breaker
/// opens (ten in a hundred do), a run of failures does not open it, and the budget gives a token for
/// every first attempt. Nothing is switched off but the run.
const POLICY: &str = "
[policy.fast]
mode = 'durable'
retries = 60
window = '10m'
base = '20ms'
cap = '200ms'
attempt_timeout = '5s'
breaker = { consecutive = 'off', failure_rate = 0.5, min_calls = 100 }
budget = { ratio = 1.0, reserve = 1000, trickle = '100/s' }
limit = { concurrency = 32, decrease = 1.0 }
";

/// The gateway's life as seen by callers: where it is now, and how often it was killed.
#[derive(Clone, Copy, Debug, Default)]
struct Life {
    address: Option<SocketAddr>,
    kills: usize,
}

/// A kill, on the clock of the partner's journal: not before, not after.
#[derive(Clone, Copy, Debug)]
struct Kill {
    from: u64,
    to: u64,
}

struct Plan {
    messages: usize,
    callers: usize,
    kills: usize,
}

struct Outcome {
    kills: Vec<Kill>,
    counts: Counts,
    /// Callers' tries that brought no 202.
    unanswered: usize,
    /// Every message with its history, by its key.
    messages: BTreeMap<String, Value>,
    gateway: Gateway,
}

fn key(number: usize) -> String {
    format!("key-{number:05}")
}

fn body(number: usize) -> String {
    format!("message {number:05} {}", "x".repeat(number % 700))
}

/// Hands in all messages while the gateway is killed again and again, then lets it drain.
async fn run(plan: &Plan, site: &Site, mock: &Mock) -> Outcome {
    let life = watch::Sender::new(Life::default());
    let callers: Vec<_> = (0..plan.callers)
        .map(|caller| {
            let numbers: Vec<_> = (caller..plan.messages).step_by(plan.callers).collect();
            let (messages, kills) = (plan.messages, plan.kills);
            tokio::spawn(call(numbers, messages, kills, life.subscribe()))
        })
        .collect();
    let mut chance = Chance::new();
    let mut kills = Vec::new();
    for number in 1..=plan.kills {
        let gateway = Gateway::start(site).await;
        life.send_modify(|life| life.address = Some(gateway.address()));
        tokio::time::sleep(Duration::from_millis(chance.between(5, 250))).await;
        let from = mock.now();
        gateway.kill_nine().await;
        let to = mock.now();
        kills.push(Kill { from, to });
        life.send_replace(Life {
            address: None,
            kills: number,
        });
    }
    let gateway = Gateway::start(site).await;
    life.send_modify(|life| life.address = Some(gateway.address()));
    let mut unanswered = 0;
    for caller in callers {
        unanswered += caller.await.unwrap();
    }
    let caller = Caller::new();
    let counts = caller
        .drained(gateway.address(), "p", Duration::from_secs(120))
        .await;
    let mut messages = BTreeMap::new();
    for line in caller.messages(gateway.address()).await {
        let path = format!("/v1/messages/{}", line["id"].as_str().unwrap());
        let whole = caller.get(gateway.address(), &path).await;
        let twice = messages.insert(whole["key"].as_str().unwrap().to_owned(), whole);
        assert!(twice.is_none(), "one key, two messages: {twice:?}");
    }
    Outcome {
        kills,
        counts,
        unanswered,
        messages,
        gateway,
    }
}

/// Hands these messages in, each until it is acknowledged, spread over the lives of the gateway.
async fn call(
    numbers: Vec<usize>,
    messages: usize,
    kills: usize,
    mut life: watch::Receiver<Life>,
) -> usize {
    let caller = Caller::new();
    let mut unanswered = 0;
    for number in numbers {
        let not_before = number * (kills + 1) / messages;
        let key = key(number);
        loop {
            let here = |life: &Life| life.kills >= not_before && life.address.is_some();
            let now = *life.wait_for(here).await.unwrap();
            let headers = [("idempotency-key", key.as_str())];
            match caller
                .post(now.address.unwrap(), "p", &headers, body(number))
                .await
            {
                Ok(answer) if answer.status == 202 => break,
                Ok(answer) => panic!("{} {}", answer.status, answer.json),
                Err(_) => {
                    unanswered += 1;
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            }
        }
    }
    unanswered
}

/// The arrivals of each message, in order, told apart by their content.
fn by_body(mock: &Mock, messages: usize) -> BTreeMap<usize, Vec<Entry>> {
    assert_eq!(mock.journal_dropped(), 0);
    let mut arrivals: BTreeMap<usize, Vec<Entry>> = BTreeMap::new();
    for entry in mock.journal() {
        // A kill can cut a request while it comes in: that is no arrival, and has no effect.
        if entry.body_sha256.is_none() {
            assert_eq!(entry.effect, Effect::None, "{entry:?}");
            continue;
        }
        let text = std::str::from_utf8(&entry.body_head).unwrap();
        let number = text.split(' ').nth(1).unwrap().parse().unwrap();
        assert!(number < messages);
        assert_eq!(
            text,
            body(number),
            "these are not the bytes that were handed in"
        );
        arrivals.entry(number).or_default().push(entry);
    }
    arrivals
}

/// The partner failed it on purpose: a status that is none of success, or a cut connection.
fn scripted_failure(entry: &Entry) -> bool {
    !matches!(entry.status(), Some(200..=299))
}

fn crashes(message: &Value) -> usize {
    let history = message["history"].as_array().unwrap();
    history
        .iter()
        .filter(|attempt| attempt["outcome"] == "crash")
        .count()
}

fn created(arrivals: &[Entry]) -> usize {
    arrivals
        .iter()
        .filter(|entry| entry.effect == Effect::Created)
        .count()
}

/// How many arrivals were on their way, unanswered, at one of the kills.
fn on_the_wire(arrivals: &BTreeMap<usize, Vec<Entry>>, kills: &[Kill]) -> usize {
    let cut = |entry: &&Entry| {
        let end = entry.t_reply_after.unwrap_or(u64::MAX);
        kills
            .iter()
            .any(|kill| entry.t_head <= kill.to && end >= kill.from)
    };
    arrivals.values().flatten().filter(cut).count()
}

/// ST-1, ST-3, ST-5, ST-6, LA-2: 2,000 messages, 20 kills, a partner that fails one time in ten and
/// honours keys.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kill_nine_st_1_st_5_everything_arrives_and_nothing_twice() {
    let _alone = ALONE.lock().await;
    let begun = Instant::now();
    let plan = Plan {
        messages: 2_000,
        callers: 8,
        kills: 20,
    };
    // The third arm is the worst: it is done, and nobody is told.
    let mock = partner_of(
        "idempotency = { header = 'Idempotency-Key' }",
        "scope = 'key'\nscript = 'pick(0.05:503, 0.03:rst@req, 0.02:201 create rst@req, \
         else:201 create hold=2ms..60ms) x*'",
    )
    .await;
    let site = Site::new(&format!(
        "{POLICY}\n[partner.p]\nurl = '{}'\npolicy = 'fast'\n\
         idempotency = {{ header = 'Idempotency-Key' }}\n",
        mock.url()
    ));
    let outcome = run(&plan, &site, &mock).await;

    // Only a 202 ends a caller's loop, so every one of them is acknowledged.
    let all = Counts {
        delivered: plan.messages as u64,
        ..Counts::default()
    };
    assert_eq!(outcome.counts, all, "acknowledged and not delivered");
    assert_eq!(outcome.messages.len(), plan.messages);

    let arrivals = by_body(&mock, plan.messages);
    assert_eq!(arrivals.len(), plan.messages, "delivered and never arrived");
    let effects = mock.effects_by_key();
    let (mut of_key, mut failures, mut crashed, mut most) = (BTreeMap::new(), 0, 0, 0);
    for (number, entries) in &arrivals {
        let keys: BTreeSet<_> = entries
            .iter()
            .map(|entry| entry.key.clone().unwrap())
            .collect();
        assert_eq!(keys.len(), 1, "two keys for message {number}: {keys:?}");
        let key = keys.into_iter().next().unwrap();
        assert_eq!(key, self::key(*number), "not the caller's key");
        let twice = of_key.insert(key.clone(), *number);
        assert_eq!(twice, None, "one key for two messages");
        assert_eq!(
            effects.get(&key),
            Some(&1),
            "message {number} has not one effect"
        );

        // The message's own history says at how many kills it was open; the journal says why it came
        // again. Neither may be beyond the other.
        let scripted = entries
            .iter()
            .filter(|entry| scripted_failure(entry))
            .count();
        let crashes = crashes(&outcome.messages[&key]);
        assert!(
            entries.len() <= 1 + scripted + crashes,
            "message {number}: {} arrivals, {scripted} failures, {crashes} crashes",
            entries.len()
        );
        for pair in entries.windows(2) {
            let killed = |kill: &Kill| pair[0].t_head <= kill.to && kill.from <= pair[1].t_head;
            assert!(
                scripted_failure(&pair[0]) || outcome.kills.iter().any(killed),
                "message {number} came again without a reason: {pair:#?}"
            );
        }
        failures += scripted;
        crashed += crashes;
        most = most.max(entries.len());
    }
    println!(
        "kill_nine: {} messages, {} kills, {} posts without an answer; {} arrivals: {failures} \
         failed by script, {} cut or unanswered at a kill; {crashed} attempts open at a kill; at most \
         {most} arrivals of one message; {} effects; {:.1} s",
        plan.messages,
        outcome.kills.len(),
        outcome.unanswered,
        arrivals.values().map(Vec::len).sum::<usize>(),
        on_the_wire(&arrivals, &outcome.kills),
        effects.values().sum::<u64>(),
        begun.elapsed().as_secs_f64()
    );
    assert!(
        crashed > 0,
        "no kill met an attempt: this run has proven nothing"
    );
    outcome.gateway.stop().await;
}

/// As above with a partner that honours no keys: what may have arrived is not sent again but told.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kill_nine_without_keys_nothing_twice_and_what_is_in_doubt_is_said() {
    let _alone = ALONE.lock().await;
    let begun = Instant::now();
    let plan = Plan {
        messages: 500,
        callers: 8,
        kills: 8,
    };
    // 429 is certainly not processed, so that alone may be sent again.
    let mock = partner_of(
        "idempotency = 'off'",
        "scope = 'global'\nscript = 'pick(0.05:429, 0.03:201 create rst@req, \
         else:201 create hold=2ms..60ms) x*'",
    )
    .await;
    let site = Site::new(&format!(
        "{POLICY}\n[partner.p]\nurl = '{}'\npolicy = 'fast'\n",
        mock.url()
    ));
    let outcome = run(&plan, &site, &mock).await;

    assert_eq!(outcome.messages.len(), plan.messages);
    let arrivals = by_body(&mock, plan.messages);
    let (mut delivered, mut ambiguous, mut crashed, mut done) = (0, 0, 0, 0);
    for number in 0..plan.messages {
        let message = &outcome.messages[&key(number)];
        let entries = arrivals.get(&number).map_or(&[][..], Vec::as_slice);
        let effects = created(entries);
        assert!(
            effects <= 1,
            "message {number} was done {effects} times: {entries:#?}"
        );
        for entry in entries {
            assert_eq!(entry.key, None, "a key that nobody asked for");
        }
        if let Some((_, earlier)) = entries.split_last() {
            let proven = earlier.iter().all(|entry| entry.status() == Some(429));
            assert!(
                proven,
                "message {number} was sent again in doubt: {entries:#?}"
            );
        }
        match (message["state"].as_str(), message["reason"].as_str()) {
            (Some("delivered"), _) => {
                assert_eq!(
                    effects, 1,
                    "message {number} is delivered, the partner has nothing"
                );
                delivered += 1;
            }
            (Some("dead"), Some("ambiguous")) => {
                assert_eq!(message["processed"], "maybe", "{message:#}");
                let last = message["history"]
                    .as_array()
                    .unwrap()
                    .last()
                    .unwrap()
                    .clone();
                let doubt = last["outcome"] == "crash" || last["outcome"] == "reset";
                assert!(doubt, "no reason to be in doubt: {message:#}");
                crashed += usize::from(last["outcome"] == "crash");
                done += effects;
                ambiguous += 1;
            }
            _ => panic!("neither delivered nor in doubt: {message:#}"),
        }
    }
    println!(
        "kill_nine_without_keys: {} messages, {} kills, {} posts without an answer; {delivered} \
         delivered, {ambiguous} ambiguous ({crashed} by a kill; {done} of them were done); {} \
         arrivals, {} of them cut or unanswered at a kill; {:.1} s",
        plan.messages,
        outcome.kills.len(),
        outcome.unanswered,
        arrivals.values().map(Vec::len).sum::<usize>(),
        on_the_wire(&arrivals, &outcome.kills),
        begun.elapsed().as_secs_f64()
    );
    assert_eq!(delivered + ambiguous, plan.messages);
    assert!(
        crashed > 0,
        "no kill met an attempt: this run has proven nothing"
    );
    outcome.gateway.stop().await;
}
