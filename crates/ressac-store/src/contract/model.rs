//! Random operations beside a model that is too simple to be wrong.

use std::collections::BTreeMap;
use std::time::Duration;

use uuid::Uuid;

use super::Harness;
use super::kit::{accepted, begin, dead, delivered, in_lane, lease_of, message, settle, waiting};
use crate::{Class, Counts, Discard, Filter, Lease, NewState, Outbox, PutBack, Replay, State};

const STEPS: u64 = 600;

/// A small generator, so that a failure can be run again from its seed.
struct Draw(u64);

impl Draw {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    fn pick(&mut self, from: &[Uuid]) -> Option<Uuid> {
        if from.is_empty() {
            return None;
        }
        let index = self.below(from.len() as u64);
        from.get(usize::try_from(index).unwrap()).copied()
    }
}

#[derive(Debug, Clone)]
struct Model {
    state: State,
    lane: Option<String>,
    /// Its order within its lane.
    place: u64,
    attempt: u32,
    class: Class,
}

struct World {
    messages: BTreeMap<Uuid, Model>,
    places: u64,
}

impl World {
    fn ids(&self, state: State) -> Vec<Uuid> {
        let ids = self
            .messages
            .iter()
            .filter(|(_, model)| model.state == state);
        ids.map(|(id, _)| *id).collect()
    }

    fn is_head(&self, id: Uuid) -> bool {
        let this = &self.messages[&id];
        let unfinished = |model: &Model| matches!(model.state, State::Waiting | State::Sending);
        this.lane.is_none()
            || !self.messages.values().any(|other| {
                other.lane == this.lane && unfinished(other) && other.place < this.place
            })
    }

    fn place(&mut self) -> u64 {
        self.places += 1;
        self.places
    }

    fn set(&mut self, id: Uuid, change: impl FnOnce(&mut Model)) {
        change(self.messages.get_mut(&id).unwrap());
    }
}

/// DM-3, DM-4: the counters that are kept are what a scan would find, and what is due is what the model
/// says, after any mixture of operations and restarts.
pub async fn counters_equal_a_full_scan(harness: &impl Harness) {
    for seed in [1, 2, 3] {
        let mut draw = Draw(seed);
        let mut world = World {
            messages: BTreeMap::new(),
            places: 0,
        };
        let mut store = harness.open().await;
        drop_all(&store).await;
        let mut lease = lease_of(&store, "a", "acme").await;
        for step in 0..STEPS {
            one_step(&store, &lease, &mut draw, &mut world, seed, step).await;
            if step % 50 == 49 {
                compare(&store, &world, seed, step).await;
            }
            if step % 200 == 199 {
                drop(store);
                store = harness.open().await;
                harness.advance(Duration::from_secs(3_600));
                lease = lease_of(&store, "a", "acme").await;
            }
        }
    }
}

/// Ends and prunes what an earlier seed left, so that each begins with an empty partner.
async fn drop_all(store: &impl Outbox) {
    let lease = lease_of(store, "a", "acme").await;
    let page = store.list(&Filter::default(), None, 1_000).await.unwrap();
    assert_eq!(page.next, None);
    for message in page.items {
        let id = message.id;
        if message.state == State::Dead {
            let again = Replay {
                id,
                due: 0,
                deadline: None,
                operation: Vec::new(),
            };
            store.replay(again).await.unwrap();
        }
    }
    let page = store.list(&Filter::default(), None, 1_000).await.unwrap();
    for message in page.items {
        let number = if message.state == State::Sending {
            message.attempts
        } else {
            0
        };
        if message.state != State::Delivered {
            let end = settle(store, message.id, number, delivered());
            assert_eq!(store.settle(&lease, vec![end]).await.unwrap(), [Ok(())]);
        }
    }
    while store.prune(u64::MAX, 1_000).await.unwrap() > 0 {}
    assert_eq!(store.counts("acme").await.unwrap(), Counts::default());
}

