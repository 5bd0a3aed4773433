//! The pending events, in order of time: a ladder queue.
//!
//! A binary heap touches `log2 n` cache lines for each event, which is 20 misses at a million
//! pending. Here an event is moved a constant number of times: into the unsorted *top*, from
//! there into a *bucket* of a rung, and with its bucket into the short sorted *bottom*, from
//! which it is taken. A bucket that is too full becomes a rung of its own, so that the queue
//! adapts to any spread of times without a parameter; a handful of events never leave the bottom.

/// So many events are sorted as they are; more are first spread over buckets.
const SORTABLE: usize = 96;
/// Events that a bucket is meant to hold.
const PER_BUCKET: usize = 24;
/// A bottom that has grown beyond this by insertion is spread over buckets.
const BOTTOM: usize = 512;
/// The last moment there is: 146 years. Sums of two moments then cannot overflow.
const END_OF_TIME: u64 = 1 << 62;
/// No rung has more buckets: their heads then still fit a second-level cache.
const MOST_BUCKETS: usize = 1 << 17;

/// A queue of events, ordered by time and, among equals, by order of insertion.
///
/// Times are integer nanoseconds, so that the order is the same on every machine.
///
/// ```
/// use ressac_sim::EventQueue;
///
/// let mut queue = EventQueue::new();
/// queue.push(20, 'c');
/// queue.push(10, 'a');
/// queue.push(20, 'd');
/// queue.push(10, 'b');
/// let order: String = std::iter::from_fn(|| queue.pop()).map(|(_, event)| event).collect();
/// assert_eq!(order, "abcd");
/// ```
#[derive(Clone, Debug)]
pub struct EventQueue<E> {
    /// Sorted, the next one last.
    bottom: Vec<Entry<E>>,
    /// The last is the one that the bottom is fed from.
    rungs: Vec<Rung<E>>,
    /// Unsorted; nothing in it is before `top_from`.
    top: Vec<Entry<E>>,
    top_from: u64,
    top_least: u64,
    top_most: u64,
    sequence: u64,
    length: usize,
    batches: u64,
    /// Rungs that were used up, for their allocations.
    spare: Vec<Rung<E>>,
}

#[derive(Clone, Copy, Debug)]
struct Entry<E> {
    time: u64,
    sequence: u64,
    event: E,
}

impl<E> Entry<E> {
    fn key(&self) -> u128 {
        u128::from(self.time) << 64 | u128::from(self.sequence)
    }
}

/// Buckets of equal width, a power of two.
#[derive(Clone, Debug)]
struct Rung<E> {
    start: u64,
    shift: u32,
    /// Buckets before this one have been taken.
    current: usize,
    used: usize,
    buckets: Vec<Vec<Entry<E>>>,
    length: usize,
}

impl<E> Rung<E> {
    /// Where the first bucket begins that has not been taken.
    fn from(&self) -> u64 {
        self.start + ((self.current as u64) << self.shift)
    }

    fn push(&mut self, entry: Entry<E>) {
        let index = ((entry.time - self.start) >> self.shift) as usize;
        self.buckets[index].push(entry);
        self.length += 1;
    }
}

impl<E: Copy> Default for EventQueue<E> {
    fn default() -> Self {
        EventQueue::new()
    }
}

impl<E: Copy> EventQueue<E> {
    /// An empty queue.
    #[must_use]
    pub const fn new() -> Self {
        EventQueue {
            bottom: Vec::new(),
            rungs: Vec::new(),
            top: Vec::new(),
            top_from: 0,
            top_least: u64::MAX,
            top_most: 0,
            sequence: 0,
            length: 0,
            batches: 0,
            spare: Vec::new(),
        }
    }

