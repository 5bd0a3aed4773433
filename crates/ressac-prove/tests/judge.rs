//! The judge on records made by hand: no sockets, no clock.
#![allow(missing_docs, clippy::unwrap_used)]

mod support;

use ressac_prove::{
    Arrival, Case, Claims, Level, OpResult, OpStart, PartRecord, SentLine, Setup, Verdict, cases,
    find_case, judge, pattern_sha256, plan,
};
use support::{claims, exec};

const MS: u64 = 1_000_000;

/// The record of a case in which nothing happened yet.
fn records(case: &Case) -> Vec<PartRecord> {
    let plans = plan(case, &claims("reference"), &Setup::default());
    let record = |plan| PartRecord {
        plan,
        arrivals: Vec::new(),
        dropped: 0,
        starts: Vec::new(),
        results: Vec::new(),
        ends: Vec::new(),
        armed: None,
        interrupted: None,
        watched_until: 60_000 * MS,
        limit_hit: false,
        trouble: None,
        lag_ms: 0.0,
        anchor_unix_ns: 0,
    };
    plans.into_iter().map(record).collect()
}

/// An attempt of the operation at `op`: first byte at `at` ms, answered 1 ms later.
fn attempt(record: &mut PartRecord, op: usize, at: f64, status: u16) -> &mut Arrival {
    let planned = record.plan.ops[op].clone();
    let n = record.arrivals.len() as u64 + 1;
    let t = (at * MS as f64) as u64;
    record.arrivals.push(Arrival {
        seq: n,
        kind: "request".to_owned(),
        t_accept: t,
        t_first: t,
        t_head: t,
        t_req_end: Some(t),
        t_reply_before: Some(t + MS),
        t_reply_after: Some(t + MS),
        conn: n,
        method: planned.method.clone(),
        target: planned.target.clone(),
        token: Some(planned.token.clone()),
        n: Some(n),
        step: Some(n),
        sent: Some(SentLine {
            status: Some(status),
            wire: "complete".to_owned(),
            ..SentLine::default()
        }),
        effect: "none".to_owned(),
        ..Arrival::default()
    });
    record.arrivals.last_mut().unwrap()
}

fn start(record: &mut PartRecord, op: usize) {
    let id = record.plan.ops[op].id.clone();
    record.starts.push(OpStart { op: id, t: 0 });
}

fn end(record: &mut PartRecord, op: usize, at: f64, ok: bool, status: u16) -> &mut OpResult {
    let id = record.plan.ops[op].id.clone();
    let t = (at * MS as f64) as u64;
    let status = Some(status);
    record.results.push(OpResult {
        op: id,
        ok,
        status,
        t,
        ..OpResult::default()
    });
    record.results.last_mut().unwrap()
}

fn verdict(case: &Case, records: &[PartRecord], level: Level, strict: bool) -> (Verdict, String) {
    verdict_of(&claims("reference"), case, records, level, strict)
}

fn verdict_of(
    claims: &Claims,
    case: &Case,
    records: &[PartRecord],
    level: Level,
    strict: bool,
) -> (Verdict, String) {
    let judged = judge(
        case,
        claims,
        &Setup::default(),
        records,
        level,
        strict,
        None,
    );
    (judged.verdict, judged.reason)
}

/// A GET answered 503 and then 200, `gap` ms later.
fn once(gap: f64) -> (&'static Case, Vec<PartRecord>) {
    let case = find_case("A01").unwrap();
    let mut all = records(case);
    let r = &mut all[0];
    start(r, 0);
    attempt(r, 0, 1.0, 503);
    attempt(r, 0, 2.0 + gap, 200);
    end(r, 0, 4.0 + gap, true, 200);
    (case, all)
}

#[test]
fn a_retry_inside_its_band_passes_and_a_late_one_warns() {
    let (case, all) = once(30.0);
    assert_eq!(verdict(case, &all, Level::Should, false).0, Verdict::Pass);
    let (case, all) = once(400.0);
    let (late, why) = verdict(case, &all, Level::Should, false);
    assert_eq!(late, Verdict::Warn, "{why}");
    // A ceiling stays soft even where the level is strict.
    assert_eq!(verdict(case, &all, Level::Should, true).0, Verdict::Warn);
}