async fn one_step(
    store: &impl Outbox,
    lease: &Lease,
    draw: &mut Draw,
    world: &mut World,
    seed: u64,
    step: u64,
) {
    match draw.below(10) {
        0..=2 => accept(store, draw, world, &format!("{seed}-{step}")).await,
        3..=4 => {
            let Some(id) = draw.pick(&world.ids(State::Waiting)) else {
                return;
            };
            let attempt = world.messages[&id].attempt + 1;
            let ok = store
                .begin(lease, vec![begin(store, id, attempt)])
                .await
                .unwrap()[0]
                .is_ok();
            assert_eq!(ok, world.is_head(id), "seed {seed} step {step}: begin");
            if ok {
                world.set(id, |model| {
                    (model.state, model.attempt) = (State::Sending, attempt)
                });
            }
        }
        5..=6 => {
            let Some(id) = draw.pick(&world.ids(State::Sending)) else {
                return;
            };
            let (next, state, class) = outcome(draw, world.messages[&id].class);
            let item = settle(store, id, world.messages[&id].attempt, next);
            assert_eq!(store.settle(lease, vec![item]).await.unwrap(), [Ok(())]);
            world.set(id, |model| (model.state, model.class) = (state, class));
        }
        7 => put_back(store, lease, draw, world).await,
        8 => {
            let Some(id) = draw.pick(&world.ids(State::Dead)) else {
                return;
            };
            let again = Replay {
                id,
                due: 0,
                deadline: None,
                operation: Vec::new(),
            };
            store.replay(again).await.unwrap();
            let place = world.place();
            world.set(id, |model| {
                let lane = model.lane.take();
                *model = Model {
                    state: State::Waiting,
                    lane,
                    place,
                    attempt: 0,
                    class: Class::Replay,
                };
            });
        }
        _ => {
            let state = if draw.below(2) == 0 {
                State::Waiting
            } else {
                State::Sending
            };
            let Some(id) = draw.pick(&world.ids(state)) else {
                return;
            };
            let force = state == State::Sending;
            let (blame, processed) = (String::new(), String::new());
            let discard = Discard {
                id,
                force,
                blame,
                processed,
                operation: None,
            };
            store.discard(discard).await.unwrap();
            world.set(id, |model| model.state = State::Dead);
        }
    }
}

fn outcome(draw: &mut Draw, class: Class) -> (NewState, State, Class) {
    match draw.below(3) {
        0 => (delivered(), State::Delivered, class),
        1 => (dead("exhausted"), State::Dead, class),
        _ => (waiting(0), State::Waiting, Class::Retry),
    }
}

async fn accept(store: &impl Outbox, draw: &mut Draw, world: &mut World, key: &str) {
    let lane = draw.below(4);
    let new = match lane {
        0 | 1 => in_lane(store, &lane.to_string(), key),
        _ => message(store, "acme", key, key),
    };
    let lane = new.lane.clone();
    let id = accepted(store, new).await.id;
    let place = world.place();
    let model = Model {
        state: State::Waiting,
        lane,
        place,
        attempt: 0,
        class: Class::First,
    };
    world.messages.insert(id, model);
}

async fn put_back(store: &impl Outbox, lease: &Lease, draw: &mut Draw, world: &mut World) {
    let Some(id) = draw.pick(&world.ids(State::Sending)) else {
        return;
    };
    let class = world.messages[&id].class;
    let because = "breaker".to_owned();
    let item = PutBack {
        id,
        due: 0,
        because,
        class,
        operation: Vec::new(),
    };
    assert_eq!(store.put_back(lease, vec![item]).await.unwrap(), [Ok(())]);
    world.set(id, |model| {
        model.state = State::Waiting;
        model.attempt -= 1;
    });
}

async fn compare(store: &impl Outbox, world: &World, seed: u64, step: u64) {
    let counts = store.counts("acme").await.unwrap();
    let kept = [
        counts.waiting,
        counts.sending,
        counts.delivered,
        counts.dead,
    ];
    for (state, kept) in State::ALL.into_iter().zip(kept) {
        let wanted = world.ids(state);
        assert_eq!(
            kept,
            wanted.len() as u64,
            "seed {seed} step {step}: {state}"
        );
        let filter = Filter {
            state: Some(state),
            ..Filter::default()
        };
        let page = store.list(&filter, None, 1_000).await.unwrap();
        let mut listed: Vec<_> = page.items.iter().map(|item| item.id).collect();
        listed.sort_unstable();
        assert_eq!(listed, wanted, "seed {seed} step {step}: {state}");
    }
    for class in [Class::First, Class::Retry, Class::Replay] {
        let due = store
            .due("acme", class, store.now(), 1_000, None)
            .await
            .unwrap();
        let mut due: Vec<_> = due.iter().map(|message| message.id).collect();
        due.sort_unstable();
        let mut wanted = world.ids(State::Waiting);
        wanted.retain(|id| world.messages[id].class == class && world.is_head(*id));
        assert_eq!(due, wanted, "seed {seed} step {step}: {class:?}");
    }
}
