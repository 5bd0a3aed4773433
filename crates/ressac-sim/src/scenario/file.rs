//! The file of a scenario, and what it means.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use std::time::Duration;

use ressac_config::{Config, Environment, parse_duration, parse_rate};
use serde::{Deserialize, Deserializer};

use super::ScenarioError;
use crate::model::{
    Arrivals, Clients, Fault, FaultKind, Order, Rejection, ServerConfig, Service, World,
};

/// The largest scenario file that is read.
const MAX_FILE: u64 = 1 << 20;
/// The most clients, layers included.
const MAX_CLIENTS: u64 = 20_000_000;
/// The most bins that figures over time are kept in.
const MAX_BINS: u128 = 2_000_000;

/// Which figures a scenario is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Report {
    /// Peaks, amplification, losses, recovery around one outage.
    #[default]
    Outage,
    /// Who comes back when, of clients told the same time.
    Edi,
    /// Peaks of clients that failed at one instant.
    Herd,
    /// Calls at the bottom of layers.
    Layers,
    /// Recovery over load and length of a trigger.
    Metastable,
    /// Peaks when breakers close.
    Breaker,
    /// The optimistic-concurrency model.
    Occ,
}

/// A world, its policies, and the points to run.
///
/// ```
/// use ressac_sim::Scenario;
///
/// let text = r#"
/// about = "A second of refusals"
/// horizon = "10s"
/// server = { rate = "100/s", queue = 50 }
/// arrivals = { kind = "poisson", rate = "50/s" }
/// [[fault]]
/// from = "3s"
/// to = "4s"
/// [policy.mine]
/// retries = 3
/// [[run]]
/// policy = "mine"
/// "#;
/// let scenario = Scenario::parse("mine.toml", text).unwrap();
/// assert_eq!(scenario.points(&[]).unwrap()[0].policy.retries, 3);
///
/// let wrong = Scenario::parse("mine.toml", "horizont = \"10s\"").unwrap_err();
/// assert!(wrong.to_string().contains("horizont"));
/// ```
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Its name, or its file.
    pub name: String,
    /// One sentence on what it shows.
    pub about: String,
    /// Which figures it is about.
    pub report: Report,
    /// Replications, unless somebody asks for more or fewer.
    pub seeds: u32,
    /// All but the policy, where a run says nothing else.
    pub world: World,
    /// The time that a run goes on after the last fault, where that decides the horizon.
    pub(super) after: Option<Duration>,
    pub(super) policies: Config,
    pub(super) runs: Vec<RunFile>,
    /// Numbers of clients, for the optimistic-concurrency model.
    pub points_of_clients: Vec<u32>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    about: String,
    #[serde(default)]
    report: Report,
    seeds: Option<u32>,
    horizon: Option<Time>,
    after: Option<Time>,
    warm_up: Option<Time>,
    bin: Option<Time>,
    round_trip: Option<Time>,
    #[serde(default)]
    server: ServerFile,
    #[serde(default)]
    fault: Vec<FaultFile>,
    #[serde(default)]
    clients: ClientsFile,
    arrivals: Option<ArrivalsFile>,
    #[serde(default)]
    policy: toml::Table,
    #[serde(default)]
    run: Vec<RunFile>,
    #[serde(default)]
    points: Vec<u32>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct ServerFile {
    rate: Option<PerSecond>,
    #[serde(default)]
    places: Option<u32>,
    #[serde(default)]
    service: ServiceFile,
    queue: Option<u32>,
    #[serde(default)]
    order: OrderFile,
    drop_margin: Option<Time>,
    fail: Option<f64>,
    status: Option<u16>,
    retry_after: Option<Time>,
    refusal_cost: Option<Time>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ServiceFile {
    #[default]
    Exponential,
    Fixed,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum OrderFile {
    #[default]
    Fifo,
    Lifo,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FaultFile {
    from: Time,
    to: Time,
    #[serde(default)]
    kind: FaultWord,
    factor: Option<f64>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum FaultWord {
    #[default]
    Refuse,
    Stop,
    Slow,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct ClientsFile {
    instances: Option<u32>,
    layers: Option<u32>,
    marks: Option<bool>,
    hears_hints: Option<bool>,
    gives_back: Option<bool>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, tag = "kind", rename_all = "lowercase")]
enum ArrivalsFile {
    Poisson {
        rate: PerSecond,
        until: Option<Time>,
    },
    Closed {
        think: Time,
    },
    Once {
        at: Option<Time>,
        within: Option<Time>,
    },
    Bursts {
        every: Time,
        size: u32,
    },
}

/// A policy, and where its world differs.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RunFile {
    pub(super) policy: String,
    pub(super) label: Option<String>,
    pub(super) instances: Option<u32>,
    pub(super) layers: Option<u32>,
    pub(super) marks: Option<bool>,
    pub(super) hears_hints: Option<bool>,
    pub(super) gives_back: Option<bool>,
    pub(super) fail: Option<f64>,
    pub(super) horizon: Option<Time>,
    pub(super) queue: Option<u32>,
    pub(super) order: Option<OrderFile>,
    pub(super) drop_margin: Option<Time>,
    /// Shown in the plots from the beginning. Where no run says so, the first eight are.
    #[serde(default)]
    pub(super) plot: bool,
    /// Each with each of `outages`.
    #[serde(default)]
    pub(super) loads: Vec<PerSecond>,
    #[serde(default)]
    pub(super) outages: Vec<Time>,
    /// Published figures: mean, and deviation of one run where it is known.
    #[serde(default)]
    pub(super) reference: BTreeMap<String, Vec<f64>>,
}

impl Scenario {
    /// A built-in scenario, or the one in a file.
    ///
    /// # Errors
    ///
    /// If there is neither, or it is wrong.
    pub fn load(name: &str) -> Result<Scenario, ScenarioError> {
        if super::built_in_names().any(|known| known == name) || !Path::new(name).exists() {
            return super::built_in(name);
        }
        let unreadable = |why: String| ScenarioError::Unreadable {
            path: name.to_owned(),
            why,
        };
        let file = std::fs::File::open(name).map_err(|error| unreadable(error.to_string()))?;
        let mut text = String::new();
        let mut limited = file.take(MAX_FILE + 1);
        limited
            .read_to_string(&mut text)
            .map_err(|error| unreadable(error.to_string()))?;
        if text.len() as u64 > MAX_FILE {
            return Err(unreadable("larger than 1 MiB".to_owned()));
        }
        Scenario::parse(name, &text)
    }

    /// Reads the text of a scenario.
    ///
    /// # Errors
    ///
    /// Says which line or key is wrong, and what to write.
    pub fn parse(name: &str, text: &str) -> Result<Scenario, ScenarioError> {
        let file: File = toml::from_str(text).map_err(|error| ScenarioError::Syntax {
            name: name.to_owned(),
            why: error.to_string(),
        })?;
        let policies = policies(name, &file.policy)?;
        let scenario = Scenario {
            name: name.to_owned(),
            report: file.report,
            seeds: file.seeds.unwrap_or(20),
            after: file.after.map(|time| time.0),
            world: world(name, &file)?,
            about: file.about,
            policies,
            runs: file.run,
            points_of_clients: file.points,
        };
        scenario.check(&scenario.world)?;
        Ok(scenario)
    }

    /// Refuses a world that cannot be run in the memory of a machine.
    pub(super) fn check(&self, world: &World) -> Result<(), ScenarioError> {
        let clients = u64::from(world.clients.instances) * u64::from(world.clients.layers);
        if clients == 0 || clients > MAX_CLIENTS {
            let what = format!("from 1 to {MAX_CLIENTS} clients, layers included");
            return Err(self.refuse("clients", what));
        }
        let bin = world.bin.as_nanos();
        if bin == 0 || 1_000_000_000 % bin != 0 {
            return Err(self.refuse("bin", "a part of a second, e.g. \"100ms\"".to_owned()));
        }
        if world.horizon.as_nanos() / bin > MAX_BINS {
            return Err(self.refuse("horizon", format!("more than {MAX_BINS} bins long")));
        }
        let mut last = Duration::ZERO;
        for fault in &world.server.faults {
            if fault.from < last || fault.to <= fault.from {
                let what = "each begins before it ends, and after the one before it";
                return Err(self.refuse("fault", what.to_owned()));
            }
            last = fault.to;
        }
        Ok(())
    }

    /// Refuses a point that was changed from outside.
    pub(crate) fn check_point(&self, world: &World) -> Result<(), ScenarioError> {
        self.check(world)
    }

    pub(crate) fn no_boundary(&self) -> ScenarioError {
        let what = "an open loop and a partner with a capacity are needed for a boundary";
        self.refuse("arrivals", what.to_owned())
    }

    pub(super) fn refuse(&self, key: &str, what: String) -> ScenarioError {
        ScenarioError::Value {
            name: self.name.clone(),
            key: key.to_owned(),
            what,
        }
    }
}

fn policies(name: &str, table: &toml::Table) -> Result<Config, ScenarioError> {
    let mut whole = toml::Table::new();
    whole.insert("policy".to_owned(), toml::Value::Table(table.clone()));
    let text = toml::to_string(&whole).map_err(|error| ScenarioError::Syntax {
        name: name.to_owned(),
        why: error.to_string(),
    })?;
    Config::parse(name, &text, &Environment::ignored()).map_err(|error| ScenarioError::Policy {
        name: name.to_owned(),
        error,
    })
}

fn world(name: &str, file: &File) -> Result<World, ScenarioError> {
    let value = |key: &str, what: &str| ScenarioError::Value {
        name: name.to_owned(),
        key: key.to_owned(),
        what: what.to_owned(),
    };
    let time = |time: &Option<Time>, default: u64| {
        time.map_or(Duration::from_millis(default), |time| time.0)
    };
    let fail = file.server.fail.unwrap_or(0.0);
    if !(0.0..=1.0).contains(&fail) {
        return Err(value("server.fail", "a share from 0 to 1"));
    }
    let mut server = server(&file.server);
    for fault in &file.fault {
        let kind = match (fault.kind, fault.factor) {
            (FaultWord::Refuse, _) => FaultKind::Refuse,
            (FaultWord::Stop, _) => FaultKind::Stop,
            (FaultWord::Slow, Some(factor)) if factor > 0.0 && factor.is_finite() => {
                FaultKind::Slow(factor)
            }
            (FaultWord::Slow, _) => {
                return Err(value("fault.factor", "how many times as slow, e.g. 4"));
            }
        };
        server.faults.push(Fault {
            from: fault.from.0,
            to: fault.to.0,
            kind,
        });
    }
    let clients = &file.clients;
    Ok(World {
        horizon: time(&file.horizon, 60_000),
        warm_up: time(&file.warm_up, 0),
        bin: time(&file.bin, 100),
        round_trip: time(&file.round_trip, 10),
        server,
        clients: Clients {
            instances: clients.instances.unwrap_or(1),
            layers: clients.layers.unwrap_or(1),
            marks: clients.marks.unwrap_or(true),
            hears_hints: clients.hears_hints.unwrap_or(true),
            gives_back: clients.gives_back.unwrap_or(true),
        },
        arrivals: arrivals(file.arrivals.as_ref()),
    })
}

fn server(file: &ServerFile) -> ServerConfig {
    let Some(rate) = file.rate else {
        return ServerConfig {
            fail: file.fail.unwrap_or(0.0),
            rejection: rejection(file),
            ..ServerConfig::instant()
        };
    };
    let mean = Duration::from_secs_f64(1.0 / rate.0);
    ServerConfig {
        places: file.places.unwrap_or(1),
        service: match file.service {
            ServiceFile::Exponential => Service::Exponential(mean),
            ServiceFile::Fixed => Service::Fixed(mean),
        },
        queue: file.queue,
        order: file.order.into(),
        rejection: rejection(file),
        drop_margin: file.drop_margin.map(|time| time.0),
        fail: file.fail.unwrap_or(0.0),
        faults: Vec::new(),
    }
}

fn rejection(file: &ServerFile) -> Rejection {
    Rejection {
        status: file.status.unwrap_or(503),
        retry_after: file.retry_after.map(|time| time.0),
        cost: file.refusal_cost.map(|time| time.0).unwrap_or_default(),
    }
}

fn arrivals(file: Option<&ArrivalsFile>) -> Arrivals {
    match file {
        None => Arrivals::Once {
            at: Duration::ZERO,
            within: Duration::ZERO,
        },
        Some(ArrivalsFile::Poisson { rate, until }) => Arrivals::Poisson {
            rate: rate.0,
            until: until.map(|time| time.0),
        },
        Some(ArrivalsFile::Closed { think }) => Arrivals::Closed { think: think.0 },
        Some(ArrivalsFile::Once { at, within }) => Arrivals::Once {
            at: at.map(|time| time.0).unwrap_or_default(),
            within: within.map(|time| time.0).unwrap_or_default(),
        },
        Some(ArrivalsFile::Bursts { every, size }) => Arrivals::Bursts {
            every: every.0,
            size: *size,
        },
    }
}

impl From<OrderFile> for Order {
    fn from(word: OrderFile) -> Order {
        match word {
            OrderFile::Fifo => Order::Fifo,
            OrderFile::Lifo => Order::Lifo,
        }
    }
}

/// `"500ms"`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Time(pub(super) Duration);

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let time = parse_duration(&text).map_err(serde::de::Error::custom)?;
        Ok(Time(time))
    }
}

/// `"1000/s"`.
#[derive(Clone, Copy, Debug)]
pub(super) struct PerSecond(pub(super) f64);

impl<'de> Deserialize<'de> for PerSecond {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let rate = parse_rate(&text).map_err(serde::de::Error::custom)?;
        Ok(PerSecond(rate.per_second_f64()))
    }
}