#[test]
fn lag_makes_a_missed_ceiling_inconclusive() {
    let (case, mut all) = once(400.0);
    all[0].lag_ms = 80.0;
    let (late, why) = verdict(case, &all, Level::Should, false);
    assert_eq!(late, Verdict::Inconclusive, "{why}");
    assert!(why.contains("lag"), "{why}");
}

#[test]
fn no_retry_is_a_warning_by_default_and_a_failure_when_strict_or_must() {
    let case = find_case("A01").unwrap();
    let mut all = records(case);
    start(&mut all[0], 0);
    attempt(&mut all[0], 0, 1.0, 503);
    end(&mut all[0], 0, 3.0, false, 503);
    assert_eq!(verdict(case, &all, Level::Should, false).0, Verdict::Warn);
    assert_eq!(verdict(case, &all, Level::Should, true).0, Verdict::Fail);
    assert_eq!(verdict(case, &all, Level::Must, false).0, Verdict::Fail);
    assert_eq!(verdict(case, &all, Level::Check, true).0, Verdict::Warn);
}

#[test]
fn floors_are_hard_with_the_tolerance_of_the_clock() {
    let case = find_case("C01").unwrap();
    for (gap, wanted) in [
        (2000.0, Verdict::Pass),
        (1961.0, Verdict::Pass),
        (1950.0, Verdict::Fail),
        (0.0, Verdict::Fail),
        (4500.0, Verdict::Warn),
    ] {
        let mut all = records(case);
        let r = &mut all[0];
        start(r, 0);
        attempt(r, 0, 1.0, 503).retry_at = Some(2002 * MS);
        attempt(r, 0, 2.0 + gap, 200);
        end(r, 0, 4.0 + gap, true, 200);
        let (got, why) = verdict(case, &all, Level::Must, false);
        assert_eq!(got, wanted, "{gap}: {why}");
    }
}

#[test]
fn a_doubled_effect_fails_and_says_so() {
    let case = find_case("E02").unwrap();
    let mut all = records(case);
    all.truncate(1);
    for op in 0..2 {
        start(&mut all[0], op);
        let a = attempt(&mut all[0], op, 1.0, 201);
        a.effect = "created".to_owned();
        end(&mut all[0], op, 40.0, false, 0).reason = Some("ambiguous".to_owned());
    }
    assert_eq!(verdict(case, &all, Level::Must, false).0, Verdict::Pass);
    attempt(&mut all[0], 0, 20.0, 201).effect = "created".to_owned();
    let (twice, why) = verdict(case, &all, Level::Must, false);
    assert_eq!(twice, Verdict::Fail);
    assert!(why.contains("n = 1"), "{why}");
}

#[test]
fn a_body_is_whole_or_it_is_not_ok() {
    let case = find_case("F03").unwrap();
    let judged = |len: u64, hash: String, wire: &str| {
        let mut all = records(case);
        for op in 0..2 {
            start(&mut all[0], op);
            attempt(&mut all[0], op, 1.0, 200)
                .sent
                .as_mut()
                .unwrap()
                .wire = "fin".to_owned();
            attempt(&mut all[0], op, 30.0, 200)
                .sent
                .as_mut()
                .unwrap()
                .wire = wire.to_owned();
            let r = end(&mut all[0], op, 40.0, true, 200);
            (r.body_len, r.body_sha256) = (Some(len), Some(hash.clone()));
        }
        verdict(case, &all, Level::Must, false).0
    };
    assert_eq!(judged(100, pattern_sha256(100), "complete"), Verdict::Pass);
    assert_eq!(judged(140, pattern_sha256(100), "complete"), Verdict::Fail);
    assert_eq!(judged(100, pattern_sha256(99), "complete"), Verdict::Fail);
    assert_eq!(judged(100, pattern_sha256(100), "fin"), Verdict::Fail);
}

