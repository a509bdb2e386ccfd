//! Small simulations whose figures are computed by hand.

use setun_simulate::{Answer, LostReplica, Options, Policy, answers, simulate};

use crate::{options, request};

#[test]
fn a_request_alone_takes_the_time_of_its_rows() {
    let trace = [request(5, "k", &[("a", 40)], 3)];
    let options = options(1, Policy::RoundRobin, 128);
    let expected = Answer { replica: 0, cached: 0, sent: 5000, first_token: 40_000 };
    assert_eq!(answers(&trace, &options), Ok(vec![expected]));
    let report = simulate(&trace, &options).expect("a report");
    assert_eq!((report.prompt_tokens, report.computed_tokens, report.output_tokens), (40, 40, 3));
    assert_eq!((report.seconds, report.cached_share), (0.047, 0.0));
    assert_eq!((report.imbalance.open_requests, report.imbalance.computed_tokens), (1.0, 1.0));
}

#[test]
fn a_next_turn_waits_for_the_reply_and_finds_it() {
    let trace = [
        request(0, "k", &[("s", 50)], 20),
        request(1, "k", &[("s", 50), ("r", 20), ("u", 30)], 1),
        request(500, "k", &[("s", 50), ("other", 20), ("u", 30)], 1),
    ];
    let found = answers(&trace, &options(1, Policy::RoundRobin, 512)).expect("answers");
    // The first ends after 50 rows and 19 tokens. 69 tokens of it are known then: two blocks.
    assert_eq!((found[1].sent, found[1].cached, found[1].first_token), (69_000, 64, 36_000));
    assert_eq!((found[2].sent, found[2].cached), (500_000, 32));
}

#[test]
fn other_replies_are_not_found() {
    let trace =
        [request(0, "k", &[("s", 50)], 20), request(0, "k", &[("s", 50), ("r", 20), ("u", 30)], 1)];
    let options = Options { other_replies: true, ..options(1, Policy::RoundRobin, 512) };
    let found = answers(&trace, &options).expect("answers");
    assert_eq!((found[1].sent, found[1].cached), (69_000, 32));
}

#[test]
fn clients_send_one_request_after_the_other() {
    let trace = [
        request(0, "a", &[("a", 10)], 1),
        request(500, "a", &[("a", 10), ("r", 1), ("u", 9)], 1),
        request(900, "b", &[("b", 5)], 1),
    ];
    let sent = |open| {
        let options = Options { open: Some(open), ..options(2, Policy::LeastLoad, 512) };
        answers(&trace, &options).expect("answers").iter().map(|one| one.sent).collect::<Vec<_>>()
    };
    assert_eq!(sent(1), [0, 10_000, 30_000]);
    assert_eq!(sent(2), [0, 10_000, 10_000], "the second waits for the turn before it");
    assert_eq!(sent(3), [0, 10_000, 0]);
}

#[test]
fn lru_evicts_the_oldest_prompt() {
    let prompts = ["a", "b", "a", "c", "a", "b"];
    let sent = (0..).zip(prompts).map(|(at, id)| request(1000 * at, id, &[(id, 65)], 1));
    let trace: Vec<_> = sent.collect();
    // Room for five blocks: two whole ones are kept of each prompt, and three are taken by one.
    let found = answers(&trace, &options(1, Policy::RoundRobin, 160)).expect("answers");
    let cached: Vec<_> = found.iter().map(|answer| answer.cached).collect();
    assert_eq!(cached, [0, 0, 64, 0, 64, 0]);
}

#[test]
fn a_lost_replica_costs_its_requests_and_its_keys() {
    let keys = ["a", "b", "c", "d"];
    let sent = |at: u64| keys.map(|key| request(at, key, &[(key, 65)], 1));
    let trace = [sent(0), sent(1000), sent(2000)].concat();
    let lose = |policy, replica| {
        let lose = Some(LostReplica { replica, at_ms: 1010 });
        let options = Options { lose, ..options(2, policy, 512) };
        (answers(&trace, &options).expect("answers"), simulate(&trace, &options).expect("a report"))
    };
    let (all, _) = lose(Policy::Hash, 0);
    let owned = |replica| all[..4].iter().filter(|answer| answer.replica == replica).count();
    assert!(owned(0) > 0 && owned(1) > 0, "{all:?}");
    for lost in [0, 1] {
        let (found, report) = lose(Policy::Hash, lost);
        let loss = report.loss.expect("a loss");
        let moved = u32::try_from(owned(lost)).expect("few");
        assert_eq!((loss.moved_keys, loss.other_moved_keys), (moved, 0));
        assert!(found[8..].iter().all(|answer| answer.replica != lost));
        // Two requests of a second take a step of a row each, so none is open after 10 ms.
        assert_eq!(loss.restarted_requests, 0);
        assert_eq!(loss.more_computed_tokens, i64::from(64 * moved));
        let without = f64::from(64 * 8) / f64::from(65 * 12);
        assert_eq!(loss.cached_share_without, without);
    }
}

#[test]
fn requests_of_a_lost_replica_are_sent_again() {
    let trace = [request(0, "a", &[("a", 100)], 1), request(0, "b", &[("b", 100)], 1)];
    let lose = Some(LostReplica { replica: 1, at_ms: 60 });
    let options = Options { lose, ..options(2, Policy::RoundRobin, 512) };
    let found = answers(&trace, &options).expect("answers");
    assert_eq!(found[1], Answer { replica: 0, cached: 0, sent: 0, first_token: 200_000 });
    let loss = simulate(&trace, &options).expect("a report").loss.expect("a loss");
    assert_eq!(loss.restarted_requests, 1);
    assert_eq!(loss.p99_without, 100.0);
}

#[test]
fn options_out_of_their_range_are_refused() {
    let trace = [request(0, "a", &[("a", 100)], 1)];
    let refused = |change: fn(&mut Options)| {
        let mut options = options(4, Policy::Hash, 128);
        change(&mut options);
        simulate(&trace, &options).expect_err("refused").to_string()
    };
    let lose = |replica| Some(LostReplica { replica, at_ms: 0 });
    assert_eq!(refused(|o| o.replicas = 0), "replicas: found 0, expected 1 to 1000");
    assert_eq!(refused(|o| o.limits.cache = 31), "cache: found 31, expected at least 32, a block");
    assert_eq!(refused(|o| o.factor = 100), "factor: found 100, expected a percentage above 100");
    assert!(refused(|o| o.limits.max_concurrent = 0).starts_with("max_concurrent: found 0"));
    assert!(refused(|o| o.costs.decode.clear()).starts_with("step costs: `decode`"));
    assert!(refused(|o| o.limits.cache = 64).contains("has 101 tokens with its output"));
    let mut lost = options(4, Policy::Hash, 128);
    lost.lose = lose(4);
    let error = simulate(&trace, &lost).expect_err("refused").to_string();
    assert_eq!(error, "lose: found 4, expected a replica from 0 to 3");
    lost = Options { lose: lose(0), ..options(1, Policy::Hash, 128) };
    let error = simulate(&trace, &lost).expect_err("refused").to_string();
    assert_eq!(error, "lose: found 0, expected another replica beside it");
}
