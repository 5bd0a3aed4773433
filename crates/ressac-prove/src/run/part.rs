//! One part: its own mock, its own process, and the record of what happened.

mod interrupt;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until, timeout};

use super::client::{Client, Event, Said, Stage};
use super::ground::{base_url, ca_file, journal, start_mock, write_bodies};
use super::lag::Heartbeat;
use super::process::{GRACE, Signal};
use super::schedule::Schedule;
use super::tell::Teller;
use super::{Bench, RunError, keep};
use crate::case::Case;
use crate::claims::Mode;
use crate::plan::PartPlan;
use crate::record::{OpResult, OpStart, PartRecord, ProcessEnd};

/// How long a client may take until it is ready.
const READY: Duration = Duration::from_secs(30);
/// How often the journal is looked at while an interruption is due.
const LOOK: Duration = Duration::from_millis(5);

/// Runs a part and keeps its evidence.
pub(super) async fn run_part(
    bench: &Bench,
    case: &Case,
    plan: PartPlan,
    folder: PathBuf,
    limit: Duration,
) -> Result<PartRecord, RunError> {
    std::fs::create_dir_all(&folder).map_err(|error| RunError::Keep {
        path: folder.clone(),
        error,
    })?;
    let (record, said) = match play(bench, case, &plan, &folder, limit).await {
        Ok(done) => done,
        Err(trouble) => (blank(plan, Some(trouble)), Said::default()),
    };
    keep::part(&folder, &record, &said)?;
    Ok(record)
}

fn blank(plan: PartPlan, trouble: Option<String>) -> PartRecord {
    PartRecord {
        plan,
        arrivals: Vec::new(),
        dropped: 0,
        starts: Vec::new(),
        results: Vec::new(),
        ends: Vec::new(),
        armed: None,
        interrupted: None,
        watched_until: 0,
        limit_hit: false,
        trouble,
        lag_ms: 0.0,
        anchor_unix_ns: 0,
    }
}

async fn play(
    bench: &Bench,
    case: &Case,
    plan: &PartPlan,
    folder: &Path,
    limit: Duration,
) -> Result<(PartRecord, Said), String> {
    let mock = start_mock(bench, plan).await?;
    let bodies = write_bodies(plan, folder)?;
    let state = folder.join("state");
    // What a durable client left there in an earlier run would be its past.
    if state.exists() {
        std::fs::remove_dir_all(&state)
            .map_err(|e| format!("cannot empty {}: {e}", state.display()))?;
    }
    std::fs::create_dir_all(&state).map_err(|e| format!("cannot make {}: {e}", state.display()))?;
    let mode = bench.options.claims.client.mode;
    let mut teller = Teller::new(&case.id, mode, base_url(&mock), plan, &state);
    if let Some(keys) = &bench.options.claims.claims.keys {
        teller.key_header.clone_from(&keys.header);
    }
    teller.ca_file = ca_file(&mock, plan, folder)?;
    let (events, inbox) = mpsc::unbounded_channel();
    let stage = Stage {
        command: Arc::new(bench.options.command.clone()),
        teller: Arc::new(teller),
        mock: Arc::clone(&mock),
        events,
        said: Arc::default(),
        folder: folder.to_owned(),
    };
    let mut play = Play {
        plan,
        mode,
        client: Client::start(mode, stage.clone())?,
        stage,
        inbox,
        bodies,
        heartbeat: Heartbeat::start(),
        starts: Vec::new(),
        results: Vec::new(),
        ends: Vec::new(),
        armed: None,
        interrupted: None,
        limit_hit: false,
        ready: READY,
    };
    let outcome = play.run(limit).await;
    Ok(play.finish(outcome.err()).await)
}

struct Play<'a> {
    plan: &'a PartPlan,
    mode: Mode,
    client: Client,
    stage: Stage,
    inbox: mpsc::UnboundedReceiver<Event>,
    bodies: BTreeMap<u64, PathBuf>,
    heartbeat: Heartbeat,
    starts: Vec<OpStart>,
    results: Vec<OpResult>,
    ends: Vec<ProcessEnd>,
    armed: Option<u64>,
    interrupted: Option<u64>,
    limit_hit: bool,
    ready: Duration,
}