/// ST-1: constant waits, called full jitter, are rejected; the claimed law is not.
#[test]
fn the_law_of_the_first_wait_is_tested() {
    let case = find_case("H02").unwrap();
    let judged = |wait: &dyn Fn(f64) -> f64| {
        let mut all = records(case);
        let r = &mut all[0];
        for op in 0..r.plan.ops.len() {
            // Even shares in a shuffled order: a perfect sample of the law.
            let share = ((op * 149) % 400) as f64 / 400.0;
            start(r, op);
            attempt(r, op, 1.0, 503);
            attempt(r, op, 2.0 + wait(share), 200);
            end(r, op, 1000.0, true, 200);
        }
        verdict(case, &all, Level::Should, false)
    };
    assert_eq!(judged(&|u| 400.0 * u).0, Verdict::Pass);
    let (equal, why) = judged(&|u| 200.0 + 200.0 * u);
    assert_eq!(equal, Verdict::Warn, "{why}");
    assert!(why.contains("D = "), "{why}");
    assert_eq!(judged(&|_| 400.0).0, Verdict::Warn);
}

#[test]
fn a_result_before_the_request_and_a_lost_journal_prove_nothing() {
    let (case, mut all) = once(30.0);
    all[0].results[0].t = MS / 2;
    assert_eq!(
        verdict(case, &all, Level::Must, false).0,
        Verdict::Inconclusive
    );
    let (case, mut all) = once(30.0);
    all[0].dropped = 1;
    assert_eq!(
        verdict(case, &all, Level::Must, false).0,
        Verdict::Inconclusive
    );
    let (case, mut all) = once(30.0);
    all[0].arrivals[0].sent.as_mut().unwrap().wire = "uncertain".to_owned();
    assert_eq!(
        verdict(case, &all, Level::Must, false).0,
        Verdict::Inconclusive
    );
    let (case, mut all) = once(30.0);
    all[0].trouble = Some("the machine fell over".to_owned());
    assert_eq!(
        verdict(case, &all, Level::Must, false).0,
        Verdict::Inconclusive
    );
}

#[test]
fn no_end_at_the_limit_fails_where_the_end_is_bounded() {
    for (number, wanted) in [("A04", Verdict::Fail), ("A01", Verdict::Inconclusive)] {
        let case = find_case(number).unwrap();
        let mut all = records(case);
        start(&mut all[0], 0);
        attempt(&mut all[0], 0, 1.0, 503);
        all[0].limit_hit = true;
        let (got, why) = verdict(case, &all, Level::Must, false);
        assert_eq!(got, wanted, "{number}: {why}");
    }
}

/// Whatever a client says: where nothing arrived, nothing passes.
#[test]
fn nothing_passes_without_evidence_that_the_fault_was_met() {
    for case in cases() {
        for ok in [true, false] {
            let mut all = records(case);
            for record in &mut all {
                for op in 0..record.plan.ops.len() {
                    start(record, op);
                    end(record, op, 100.0, ok, 200);
                }
            }
            let (got, why) = verdict(case, &all, case.level, true);
            assert_ne!(got, Verdict::Pass, "{} ok={ok}: {why}", case.id);
        }
    }
}

/// The words of a rule that the judge does not know would be inconclusive for ever.
#[test]
fn every_word_of_every_rule_is_known() {
    for case in cases() {
        let mut all = records(case);
        for record in &mut all {
            for op in 0..record.plan.ops.len() {
                start(record, op);
                attempt(record, op, 1.0, 503);
                attempt(record, op, 60.0, 503);
                end(record, op, 100.0, true, 200);
            }
        }
        let judged = judge(
            case,
            &claims("reference"),
            &Setup::default(),
            &all,
            case.level,
            true,
            None,
        );
        for f in &judged.findings {
            assert!(
                !f.expected.contains("this version knows"),
                "{}: {}",
                case.id,
                f.seen
            );
        }
    }
}

/// C08 has an operation for each value; the first is answered and left in peace.
#[test]
fn an_operation_without_evidence_does_not_hide_one_that_broke_the_rule() {
    let case = find_case("C08").unwrap();
    let mut all = records(case);
    let r = &mut all[0];
    for op in 0..2 {
        start(r, op);
    }
    for (at, status) in [(1.0, 429), (5.0, 200)] {
        attempt(r, 0, at, status).retry_at = Some(60_000 * MS);
    }
    end(r, 0, 7.0, true, 200);
    let (judged, why) = verdict(case, &all, Level::Must, false);
    assert_eq!(
        judged,
        Verdict::Fail,
        "the others were not even started: {why}"
    );
    assert!(why.contains("no second attempt"), "{why}");
}

