//! A decision allocates nothing: an engine that is asked a million times a second must not.
#![allow(missing_docs, unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;
use ressac_policy::{
    Decision, Hint, Operation, OperationSpec, Outcome, Partner, Policy, Reason, Timestamp,
    VendorHints,
};

struct Counting;

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is passed on to `System` unchanged, with the layout and the pointer it came
// with, so `System`'s own guarantees are this allocator's. The counter is no allocation.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `alloc`, which is `System`'s.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: `pointer` came from `System.alloc` with this `layout`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Every kind of decision there is: sent, failed, hinted, held, opened, probed, ended.
fn decide(partner: &mut Partner, rng: &mut Xoshiro256PlusPlus, now: &mut Timestamp) -> u32 {
    let headers = [
        ("retry-after", &b"7"[..]),
        ("date", b"Mon, 30 Nov 2026 12:00:00 GMT"),
    ];
    let hint = Hint::from_headers(headers, *now, VendorHints::ALL);
    let (mut sent, mut delivered) = (0, 0);
    for round in 0..200u32 {
        let spec = OperationSpec::new("POST").with_honoured_key(None);
        let mut operation = Operation::new(&spec, partner.policy(), *now);
        for _ in 0..100 {
            match operation.poll(*now, partner, rng) {
                Decision::Send(_) => {
                    sent += 1;
                    let outcome = match (round + sent) % 5 {
                        0 => Outcome::status(200),
                        1 => Outcome::status(429).with_hint(hint),
                        2 => Outcome::status(401),
                        _ => Outcome::status(503),
                    };
                    operation.on_outcome(*now, &outcome, partner, rng);
                }
                Decision::Wait(wait) => *now = wait.until,
                Decision::End(end) => {
                    delivered += u32::from(end.reason == Reason::Delivered);
                    break;
                }
            }
        }
        *now = *now + Duration::from_millis(300);
    }
    assert!(sent > 200);
    delivered
}

// One test, so that no other thread of the harness allocates meanwhile.
#[test]
fn no_decision_allocates() {
    for policy in [Policy::sync(), Policy::durable()] {
        let mut now = Timestamp::from_secs(1_796_040_000);
        let mut partner = Partner::new(policy, now);
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        let before = ALLOCATIONS.load(Ordering::Relaxed);
        let delivered = decide(&mut partner, &mut rng, &mut now);
        let allocated = ALLOCATIONS.load(Ordering::Relaxed) - before;
        assert_eq!(allocated, 0);
        assert!(delivered > 10, "{delivered}");
        // The counter counts.
        drop(std::hint::black_box(Box::new(now)));
        assert!(ALLOCATIONS.load(Ordering::Relaxed) > before);
    }
}
