//! One run: the events, and what becomes of each.

mod ahead;
mod event;
mod histogram;
mod line;
mod record;
mod sender;
mod server;

use std::collections::VecDeque;
use std::sync::Arc;

use ressac_policy::{Mode, Operation, OperationSpec, Partner, Policy, Timestamp};

use self::event::{Event, Packed};
use self::line::Lines;
use self::server::Server;
use crate::core::{EventQueue, Stream, roomy};
use crate::model::{Arrivals, World, nanos};

pub use self::histogram::Histogram;
pub use self::record::{Bin, Phase, Record, Totals};

/// Runs a world with one policy and one seed, from its first moment to its horizon.
///
/// `detailed` also keeps the raster of arrivals and the state of breakers and budgets over time.
///
/// ```
/// use std::time::Duration;
/// use ressac_policy::Policy;
/// use ressac_sim::{Arrivals, Clients, ServerConfig, World, simulate};
///
/// let world = World {
///     horizon: Duration::from_secs(20),
///     warm_up: Duration::ZERO,
///     bin: Duration::from_millis(100),
///     round_trip: Duration::from_millis(10),
///     server: ServerConfig::single(1_200.0),
///     clients: Clients { instances: 10, ..Clients::default() },
///     arrivals: Arrivals::Poisson { rate: 100.0, until: None },
/// };
/// let record = simulate(&world, &Policy::sync().into(), 1, false);
/// assert_eq!(record, simulate(&world, &Policy::sync().into(), 1, false));
/// assert_eq!(record.totals.lost, 0);
/// ```
#[must_use]
pub fn simulate(world: &World, policy: &Arc<Policy>, seed: u64, detailed: bool) -> Record {
    let mut run = Run::new(world, policy, seed, detailed);
    run.begin();
    run.go();
    run.end()
}

/// A client: its partner, its own random numbers, and who waits in it.
struct Sender {
    partner: Partner,
    random: Stream,
    /// When a wake-up is pending for.
    wake: u64,
    lines: Option<Box<Lines>>,
}

/// An operation, and where it belongs.
struct Slot {
    operation: Operation,
    born: u64,
    /// No attempt before this moment, if the partner is to be obeyed.
    told: u64,
    sent: u64,
    /// Odd while an attempt is in flight. Moves on with each attempt and each end of one, so that
    /// what comes late is told from what is awaited.
    tag: u32,
    sender: u32,
    parent: u32,
    parent_tag: u32,
}

const NOBODY: u32 = u32::MAX;

struct Run<'a> {
    world: &'a World,
    policy: Arc<Policy>,
    /// The same policy for a caller who waits: what a retry's success is told to where durable
    /// clients do not give tokens back.
    keeping: Option<Arc<Policy>>,
    spec: OperationSpec,
    now: u64,
    horizon: u64,
    half_trip: u64,
    timeout: u64,
    queue: EventQueue<Packed>,
    slots: Vec<Slot>,
    free: Vec<u32>,
    senders: Vec<Sender>,
    server: Server,
    arrivals: Stream,
    /// Time limits of attempts, all of the same length and so in order.
    limits: VecDeque<(u64, u32, u32)>,
    record: Record,
    /// The batch of events that was looked at ahead of its time.
    looked_at: u64,
}

impl<'a> Run<'a> {
    fn new(world: &'a World, policy: &Arc<Policy>, seed: u64, detailed: bool) -> Self {
        let clients = &world.clients;
        let count = u64::from(clients.instances) * u64::from(clients.layers);
        let mut senders = roomy(usize::try_from(count).unwrap_or(usize::MAX));
        senders.extend((0..count).map(|index| Sender {
            partner: Partner::new(Arc::clone(policy), Timestamp::ZERO),
            random: Stream::new(seed, "client", index),
            wake: u64::MAX,
            lines: None,
        }));
        let keeping = (!clients.gives_back && policy.mode == Mode::Durable).then(|| {
            Arc::new(Policy {
                mode: Mode::Synchronous,
                ..(**policy).clone()
            })
        });
        Run {
            world,
            policy: Arc::clone(policy),
            keeping,
            // Repeating it does no harm: what may be repeated is not what is simulated.
            spec: OperationSpec::new("PUT"),
            now: 0,
            horizon: nanos(world.horizon),
            half_trip: nanos(world.round_trip) / 2,
            timeout: nanos(policy.attempt_timeout),
            queue: EventQueue::new(),
            slots: roomy(clients.instances as usize),
            free: Vec::new(),
            senders,
            server: Server::new(&world.server, seed),
            arrivals: Stream::new(seed, "arrivals", 0),
            limits: VecDeque::new(),
            record: Record::new(world, detailed),
            looked_at: 0,
        }
    }

