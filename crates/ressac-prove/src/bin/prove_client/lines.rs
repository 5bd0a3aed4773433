//! Lines mode.

use std::collections::HashMap;
use std::io::BufRead as _;

use serde_json::json;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use crate::Kind;
use crate::client::{Instance, cancelled};
use crate::fault::Fault;
use crate::policy::policy;
use crate::told::Told;

/// Reads lines until the end of input, and ends when the last operation has.
pub(crate) async fn run(kind: Kind, fault: Fault) -> u8 {
    let (print, printed) = mpsc::unbounded_channel::<String>();
    let printer = std::thread::spawn(move || write_all(printed));
    let stop = watch::Sender::new(false);
    let all = stop.clone();
    if fault.hears_signals() {
        tokio::spawn(async move {
            terminated().await;
            all.send_replace(true);
        });
    } else {
        tokio::spawn(async {
            loop {
                terminated().await;
            }
        });
    }
    let mut hub = Hub {
        kind,
        fault,
        told: Told::default(),
        instances: HashMap::new(),
        cancels: HashMap::new(),
        print,
        stop,
        tasks: JoinSet::new(),
    };
    hub.read().await;
    while hub.tasks.join_next().await.is_some() {}
    drop(hub);
    // The last lines must be out before the process ends.
    let _ = printer.join();
    0
}

struct Hub {
    kind: Kind,
    fault: Fault,
    told: Told,
    instances: HashMap<String, Instance>,
    cancels: HashMap<String, watch::Sender<bool>>,
    print: mpsc::UnboundedSender<String>,
    stop: watch::Sender<bool>,
    tasks: JoinSet<()>,
}

impl Hub {
    async fn read(&mut self) {
        let (said, mut lines) = mpsc::unbounded_channel();
        std::thread::spawn(move || {
            for line in std::io::stdin().lock().lines() {
                let Ok(line) = line else { return };
                if said.send(line).is_err() {
                    return;
                }
            }
        });
        let mut stop = self.stop.subscribe();
        loop {
            let line = tokio::select! {
                line = lines.recv() => line,
                () = cancelled(&mut stop) => return,
            };
            match line {
                Some(line) => self.take(&line),
                None => return,
            }
        }
    }

    fn take(&mut self, line: &str) {
        let Some(told) = Told::line(line) else { return };
        if told.get("hello").is_some() {
            self.told = told;
            let version = env!("CARGO_PKG_VERSION");
            self.say(json!({ "ready": 1, "name": "prove-client", "version": version }).to_string());
        } else if let Some(op) = told.get("cancel") {
            if let Some(cancel) = self.cancels.get(op) {
                cancel.send_replace(true);
            }
        } else if let Some(client) = told.get("end") {
            self.instances.remove(client);
        } else if told.get("op").is_some() {
            self.begin(told);
        }
    }

    fn say(&self, line: String) {
        // The printer lives as long as this does.
        let _ = self.print.send(line);
    }

    fn begin(&mut self, task: Told) {
        let op = task.get("op").unwrap_or_default().to_owned();
        let client = task.get("client").unwrap_or_default().to_owned();
        let instance = match self.instances.get(&client) {
            Some(known) => known.clone(),
            None => {
                let policy = policy(&self.told, self.kind, &self.fault);
                let fault = self.fault.clone();
                match Instance::new(policy, &self.told, &task, self.kind, fault) {
                    Ok(new) => {
                        self.instances.insert(client, new.clone());
                        new
                    }
                    Err(error) => {
                        self.say(json!({ "op": op, "ok": false, "error": error }).to_string());
                        return;
                    }
                }
            }
        };
        let cancel = watch::Sender::new(false);
        let (one, mut all) = (cancel.subscribe(), self.stop.subscribe());
        let both = cancel.clone();
        self.cancels.insert(op, cancel);
        let print = self.print.clone();
        self.tasks.spawn(async move {
            let work = instance.perform(task, one);
            tokio::pin!(work);
            let line = tokio::select! {
                line = &mut work => line,
                () = cancelled(&mut all) => {
                    both.send_replace(true);
                    work.await
                }
            };
            let _ = print.send(line.to_string());
        });
    }
}

fn write_all(mut lines: mpsc::UnboundedReceiver<String>) {
    use std::io::Write as _;
    let mut out = std::io::stdout().lock();
    while let Some(line) = lines.blocking_recv() {
        if writeln!(out, "{line}").and_then(|()| out.flush()).is_err() {
            return;
        }
    }
}

/// SIGTERM.
pub(crate) async fn terminated() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut term) = signal(SignalKind::terminate()) {
            term.recv().await;
            return;
        }
    }
    std::future::pending::<()>().await;
}
