//! The event core against published numbers: the model of the AWS article, all cells of the
//! reference table by its rule of acceptance.
//!
//! Here with few runs for each cell; `ressac sim aws-occ --seeds 100` is the whole.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use ressac_sim::Sample;
use ressac_sim::occ::{CLIENTS, OccPolicy, reference, run};

#[test]
fn every_cell_of_the_reference_table_is_met() {
    const RUNS: usize = 20;
    let mut worst: f64 = 0.0;
    let (mut cells, mut beyond_two) = (0, 0);
    for policy in OccPolicy::ALL {
        for clients in CLIENTS {
            let runs: Vec<_> = (0..RUNS as u64)
                .map(|seed| run(policy, clients, seed))
                .collect();
            let (calls, time) = reference(policy, clients).unwrap();
            let mean_calls = Sample::of(runs.iter().map(|run| run.calls as f64)).mean();
            let mean_time = Sample::of(runs.iter().map(|run| run.time_ms)).mean();
            for (what, z) in [
                ("calls", calls.z(mean_calls, RUNS)),
                ("time", time.z(mean_time, RUNS)),
            ] {
                assert!(
                    z.abs() <= 4.0,
                    "{} with {clients} clients: {what} z = {z:.2}",
                    policy.as_str()
                );
                worst = worst.max(z.abs());
                cells += 1;
                beyond_two += u32::from(z.abs() > 1.96);
            }
        }
    }
    println!("largest |z| {worst:.2}, {beyond_two} of {cells} beyond 1.96");
    // Chance has 6 of 120 beyond 1.96; a small bias everywhere would have many more.
    assert!(beyond_two <= 18, "{beyond_two} of {cells}, largest {worst}");
}

#[test]
fn equal_jitter_overtakes_full_between_150_and_200_clients() {
    let mean = |policy, n| Sample::of((0..60).map(|seed| run(policy, n, seed).calls as f64)).mean();
    assert!(mean(OccPolicy::Full, 100) < mean(OccPolicy::Equal, 100));
    assert!(mean(OccPolicy::Full, 200) > mean(OccPolicy::Equal, 200));
}
