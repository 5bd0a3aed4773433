//! The partner at work: places, queue, refusals, faults.

use std::collections::VecDeque;

use super::Run;
use super::event::Event;
use crate::core::Stream;
use crate::model::{FaultKind, Order, ServerConfig, Service, nanos};

/// What a server answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Done,
    Failed,
    Rejected,
}

#[derive(Clone, Copy, Debug)]
struct Request {
    op: u32,
    tag: u32,
    arrived: u64,
    /// When its caller stops waiting.
    deadline: u64,
}

#[derive(Clone, Copy, Debug)]
struct Running {
    request: Request,
    ends: u64,
}

pub(super) struct Server {
    service: Service,
    limit: usize,
    queue: VecDeque<Request>,
    running: Vec<Option<Running>>,
    idle: Vec<u32>,
    /// Moves on when a fault voids the services that had begun.
    epoch: u32,
    refusing: bool,
    stopped: bool,
    slow: f64,
    /// Service time that refusals have cost and nobody has paid yet.
    debt: u64,
    random: Stream,
    in_system: u32,
    since: u64,
    /// Nanoseconds times requests in the system.
    pub(super) area: u128,
    /// Nanoseconds that those who left had spent in it.
    pub(super) sojourn: u128,
}

impl Server {
    pub(super) fn new(config: &ServerConfig, seed: u64) -> Self {
        Server {
            service: config.service,
            limit: config.queue.map_or(usize::MAX, |places| places as usize),
            queue: VecDeque::new(),
            running: vec![None; config.places as usize],
            idle: (0..config.places).rev().collect(),
            epoch: 0,
            refusing: false,
            stopped: false,
            slow: 1.0,
            debt: 0,
            random: Stream::new(seed, "service", 0),
            in_system: 0,
            since: 0,
            area: 0,
            sojourn: 0,
        }
    }

    pub(super) fn in_system(&self) -> u32 {
        self.in_system
    }

    /// Brings the area up to now.
    pub(super) fn account(&mut self, now: u64) {
        self.area += u128::from(self.in_system) * u128::from(now - self.since);
        self.since = now;
    }

    /// Nothing before now counts.
    pub(super) fn forget(&mut self, now: u64) {
        self.account(now);
        (self.area, self.sojourn) = (0, 0);
    }

    fn enters(&mut self, now: u64) {
        self.account(now);
        self.in_system += 1;
    }

    fn leaves(&mut self, request: &Request, now: u64) {
        self.account(now);
        self.in_system -= 1;
        self.sojourn += u128::from(now - request.arrived);
    }

    fn draw(&mut self) -> u64 {
        let time = match self.service {
            Service::Exponential(mean) => self.random.exponential(nanos(mean) as f64),
            Service::Fixed(time) => nanos(time) as f64,
        };
        (time * self.slow) as u64 + std::mem::take(&mut self.debt)
    }

    fn next(&mut self, order: Order) -> Option<Request> {
        match order {
            Order::Fifo => self.queue.pop_front(),
            Order::Lifo => self.queue.pop_back(),
        }
    }
}

impl Run<'_> {
    pub(super) fn arrive(&mut self, op: u32, tag: u32) {
        let attempt = self.slots[op as usize].operation.attempts();
        self.record.offered(self.now, op, attempt);
        let sent = self.now - self.half_trip;
        let request = Request {
            op,
            tag,
            arrived: self.now,
            deadline: sent.saturating_add(self.timeout),
        };
        let unlimited = self.server.running.is_empty();
        if self.server.refusing {
            self.reject(request);
        } else if unlimited && !self.server.stopped {
            self.answer(request);
        } else if let Some(place) = self.server.idle.pop_if(|_| !self.server.stopped) {
            self.server.enters(self.now);
            self.start(place, request);
        } else if self.server.queue.len() < self.server.limit {
            self.server.enters(self.now);
            self.server.queue.push_back(request);
        } else {
            self.server.debt += nanos(self.world.server.rejection.cost);
            self.reject(request);
        }
    }

    fn start(&mut self, place: u32, request: Request) {
        let ends = self.now + self.server.draw();
        self.server.running[place as usize] = Some(Running { request, ends });
        let epoch = self.server.epoch;
        self.at(ends, Event::Served { place, epoch });
    }

    pub(super) fn served(&mut self, place: u32, epoch: u32) {
        if epoch != self.server.epoch {
            return;
        }
        let Some(done) = self.server.running[place as usize].take() else {
            return;
        };
        self.server.leaves(&done.request, self.now);
        self.answer(done.request);
        self.work(place);
    }

    /// The place is free: the next who waits, if it is still worth it.
    fn work(&mut self, place: u32) {
        let config = &self.world.server;
        while let Some(request) = self.server.next(config.order) {
            let late = config
                .drop_margin
                .is_some_and(|margin| request.deadline < self.now + nanos(margin));
            if !late {
                return self.start(place, request);
            }
            self.server.leaves(&request, self.now);
            self.record.dropped(self.now);
        }
        self.server.idle.push(place);
    }

    fn answer(&mut self, request: Request) {
        let fail = self.world.server.fail;
        let failed = fail > 0.0 && self.server.random.chance(fail);
        self.record.served(self.now);
        let Request { op, tag, .. } = request;
        let event = if failed {
            Event::Failed { op, tag }
        } else {
            Event::Accepted { op, tag }
        };
        self.at(self.now + self.half_trip, event);
    }

    fn reject(&mut self, request: Request) {
        self.record.rejected(self.now);
        let Request { op, tag, .. } = request;
        self.at(self.now + self.half_trip, Event::Rejected { op, tag });
    }

    pub(super) fn fault_begins(&mut self, index: u32) {
        match self.world.server.faults[index as usize].kind {
            FaultKind::Slow(factor) => self.server.slow = factor,
            FaultKind::Stop => {
                self.server.stopped = true;
                self.server.epoch += 1;
            }
            FaultKind::Refuse => {
                self.server.refusing = true;
                self.server.epoch += 1;
                self.refuse_all();
            }
        }
    }

    fn refuse_all(&mut self) {
        for place in 0..self.server.running.len() {
            if let Some(running) = self.server.running[place].take() {
                self.server.leaves(&running.request, self.now);
                self.server.idle.push(place as u32);
                self.reject(running.request);
            }
        }
        while let Some(request) = self.server.queue.pop_front() {
            self.server.leaves(&request, self.now);
            self.reject(request);
        }
    }

    pub(super) fn fault_ends(&mut self, index: u32) {
        let fault = self.world.server.faults[index as usize];
        match fault.kind {
            FaultKind::Slow(_) => self.server.slow = 1.0,
            FaultKind::Refuse => self.server.refusing = false,
            FaultKind::Stop => {
                self.server.stopped = false;
                self.go_on(self.now - nanos(fault.from));
            }
        }
    }

    /// Work goes on where it had stopped.
    fn go_on(&mut self, stood: u64) {
        let epoch = self.server.epoch;
        for place in 0..self.server.running.len() as u32 {
            if let Some(running) = &mut self.server.running[place as usize] {
                running.ends += stood;
                let ends = running.ends;
                self.at(ends, Event::Served { place, epoch });
            }
        }
        if self.server.running.is_empty() {
            while let Some(request) = self.server.queue.pop_front() {
                self.server.leaves(&request, self.now);
                self.answer(request);
            }
        }
        for place in std::mem::take(&mut self.server.idle) {
            self.work(place);
        }
    }
}