    /// How many events are pending.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.length
    }

    /// Is nothing pending?
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Adds an event at a time, in nanoseconds; at the latest 2^62 (146 years). A time before the
    /// last one popped comes next.
    #[inline]
    pub fn push(&mut self, time: u64, event: E) {
        let time = time.min(END_OF_TIME);
        let entry = Entry {
            time,
            sequence: self.sequence,
            event,
        };
        self.sequence += 1;
        self.length += 1;
        if time >= self.top_from {
            self.top_least = self.top_least.min(time);
            self.top_most = self.top_most.max(time);
            self.top.push(entry);
            return;
        }
        for rung in &mut self.rungs {
            if time >= rung.from() {
                return rung.push(entry);
            }
        }
        // The newest of its time goes after its equals, that is before them from the end.
        let at = self.bottom.partition_point(|other| other.time > time);
        self.bottom.insert(at, entry);
        if self.bottom.len() > BOTTOM {
            self.spread_bottom();
        }
    }

    /// Takes the next event, with its time.
    #[inline]
    pub fn pop(&mut self) -> Option<(u64, E)> {
        if self.bottom.is_empty() {
            self.refill();
        }
        let entry = self.bottom.pop()?;
        self.length -= 1;
        Some((entry.time, entry.event))
    }

    /// The time of the next event.
    pub fn next_time(&mut self) -> Option<u64> {
        if self.bottom.is_empty() {
            self.refill();
        }
        self.bottom.last().map(|entry| entry.time)
    }

    /// The events that come soonest, as far as they are known, the next one last; and how often
    /// this batch has been exchanged for a new one.
    pub(crate) fn batch(&self) -> (u64, impl Iterator<Item = &E>) {
        (self.batches, self.bottom.iter().map(|entry| &entry.event))
    }

    fn refill(&mut self) {
        self.batches += 1;
        loop {
            let Some(rung) = self.rungs.last_mut() else {
                if self.top.is_empty() {
                    return;
                }
                self.take_top();
                continue;
            };
            if rung.length == 0 {
                if let Some(done) = self.rungs.pop() {
                    self.spare.push(done);
                }
                if !self.bottom.is_empty() {
                    return;
                }
                continue;
            }
            while rung.buckets[rung.current].is_empty() {
                rung.current += 1;
            }
            let start = rung.from();
            let (shift, index) = (rung.shift, rung.current);
            rung.current += 1;
            rung.length -= rung.buckets[index].len();
            // The bottom is empty: its allocation becomes the bucket's.
            std::mem::swap(&mut self.bottom, &mut rung.buckets[index]);
            if self.bottom.len() > SORTABLE && shift > 0 {
                self.spread(start, start + (1 << shift) - 1);
                continue;
            }
            self.bottom
                .sort_unstable_by_key(|entry| std::cmp::Reverse(entry.key()));
            return;
        }
    }

    /// The bottom and all rungs are empty: what is in the top comes next.
    fn take_top(&mut self) {
        let (least, most) = (self.top_least, self.top_most);
        std::mem::swap(&mut self.bottom, &mut self.top);
        self.top_least = u64::MAX;
        self.top_most = 0;
        if self.bottom.len() <= SORTABLE || least == most {
            self.top_from = most + 1;
            self.bottom
                .sort_unstable_by_key(|entry| std::cmp::Reverse(entry.key()));
            // A rung without events, so that the loop above sees that the bottom is filled.
            let rung = self.rung(most, most, 1);
            self.rungs.push(rung);
            return;
        }
        self.spread(least, most);
        let outer = &self.rungs[0];
        self.top_from = outer.start + ((outer.used as u64) << outer.shift);
    }

    /// The bottom has grown long by insertion.
    fn spread_bottom(&mut self) {
        let (Some(first), Some(last)) = (self.bottom.last(), self.bottom.first()) else {
            return;
        };
        let (start, most) = (first.time, last.time);
        if start == most {
            return;
        }
        let limit = self.rungs.last().map_or(self.top_from, Rung::from);
        self.spread(start, most.max(limit - 1));
        self.refill();
    }

    /// Makes a rung over `start..=last` of what is in the bottom.
    fn spread(&mut self, start: u64, last: u64) {
        let mut rung = self.rung(start, last, self.bottom.len() / PER_BUCKET + 2);
        for entry in self.bottom.drain(..) {
            rung.push(entry);
        }
        self.rungs.push(rung);
    }

    fn rung(&mut self, start: u64, last: u64, wanted: usize) -> Rung<E> {
        let span = last - start;
        let wanted = wanted.clamp(1, MOST_BUCKETS) as u64;
        let mut shift = 0;
        while span >> shift >= wanted {
            shift += 1;
        }
        let used = (span >> shift) as usize + 1;
        let mut rung = self.spare.pop().unwrap_or(Rung {
            start,
            shift,
            current: 0,
            used,
            buckets: Vec::new(),
            length: 0,
        });
        (rung.start, rung.shift, rung.current) = (start, shift, 0);
        (rung.used, rung.length) = (used, 0);
        if rung.buckets.len() < used {
            rung.buckets.resize_with(used, Vec::new);
        }
        rung
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::Stream;
    use proptest::prelude::*;
    use std::cmp::Reverse;
    use std::collections::BinaryHeap;

    /// The same work on a binary heap and on the queue: the same order.
    fn compare(initial: usize, steps: usize, mut delay: impl FnMut(&mut Stream) -> u64) {
        let mut random = Stream::new(7, "queue", 0);
        let mut queue = EventQueue::new();
        let mut heap = BinaryHeap::new();
        let mut number = 0u64;
        let mut push = |queue: &mut EventQueue<u64>, heap: &mut BinaryHeap<_>, time| {
            queue.push(time, number);
            heap.push(Reverse((time, number)));
            number += 1;
        };
        for _ in 0..initial {
            push(&mut queue, &mut heap, delay(&mut random));
        }
        for step in 0..steps {
            let Some((time, event)) = queue.pop() else {
                break;
            };
            let Reverse(expected) = heap.pop().unwrap();
            assert_eq!((time, event), expected, "step {step}");
            let births = random.below(3);
            for _ in 0..births {
                push(&mut queue, &mut heap, time + delay(&mut random));
            }
            if births == 0 && heap.len() < initial / 2 {
                push(&mut queue, &mut heap, time);
            }
            assert_eq!(queue.len(), heap.len());
        }
        while let Some((time, event)) = queue.pop() {
            assert_eq!(Reverse((time, event)), heap.pop().unwrap());
        }
        assert!(heap.is_empty());
    }

    #[test]
    fn the_order_is_that_of_a_heap_over_every_spread_of_times() {
        compare(10, 5_000, |random| random.below(1_000));
        compare(20_000, 100_000, |random| random.below(2_000_000_000));
        // All at one instant, and then again and again.
        compare(5_000, 30_000, |_| 0);
        // Near and far: hops of 5 ms beside waits of minutes.
        compare(3_000, 60_000, |random| {
            let shift = random.below(40);
            random.below(1 << shift | 1)
        });
    }

    #[test]
    fn the_end_of_time_is_a_time() {
        let mut queue = EventQueue::new();
        for index in 0..1_000u64 {
            queue.push(u64::MAX - index % 3, index);
            queue.push(END_OF_TIME - index % 3, index);
        }
        queue.push(0, 1_000);
        assert_eq!(queue.pop(), Some((0, 1_000)));
        let mut last = 0;
        for _ in 0..2_000 {
            let (time, _) = queue.pop().unwrap();
            assert!(time >= last);
            last = time;
        }
        assert_eq!(queue.pop(), None);
    }

    proptest! {
        #[test]
        fn any_times_come_out_sorted_and_in_order_of_insertion(
            batches in proptest::collection::vec(
                (proptest::collection::vec(0u64..=END_OF_TIME, 0..300), 0usize..300), 1..8),
        ) {
            let mut queue = EventQueue::new();
            let mut model = std::collections::BTreeSet::new();
            let mut number = 0u64;
            let mut clock = 0u64;
            for (times, pops) in batches {
                for time in times {
                    let time = time.max(clock);
                    queue.push(time, number);
                    model.insert((time, number));
                    number += 1;
                }
                for _ in 0..pops {
                    let expected = model.pop_first();
                    prop_assert_eq!(queue.pop(), expected);
                    if let Some((time, _)) = expected {
                        clock = time;
                    }
                }
            }
        }
    }
}