impl Play<'_> {
    async fn run(&mut self, limit: Duration) -> Result<(), String> {
        self.ready = READY.min(limit);
        self.greet().await?;
        if self.plan.down_ms.is_some() {
            self.arm().await?;
        }
        let mut schedule = Schedule::new(self.plan, Instant::now());
        while !schedule.is_over() {
            if schedule.elapsed() > limit {
                self.limit_hit = true;
                break;
            }
            self.start_due(&mut schedule).await?;
            self.interrupt(&schedule).await?;
            let mut wake = Instant::now() + Duration::from_millis(200);
            if let Some(next) = schedule.next() {
                wake = wake.min(next);
            }
            if self.plan.interrupt.is_some() && self.interrupted.is_none() {
                wake = wake.min(Instant::now() + LOOK);
            }
            tokio::select! {
                event = self.inbox.recv() => self.take(event, &mut schedule),
                () = sleep_until(wake) => {}
            }
            schedule.expire(Instant::now());
        }
        if !self.limit_hit {
            self.watch().await;
        }
        Ok(())
    }

    /// Waits until it is ready: the answer to hello in lines mode, a connection to a proxy.
    async fn greet(&mut self) -> Result<(), String> {
        if let Client::Lines(lines) = &mut self.client {
            lines.hello().await;
        }
        if !self.client.tells_ready() {
            return Ok(());
        }
        loop {
            match timeout(self.ready, self.inbox.recv()).await {
                Ok(Some(Event::Ready)) => return Ok(()),
                // The process before it, which was killed.
                Ok(Some(Event::End(end))) if end.by_us => self.ends.push(end),
                Ok(Some(Event::End(end))) => {
                    let code = end.code;
                    self.ends.push(end);
                    return Err(format!("the client ended before it was ready ({code:?})"));
                }
                Ok(Some(Event::Result(_))) => {}
                Ok(None) | Err(_) if self.mode == Mode::Proxy => {
                    return Err("the proxy accepts no connection on PROVE_LISTEN".into());
                }
                Ok(None) | Err(_) => return Err("the client did not say that it is ready".into()),
            }
        }
    }

    /// Makes the listener refuse, and sees that it does.
    async fn arm(&mut self) -> Result<(), String> {
        let mock = Arc::clone(&self.stage.mock);
        mock.arm();
        for _ in 0..200 {
            match tokio::net::TcpStream::connect(mock.addr()).await {
                Err(e) if e.kind() == std::io::ErrorKind::ConnectionRefused => {
                    // Its time counts from now: the operation starts at once.
                    self.armed = Some(mock.now());
                    mock.arm();
                    return Ok(());
                }
                _ => tokio::time::sleep(Duration::from_micros(500)).await,
            }
        }
        Err("the listener could not be made to refuse".to_owned())
    }

    async fn start_due(&mut self, schedule: &mut Schedule<'_>) -> Result<(), String> {
        while let Some(index) = schedule.take(Instant::now()) {
            let op = &self.plan.ops[index];
            let body = op.body.and_then(|len| self.bodies.get(&len)).cloned();
            self.starts.push(OpStart {
                op: op.id.clone(),
                t: self.stage.mock.now(),
            });
            self.client.begin(op, body.as_deref()).await?;
        }
        Ok(())
    }

    fn take(&mut self, event: Option<Event>, schedule: &mut Schedule<'_>) {
        match event {
            Some(Event::Result(result)) => {
                schedule.answered(&result, Instant::now());
                if self.results.iter().all(|r| r.op != result.op) {
                    self.results.push(result);
                }
            }
            Some(Event::End(end)) => self.ended(end, schedule),
            Some(Event::Ready) | None => {}
        }
    }

    fn ended(&mut self, end: ProcessEnd, schedule: &mut Schedule<'_>) {
        let restarted = self
            .plan
            .interrupt
            .as_ref()
            .is_some_and(|i| i.what == "kill");
        match &end.op {
            // Exec: the result, if there is one, came first.
            Some(op) if !(restarted && end.by_us) => {
                let nothing = OpResult {
                    op: op.clone(),
                    ..OpResult::default()
                };
                schedule.answered(&nothing, Instant::now());
            }
            None if !(restarted && end.by_us) => schedule.give_up(),
            _ => {}
        }
        self.ends.push(end);
    }

    /// Nothing more may come.
    async fn watch(&mut self) {
        let hi = self.plan.pace.hi(0).unwrap_or(0.0);
        let quiet = (2.0 * hi)
            .clamp(1000.0, 5000.0)
            .max(self.plan.watch_ms as f64);
        let until = Instant::now() + Duration::from_millis(quiet as u64);
        loop {
            tokio::select! {
                event = self.inbox.recv() => match event {
                    Some(Event::End(end)) => self.ends.push(end),
                    Some(Event::Result(result)) => {
                        if self.results.iter().all(|r| r.op != result.op) {
                            self.results.push(result);
                        }
                    }
                    Some(Event::Ready) | None => {}
                },
                () = sleep_until(until) => return,
            }
        }
    }

    async fn finish(mut self, trouble: Option<String>) -> (PartRecord, Said) {
        let watched_until = self.stage.mock.now();
        self.client.close();
        self.end_processes().await;
        let mock = Arc::clone(&self.stage.mock);
        let arrivals = journal(&mock);
        let anchor = mock
            .anchor()
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default();
        let said = std::mem::take(&mut *self.stage.said());
        let record = PartRecord {
            arrivals,
            dropped: mock.journal_dropped(),
            starts: std::mem::take(&mut self.starts),
            results: std::mem::take(&mut self.results),
            ends: std::mem::take(&mut self.ends),
            armed: self.armed,
            interrupted: self.interrupted,
            watched_until,
            limit_hit: self.limit_hit,
            trouble,
            lag_ms: self.heartbeat.worst_ms(),
            anchor_unix_ns: u64::try_from(anchor.as_nanos()).unwrap_or(u64::MAX),
            plan: self.plan.clone(),
        };
        (record, said)
    }

    /// Finish and exit; then SIGTERM, then SIGKILL.
    async fn end_processes(&mut self) {
        let finishes = self.client.finishes();
        if finishes && !self.limit_hit && self.wait_gone(GRACE).await {
            return;
        }
        if !finishes && !self.client.any_alive() {
            self.wait_gone(Duration::from_millis(50)).await;
            return;
        }
        self.client.signal(Signal::Term);
        if !self.wait_gone(GRACE).await {
            self.client.signal(Signal::Kill);
            self.wait_gone(GRACE).await;
        }
    }

    async fn wait_gone(&mut self, limit: Duration) -> bool {
        let until = Instant::now() + limit;
        loop {
            let alive = self.client.any_alive();
            if !alive && self.inbox.is_empty() {
                // The end of a process is told a moment after it.
                tokio::time::sleep(Duration::from_millis(1)).await;
                while let Ok(event) = self.inbox.try_recv() {
                    if let Event::End(end) = event {
                        self.ends.push(end);
                    }
                }
                return true;
            }
            tokio::select! {
                event = self.inbox.recv() => if let Some(Event::End(end)) = event {
                    self.ends.push(end);
                },
                () = tokio::time::sleep(LOOK) => {}
            }
            if Instant::now() >= until {
                return false;
            }
        }
    }
}