#[test]
fn who_promises_no_backoff_is_not_held_to_one() {
    let case = find_case("C01").unwrap();
    let mut silent = claims("reference");
    silent.claims.backoff = None;
    silent.claims.settable.retain(|s| s != "base" && s != "cap");
    let plans = plan(case, &silent, &Setup::default());
    let mut all = records(case);
    all[0].plan = plans.into_iter().next().unwrap();
    let r = &mut all[0];
    start(r, 0);
    attempt(r, 0, 1.0, 503);
    attempt(r, 0, 30_000.0, 200);
    end(r, 0, 30_002.0, true, 200);
    let judged = judge(
        case,
        &silent,
        &Setup::default(),
        &all,
        Level::Must,
        false,
        None,
    );
    assert_eq!(judged.verdict, Verdict::Pass, "{}", judged.reason);
}

#[test]
fn lag_excuses_a_miss_of_its_own_size_only() {
    for (late, wanted) in [(400.0, Verdict::Inconclusive), (40_000.0, Verdict::Warn)] {
        let (case, mut all) = once(late);
        all[0].lag_ms = 40.0;
        let (judged, why) = verdict(case, &all, Level::Should, false);
        assert_eq!(judged, wanted, "{late} ms late: {why}");
    }
}

#[test]
fn an_attempts_limit_counts_from_the_start_of_the_operation_for_floors() {
    let case = find_case("D05").unwrap();
    let mut all = records(case);
    let r = &mut all[0];
    for op in 0..2 {
        start(r, op);
        // It took 40 ms to connect; its own clock ran from the start.
        let first = attempt(r, op, 40.0, 200);
        first.sent.as_mut().unwrap().wire = "stall".to_owned();
        first.t_peer_close = Some(500 * MS);
        attempt(r, op, 505.0, 200);
        end(r, op, 510.0, true, 200);
    }
    let (judged, why) = verdict(case, &all, Level::Should, false);
    assert_eq!(judged, Verdict::Pass, "{why}");
}

/// H09: twenty operations that warm the client up, then three hundred, one each 10 ms; the first
/// `through` of them reach the partner, not before `cold` ms, and the client tells of each result
/// `told` ms later.
fn breaker(through: usize, cold: f64, told: f64) -> (Verdict, String) {
    let case = find_case("H09").unwrap();
    let all = breaker_run(case, through, cold, told);
    verdict(case, &all, Level::Must, false)
}

fn breaker_run(case: &'static Case, through: usize, cold: f64, told: f64) -> Vec<PartRecord> {
    let mut all = records(case);
    let r = &mut all[0];
    for op in 0..r.plan.ops.len() {
        let load = op.checked_sub(20);
        let at = load.map_or(0.0, |i| 2000.0 + 10.0 * i as f64);
        let id = r.plan.ops[op].id.clone();
        let t = (at * MS as f64) as u64;
        r.starts.push(OpStart { op: id, t });
        let Some(i) = load else {
            attempt(r, op, 1.0, 200);
            end(r, op, 3.0, true, 200);
            continue;
        };
        let sent = (at + 1.0).max(cold);
        if i < through {
            let replied = (sent * MS as f64) as u64 + MS + i as u64 * 10_000;
            let reached = attempt(r, op, sent, 503);
            (reached.t_reply_before, reached.t_reply_after) = (Some(replied), Some(replied));
        }
        let later = if i < through { told } else { 1.0 };
        end(r, op, sent + later, false, 503);
    }
    all
}

#[test]
fn a_breaker_that_answers_late_fails_unless_its_client_was_held_up_as_a_whole() {
    let case = find_case("H09").unwrap();
    // Of some 280 that are offered in the silence, these are told later than they ended.
    let late = |operations: std::ops::Range<usize>, told_at: &dyn Fn(u64) -> u64| {
        let mut all = breaker_run(case, 20, 0.0, 10.0);
        for result in &mut all[0].results[operations] {
            result.t = told_at(result.t);
        }
        verdict(case, &all, Level::Must, false)
    };
    // One each 10 ms from 2001 + 10 i ms on: number 100 is the first of these.
    let first = (2000 + 10 * 80 + 1) * MS;
    let held_up = |for_ms: u64| move |_| first + for_ms * MS;
    let (judged, why) = late(100..108, &held_up(75));
    assert_eq!(judged, Verdict::Inconclusive, "{why}");
    // The one before them may be told meanwhile: it was on its way.
    let (judged, why) = late(99..108, &|t| {
        if t < first {
            first + 3 * MS
        } else {
            first + 75 * MS
        }
    });
    assert_eq!(judged, Verdict::Inconclusive, "{why}");
    // Within the 50 ms nobody is late, held up or not.
    assert_eq!(late(100..104, &held_up(45)).0, Verdict::Pass);
    // One that waits while those after it are refused is late by itself.
    let (judged, why) = late(100..101, &|t| t + 75 * MS);
    assert_eq!(judged, Verdict::Fail, "{why}");
    // So are many, each as late.
    let (judged, why) = late(100..120, &|t| t + 60 * MS);
    assert_eq!(judged, Verdict::Fail, "{why}");
    // And no machine holds a client up for half a second, unless it lags.
    let (judged, why) = late(100..150, &held_up(500));
    assert_eq!(judged, Verdict::Fail, "{why}");
}

