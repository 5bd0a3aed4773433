//! Metastable failure: the boundary 1/(1+r), and who recovers.
#![allow(clippy::unwrap_used)]

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use ressac_sim::{Arrivals, Boundary, StudyOptions, boundary, built_in, study};

#[test]
fn the_failed_state_sustains_itself_above_one_over_one_plus_r() {
    let scenario = built_in("metastable").unwrap();
    for retries in 1..=3 {
        let Boundary {
            holds,
            fails,
            predicted,
        } = boundary(&scenario, retries, 1, Duration::from_secs(150)).unwrap();
        let found = (holds + fails) / 2.0;
        assert!((predicted - 1.0 / f64::from(1 + retries)).abs() < 1e-9);
        assert!(
            (found / predicted - 1.0).abs() < 0.05 && fails - holds < 0.03 * predicted,
            "{retries} retries: recovers at {holds}, not at {fails}; predicted {predicted}"
        );
    }
}

#[test]
fn retries_keep_the_partner_down_and_a_budget_lets_it_up() {
    let scenario = built_in("metastable").unwrap();
    let points = scenario.points(&[]).unwrap();
    let recovers = |label: &str, load: f64, outage: u64| {
        let mut point = points
            .iter()
            .find(|point| {
                point.label == label
                    && point.load == Some(load)
                    && point.outage == Some(Duration::from_secs(outage))
            })
            .unwrap()
            .clone();
        assert!(matches!(point.world.arrivals, Arrivals::Poisson { .. }));
        point.world.horizon = Duration::from_secs(20 + outage + 90);
        let record = ressac_sim::simulate(&point.world, &point.policy, 3, false);
        let figures = ressac_sim::figures(&point.world, scenario.report, &record);
        (figures["recovered_share"] == 1.0).then(|| figures["recover_seconds"])
    };
    assert_eq!(recovers("3 x full jitter", 700.0, 5), None);
    assert_eq!(recovers("3 x full jitter, queue of 2,000", 700.0, 5), None);
    assert_eq!(
        recovers("3 x full jitter, dropped at the deadline", 700.0, 5),
        None
    );
    let near = |label: &str, load, outage, expected: f64| {
        let found = recovers(label, load, outage).unwrap();
        assert!(
            (found - expected).abs() < 6.0,
            "{label}: {found}, expected {expected}"
        );
    };
    near("no retry", 700.0, 5, 9.8);
    near("3 + 10 % budget", 700.0, 5, 17.6);
    near("3 + breaker 5 s", 700.0, 5, 11.0);
    near("3 x full jitter, queue of 500", 700.0, 5, 2.1);
    near("3 x full jitter, newest first", 700.0, 5, 6.4);
    near("3 x full jitter, dropped 50 ms before", 700.0, 5, 5.5);
}

#[test]
fn the_same_seed_gives_the_same_study_on_any_number_of_cores() {
    let scenario = built_in("outage").unwrap();
    let options = StudyOptions {
        seeds: Some(2),
        ..StudyOptions::default()
    };
    let run = |threads| {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap();
        pool.install(|| study(&scenario, &options, &|_, _| (), &AtomicBool::new(false)))
            .unwrap()
            .unwrap()
            .json()
            .to_string()
    };
    assert_eq!(run(1), run(3));
}
