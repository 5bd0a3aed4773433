//! The hold test: take the next event, put one back at a random later time. Nothing but the queue.
//!
//! `cargo bench -p ressac-sim --bench hold` compares the queue with a binary heap.

#![allow(clippy::print_stdout)]

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hint::black_box;
use std::time::Instant;

use ressac_sim::{EventQueue, Stream};

const SPAN: u64 = 2_000_000_000;

fn main() {
    println!("{:>10} {:>16} {:>16}", "pending", "queue M/s", "heap M/s");
    for pending in [10, 1_000, 10_000, 100_000, 1_000_000, 5_000_000] {
        let steps = 4_000_000.max(2 * pending);
        let queue = hold_queue(pending, steps);
        let heap = hold_heap(pending, steps);
        println!("{pending:>10} {queue:>16.2} {heap:>16.2}");
    }
}

fn hold_queue(pending: u64, steps: u64) -> f64 {
    let mut random = Stream::new(1, "hold", pending);
    let mut queue = EventQueue::new();
    for id in 0..pending {
        queue.push(random.below(SPAN), id);
    }
    measure(steps, pending, || {
        if let Some((time, id)) = queue.pop() {
            queue.push(time + random.below(SPAN), black_box(id));
        }
    })
}

fn hold_heap(pending: u64, steps: u64) -> f64 {
    let mut random = Stream::new(1, "hold", pending);
    let mut heap = BinaryHeap::new();
    let mut sequence = 0u64;
    for id in 0..pending {
        heap.push(Reverse((random.below(SPAN), sequence, id)));
        sequence += 1;
    }
    measure(steps, pending, || {
        if let Some(Reverse((time, _, id))) = heap.pop() {
            heap.push(Reverse((
                time + random.below(SPAN),
                sequence,
                black_box(id),
            )));
            sequence += 1;
        }
    })
}

/// Millions a second, after every pending event has been moved once.
fn measure(steps: u64, warm_up: u64, mut step: impl FnMut()) -> f64 {
    for _ in 0..warm_up {
        step();
    }
    let begun = Instant::now();
    for _ in 0..steps {
        step();
    }
    steps as f64 / begun.elapsed().as_secs_f64() / 1e6
}