#[test]
fn a_silence_that_the_end_of_the_offers_cuts_short_proves_nothing() {
    assert_eq!(breaker(20, 0.0, 10.0).0, Verdict::Pass);
    // Nothing holds back the one that never opens, and one that opens late has let too many by.
    assert_eq!(breaker(300, 0.0, 10.0).0, Verdict::Fail);
    assert_eq!(breaker(250, 0.0, 10.0).0, Verdict::Fail);
    // What it was given in two and a half seconds leaves at once, and then it is silent.
    let (judged, why) = breaker(250, 4500.0, 10.0);
    assert_eq!(judged, Verdict::Inconclusive, "{why}");
}

#[test]
fn what_was_let_in_before_the_client_could_count_is_not_held_against_its_breaker() {
    assert_eq!(breaker(25, 0.0, 60.0).0, Verdict::Pass);
    // Told at once, five too many; told late, far too many.
    assert_eq!(breaker(25, 0.0, 2.0).0, Verdict::Fail);
    assert_eq!(breaker(60, 0.0, 60.0).0, Verdict::Fail);
}

/// H01 with waits of the claimed sizes, each made longer by the same delay.
fn growth(delay: f64, lag_ms: f64) -> (Verdict, String) {
    let case = find_case("H01").unwrap();
    let mut all = records(case);
    let r = &mut all[0];
    r.lag_ms = lag_ms;
    for op in 0..r.plan.ops.len() {
        start(r, op);
        let mut at = 1.0;
        for wait in [0.0, 25.0, 50.0, 100.0, 200.0] {
            at += wait + delay + 1.0;
            attempt(r, op, at, 503);
        }
        end(r, op, at + 2.0, false, 503);
    }
    verdict(case, &all, Level::Should, false)
}

#[test]
fn delays_of_this_machine_do_not_make_waits_alike() {
    assert_eq!(growth(0.0, 0.0).0, Verdict::Pass);
    let (judged, why) = growth(300.0, 300.0);
    assert_eq!(judged, Verdict::Inconclusive, "{why}");
    assert_eq!(growth(300.0, 0.0).0, Verdict::Warn);
}

/// D03: each part has one attempt at `first` ms and one at `last` ms, and ends 10 ms later.
fn deadline(claims: &Claims, first: f64, last: f64) -> (Verdict, String) {
    let case = find_case("D03").unwrap();
    let mut all = records(case);
    for r in &mut all {
        start(r, 0);
        attempt(r, 0, first, 503);
        attempt(r, 0, last, 503);
        end(r, 0, last + 10.0, false, 503);
    }
    verdict_of(claims, case, &all, Level::Must, false)
}

#[test]
fn a_process_that_begins_late_is_not_judged_by_the_clock_of_its_caller() {
    let (lines, process) = (claims("reference"), exec(claims("reference")));
    assert_eq!(deadline(&process, 190.0, 2040.0).0, Verdict::Pass);
    let (judged, why) = deadline(&process, 190.0, 2180.0);
    assert_eq!(judged, Verdict::Inconclusive, "{why}");
    // By its own clock it is late too.
    let (judged, why) = deadline(&process, 190.0, 2260.0);
    assert_eq!(judged, Verdict::Fail, "{why}");
    // Who runs all the time has a clock that runs.
    let (judged, why) = deadline(&lines, 190.0, 2180.0);
    assert_eq!(judged, Verdict::Fail, "{why}");
}