    /// The first arrivals, and the faults.
    fn begin(&mut self) {
        for (index, fault) in self.world.server.faults.iter().enumerate() {
            let index = index as u32;
            self.at(nanos(fault.from), Event::FaultBegins { index });
            self.at(nanos(fault.to), Event::FaultEnds { index });
        }
        match self.world.arrivals {
            Arrivals::Poisson { .. } => self.next_poisson(),
            Arrivals::Bursts { .. } => self.at(
                0,
                Event::Arrival {
                    client: NOBODY >> 4,
                },
            ),
            Arrivals::Closed { .. } => {
                for client in 0..self.world.clients.instances {
                    self.think(client);
                }
            }
            Arrivals::Once { at, within } => {
                for client in 0..self.world.clients.instances {
                    let spread = self.arrivals.below(nanos(within).max(1));
                    self.at(nanos(at) + spread, Event::Arrival { client });
                }
            }
        }
    }

    fn go(&mut self) {
        let ahead = self.senders.len() > ahead::FITS_THE_CACHE;
        while let Some((time, packed)) = self.queue.pop() {
            if ahead {
                self.look_ahead();
            }
            if time >= self.horizon {
                break;
            }
            self.now = time;
            self.record.totals.events += 1;
            if time >= self.record.next_bin {
                self.turn_bin();
            }
            self.handle(packed.unpack());
        }
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Arrival { client } => self.arrival(client),
            Event::Due { op, tag } => self.due(op, tag),
            Event::AtServer { op, tag } => self.arrive(op, tag),
            Event::Served { place, epoch } => self.served(place, epoch),
            Event::Accepted { op, tag } => self.answered(op, tag, server::Answer::Done),
            Event::Failed { op, tag } => self.answered(op, tag, server::Answer::Failed),
            Event::Rejected { op, tag } => self.answered(op, tag, server::Answer::Rejected),
            Event::Limit => self.limits_pass(),
            Event::OwnLimit { op, tag } => self.limit_passes(op, tag),
            Event::Wake { sender } => self.wake(sender),
            Event::FaultBegins { index } => self.fault_begins(index),
            Event::FaultEnds { index } => self.fault_ends(index),
        }
    }

    fn arrival(&mut self, client: u32) {
        match self.world.arrivals {
            Arrivals::Poisson { .. } => {
                self.next_poisson();
                self.operation_anywhere();
            }
            Arrivals::Bursts { every, size } => {
                for _ in 0..size {
                    self.operation_anywhere();
                }
                self.at(self.now + nanos(every).max(1), Event::Arrival { client });
            }
            Arrivals::Closed { .. } | Arrivals::Once { .. } => {
                self.create(client, NOBODY, 0);
            }
        }
    }

    fn operation_anywhere(&mut self) {
        let client = self.arrivals.below(u64::from(self.world.clients.instances)) as u32;
        self.create(client, NOBODY, 0);
    }

    fn next_poisson(&mut self) {
        if let Arrivals::Poisson { rate, until } = self.world.arrivals {
            let next = self.now + self.arrivals.exponential(1e9 / rate) as u64;
            if next < until.map_or(self.horizon, nanos) {
                self.at(next, Event::Arrival { client: 0 });
            }
        }
    }

    /// The next operation of a client in a closed loop.
    fn think(&mut self, client: u32) {
        if let Arrivals::Closed { think } = self.world.arrivals {
            let random = &mut self.senders[client as usize].random;
            let pause = random.exponential(nanos(think) as f64) as u64;
            self.at(self.now + pause, Event::Arrival { client });
        }
    }

    fn at(&mut self, time: u64, event: Event) {
        self.queue.push(time, Packed::of(event));
    }

    fn moment(&self) -> Timestamp {
        Timestamp::from_nanos(self.now)
    }

    fn turn_bin(&mut self) {
        let in_system = self.server.in_system();
        self.record.turn(self.now, in_system);
        if self.record.warm_up_is_over(self.now) {
            self.server.forget(self.now);
        }
        if self.record.detailed {
            let now = self.moment();
            let shown = &self.senders[..self.senders.len().min(200)];
            self.record.watch(shown.iter().map(|s| s.partner.view(now)));
        }
    }

    fn end(mut self) -> Record {
        self.now = self.now.max(self.record.last_counted());
        self.server.account(self.now);
        self.record.totals.in_flight = (self.slots.len() - self.free.len()) as u64;
        self.record.totals.left_in_server = u64::from(self.server.in_system());
        self.record.totals.server_area = self.server.area;
        self.record.totals.server_sojourn = self.server.sojourn;
        let now = self.moment();
        let tokens = self.senders.iter().map(|s| s.partner.view(now).tokens);
        self.record.totals.tokens_left = tokens.flatten().sum();
        self.record
    }
}
