//! Several servers behind `HAProxy`: cached tokens, and servers that are killed or drained.
//!
//! These tests need `HAProxy`. The stage `deploy` of `cargo xtask test` runs them.

mod cluster;
mod ends;
mod keys;
mod predicted;
mod replay;
mod trace;

use std::{
    collections::BTreeMap,
    env,
    path::{Path, PathBuf},
};

use self::{
    cluster::{Balance, Cluster, server},
    predicted::{assert_predicted, predicted},
    replay::{Answer, Pace, cached_share, replay},
    trace::Conversations,
};

/// Positions of a block of the cache, the unit in which prompts share it.
const BLOCK: usize = 32;

/// What a server keeps beside what runs: a third of the conversations at their mean length.
const KEPT: usize = 190 * BLOCK;

const CROWD: Conversations = Conversations { count: 60, systems: 6, turns: 8 };

/// Requests that are open at a time: three quarters of the conversations. The bound then is 23.
const BUSY: Pace = Pace::Open(45);

/// The same trace before the same caches. Their sum is the cache of the one server.
///
/// `SETUN_TRACE` names another trace, which is sent at its times and not judged.
#[test]
#[ignore = "needs HAProxy"]
fn conversations_find_their_prompts_in_the_cache() {
    if let Some(given) = env::var_os("SETUN_TRACE").map(PathBuf::from) {
        let run = |balance| run(&given, balance, Pace::Timed(256));
        run(None);
        for balance in Balance::ALL {
            run(Some(balance));
        }
        return;
    }
    let trace = file("trace");
    trace::write(&trace, &CROWD.requests(1));
    let quiet = |balance| run(&trace, balance, Pace::Open(1));
    let (one, turns) = (quiet(None), quiet(Some(Balance::RoundRobin)));
    let by_hash = quiet(Some(Balance::Committed));
    let [busy, unbounded] =
        [Balance::Committed, Balance::Unbounded].map(|balance| run(&trace, Some(balance), BUSY));
    for share in [by_hash, busy, unbounded] {
        assert!(share >= 0.9 * one && share >= 2.0 * turns, "{share}: {one} {turns}");
    }
    let three = |policy, pace| predicted(&trace, 3, policy, pace, KEPT);
    assert_predicted("One-1", one, predicted(&trace, 1, "hash", Pace::Open(1), 3 * KEPT));
    assert_predicted("RoundRobin-1", turns, three("round-robin", Pace::Open(1)));
    assert_predicted("Committed-1", by_hash, three("bounded-hash", Pace::Open(1)));
    assert_predicted("Unbounded-45", unbounded, three("hash", BUSY));
}

/// The share of cached tokens behind a proxy, or of one server with the whole cache.
fn run(trace: &Path, balance: Option<Balance>, pace: Pace) -> f64 {
    let Some(balance) = balance else {
        let one = server(3 * KEPT);
        return report("One", pace, &replay(trace, &one.address, pace));
    };
    let cluster = Cluster::start(balance, KEPT);
    let share = report(&format!("{balance:?}"), pace, &replay(trace, &cluster.address, pace));
    let open_requests = cluster.max_open_requests();
    eprintln!("most open requests of a server: {open_requests:?}");
    assert_eq!(open_requests.len(), Cluster::NAMES.len(), "each server has a row");
    if let (Balance::Committed, Pace::Open(open)) = (balance, pace) {
        // A new one goes where the server then has at most 1.5 times the mean.
        let bound = (open * 3).div_ceil(2 * Cluster::NAMES.len());
        assert!(
            open_requests.iter().all(|&open| open <= bound),
            "{open_requests:?}, expected at most {bound}"
        );
    }
    share
}

/// Writes answers into a file beside the trace, and prints what they are together.
fn report(name: &str, pace: Pace, answers: &[Answer]) -> f64 {
    let name = format!("{name}-{pace}");
    trace::write(&file(&name), answers);
    let mut counts = BTreeMap::<&str, usize>::new();
    for answer in answers {
        *counts.entry(&answer.server).or_default() += 1;
    }
    let mut times: Vec<f64> = answers.iter().map(|answer| answer.first_token_ms).collect();
    times.sort_by(f64::total_cmp);
    let (share, median) = (cached_share(answers), times[times.len() / 2]);
    eprintln!("{name}: cached {share:.3}, median first token {median:.1} ms, {counts:?}");
    share
}

fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("replicas-{name}.jsonl"))
}
