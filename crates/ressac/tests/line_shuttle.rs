//! Nobody in the line before a partner waits for ever, in whatever order the threads run.
//!
//! The sources of the line and of what its clones share are compiled here once more, under the lock
//! and the tasks of shuttle, which tries their orders at random and fails where all are blocked.
//! There is no time in it: a call that is lost stays lost.
#![allow(missing_docs, dead_code, unreachable_pub, clippy::unwrap_used)]

#[path = "../src/partner/line.rs"]
mod line;
#[path = "../src/partner/shared.rs"]
mod shared;

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;
use ressac_policy::{
    BreakerConfig, Decision, Operation, OperationSpec, Outcome, OutcomeKind, Partner, Policy,
    Reason, Timestamp,
};
use shuttle::sync::Mutex;

use self::line::{Line, Spot};
use self::shared::Core;

const NOW: Timestamp = Timestamp::from_secs(1_000);

fn core(policy: Policy) -> Arc<Mutex<Core>> {
    Arc::new(Mutex::new(Core {
        engine: Partner::new(policy, NOW),
        rng: Xoshiro256PlusPlus::seed_from_u64(1),
        keys: Xoshiro256PlusPlus::seed_from_u64(2),
        line: Line::default(),
        latest: NOW,
    }))
}

fn policy(places: u32) -> Policy {
    let mut policy = Policy {
        retries: 0,
        window: None,
        breaker: None,
        budget: None,
        ..Policy::sync()
    };
    policy.limit.concurrency = Some(places);
    policy
}

/// An operation as the executor drives it: what of that touches the line.
struct Call {
    core: Arc<Mutex<Core>>,
    operation: Operation,
    spot: Option<Spot>,
    waits: bool,
    ended: bool,
}

impl Call {
    fn new(core: &Arc<Mutex<Core>>) -> Self {
        let operation = {
            let core = core.lock().unwrap();
            Operation::new(&OperationSpec::new("GET"), core.engine.policy(), NOW)
        };
        let core = Arc::clone(core);
        Call {
            core,
            operation,
            spot: None,
            waits: false,
            ended: false,
        }
    }

    fn settle(&mut self, outcome: &Outcome) -> Decision {
        let (decision, called) =
            self.core
                .lock()
                .unwrap()
                .settle(NOW, &mut self.operation, outcome);
        called.wake();
        self.ended = true;
        decision
    }
}

/// Ready when the attempt may go, or with the reason why it never will.
impl Future for Call {
    type Output = Result<(), Reason>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        loop {
            if this.waits {
                let spot = this.spot.unwrap();
                if this.core.lock().unwrap().line.stay(spot, cx.waker()) {
                    return Poll::Pending;
                }
                this.waits = false;
            }
            let (decision, called) =
                this.core
                    .lock()
                    .unwrap()
                    .poll(NOW, &mut this.operation, &mut this.spot, || {
                        cx.waker().clone()
                    });
            called.wake();
            match decision {
                Decision::Send(_) => return Poll::Ready(Ok(())),
                Decision::Wait(_) => this.waits = true,
                Decision::End(end) => {
                    this.ended = true;
                    return Poll::Ready(Err(end.reason));
                }
            }
        }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        if !self.ended {
            let (_, called) =
                self.core
                    .lock()
                    .unwrap()
                    .cancel(NOW, &mut self.operation, &mut self.spot);
            called.wake();
        }
    }
}

async fn operate(core: Arc<Mutex<Core>>, outcome: Outcome) -> Result<(), Reason> {
    let mut call = Call::new(&core);
    (&mut call).await?;
    shuttle::future::yield_now().await;
    call.settle(&outcome);
    Ok(())
}

#[test]
fn everybody_gets_a_place() {
    shuttle::check_random(
        || {
            let core = core(policy(1));
            let tasks: Vec<_> = (0..4)
                .map(|_| shuttle::future::spawn(operate(core.clone(), Outcome::success())))
                .collect();
            shuttle::future::block_on(async {
                for task in tasks {
                    assert_eq!(task.await.unwrap(), Ok(()));
                }
            });
            assert!(core.lock().unwrap().line.is_empty());
        },
        1_000,
    );
}

/// Whoever is dropped after he was called passes the call on.
#[test]
fn those_who_give_up_take_no_call_with_them() {
    shuttle::check_random(
        || {
            let core = core(policy(1));
            let stay = (0..3)
                .map(|_| shuttle::future::spawn(operate(core.clone(), Outcome::success())))
                .collect::<Vec<_>>();
            let leave = (0..2)
                .map(|_| shuttle::future::spawn(operate(core.clone(), Outcome::success())))
                .collect::<Vec<_>>();
            shuttle::future::block_on(async {
                for task in leave {
                    shuttle::future::yield_now().await;
                    task.abort();
                    drop(task.await);
                }
                for task in stay {
                    assert_eq!(task.await.unwrap(), Ok(()));
                }
            });
            let view = core.lock().unwrap().engine.view(NOW);
            assert_eq!(view.in_flight, 0);
        },
        1_000,
    );
}

/// The breaker opens while some are in line: all of them hear it.
#[test]
fn everybody_in_line_hears_of_the_open_breaker() {
    shuttle::check_random(
        || {
            let policy = Policy {
                breaker: Some(BreakerConfig {
                    consecutive: Some(2),
                    ..BreakerConfig::default()
                }),
                ..policy(2)
            };
            let core = core(policy);
            let refused = Outcome::new(OutcomeKind::Refused);
            let tasks: Vec<_> = (0..6)
                .map(|_| shuttle::future::spawn(operate(core.clone(), refused)))
                .collect();
            shuttle::future::block_on(async {
                let mut open = 0;
                for task in tasks {
                    open += usize::from(task.await.unwrap() == Err(Reason::CircuitOpen));
                }
                assert!(open > 0);
            });
        },
        1_000,
    );
}
