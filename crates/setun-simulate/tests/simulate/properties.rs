//! Properties of every simulation, over made-up traces.

use std::collections::HashSet;

use setun_simulate::{
    BLOCK_TOKENS, Limits, LostReplica, Options, Policy, Report, Request, TraceKind, TraceOptions,
    answers, generate, plot, simulate,
};

const KINDS: [TraceKind; 3] = [TraceKind::Conversations, TraceKind::Prompts, TraceKind::Bursts];

/// More than all prompts of a trace take.
const ENDLESS: Limits = Limits { cache: 1 << 28, prefix: 1 << 28, max_concurrent: 64 };

fn trace(kind: TraceKind, requests: u32, rate: f64, seed: u64) -> Vec<Request> {
    let options = TraceOptions { requests, rate, seed, ..TraceOptions::default() };
    generate(kind, &options).expect("a trace")
}

fn report(trace: &[Request], options: &Options) -> Report {
    simulate(trace, options).expect("a report")
}

/// The cached tokens of requests that are sent one after the other, if nothing is ever dropped: the
/// whole blocks of the longest prefix that an earlier one has, without the last token.
fn cached_of_endless_cache(trace: &[Request]) -> u64 {
    let mut seen = HashSet::new();
    let mut cached = 0;
    for request in trace {
        let tokens =
            request.prompt.iter().flat_map(|(id, tokens)| (0..*tokens).map(move |n| (id, n)));
        let tokens: Vec<_> = tokens.collect();
        let usable = (tokens.len() - 1) / BLOCK_TOKENS as usize;
        let prefixes = (1..=tokens.len() / BLOCK_TOKENS as usize)
            .map(|blocks| tokens[..blocks * BLOCK_TOKENS as usize].to_vec());
        let prefixes: Vec<_> = prefixes.collect();
        let found = prefixes[..usable].iter().take_while(|prefix| seen.contains(*prefix)).count();
        cached += found as u64 * u64::from(BLOCK_TOKENS);
        seen.extend(prefixes);
    }
    cached
}

#[test]
fn an_endless_cache_has_the_analytic_share() {
    for seed in 0..5 {
        let mut trace = trace(TraceKind::Prompts, 300, 0.01, seed); // each ends before the next
        for request in &mut trace {
            request.output = 1;
        }
        let options = Options { limits: ENDLESS, ..Options::new(1, Policy::RoundRobin) };
        let found = report(&trace, &options);
        assert_eq!(found.cached_tokens, cached_of_endless_cache(&trace), "seed {seed}");
        assert_eq!(found.first_token_ms.p99, report(&trace, &options).first_token_ms.p99);
    }
}

#[test]
fn tokens_are_computed_or_cached() {
    for (seed, kind) in (0..4).flat_map(|seed| KINDS.map(|kind| (seed, kind))) {
        let trace = trace(kind, 400, 3.0, seed);
        for policy in Policy::ALL {
            for replicas in [1, 3, 7] {
                let mut options = Options { seed, ..Options::new(replicas, policy) };
                options.limits = Limits { cache: 4096, prefix: 2048, max_concurrent: 16 };
                let found = report(&trace, &options);
                if found.preemptions == 0 {
                    let sum = found.cached_tokens + found.computed_tokens;
                    assert_eq!(sum, found.prompt_tokens, "{kind:?} {policy} {replicas}");
                }
                assert!(
                    found.computed_tokens + found.cached_tokens
                        >= found.prompt_tokens - 512 * found.preemptions
                );
                let all = answers(&trace, &options).expect("answers");
                assert!(all.iter().all(|answer| answer.first_token > 0));
                assert!(all.iter().all(|answer| answer.replica < replicas));
            }
        }
    }
}

#[test]
fn conversations_are_found_by_their_key() {
    for seed in 0..5 {
        let trace = trace(TraceKind::Conversations, 1500, 3.0, seed);
        let share = |policy| report(&trace, &Options::new(10, policy)).cached_share;
        let in_turn = share(Policy::RoundRobin);
        // A bound moves keys.
        let least = [(Policy::Hash, 1.3), (Policy::BoundedHash, 1.2), (Policy::Index, 1.3)];
        for (policy, least) in least {
            assert!(share(policy) > least * in_turn, "{policy} {} {in_turn}", share(policy));
        }
    }
}

#[test]
fn a_bound_without_limit_is_none() {
    let trace = trace(TraceKind::Bursts, 1000, 3.0, 1);
    let hash = answers(&trace, &Options::new(10, Policy::Hash));
    let options = Options { factor: 100_000_000, ..Options::new(10, Policy::BoundedHash) };
    assert_eq!(answers(&trace, &options), hash);
    let bounded = report(&trace, &Options::new(10, Policy::BoundedHash));
    let plain = report(&trace, &Options::new(10, Policy::Hash));
    assert!(bounded.imbalance.open_requests < plain.imbalance.open_requests);
}

#[test]
fn with_consistent_hashing_only_the_keys_of_a_lost_replica_move() {
    let trace = trace(TraceKind::Conversations, 2000, 3.0, 2);
    let lose = Some(LostReplica { replica: 4, at_ms: 300_000 });
    let loss = |policy| {
        report(&trace, &Options { lose, ..Options::new(10, policy) }).loss.expect("a loss")
    };
    let hash = loss(Policy::Hash);
    assert!(hash.moved_keys > 0 && hash.more_computed_tokens > 0, "{hash:?}");
    assert_eq!(hash.other_moved_keys, 0);
    assert!(loss(Policy::RoundRobin).other_moved_keys > 100);
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    for policy in Policy::ALL {
        let run = |seed| {
            let trace = trace(TraceKind::Bursts, 500, 5.0, seed);
            let lose = Some(LostReplica { replica: 1, at_ms: 20_000 });
            let report = report(&trace, &Options { seed, lose, ..Options::new(5, policy) });
            (serde_json::to_string(&report).expect("JSON"), plot(&[report]))
        };
        assert_eq!(run(7), run(7));
        assert_ne!(run(7), run(8));
    }
}

#[test]
fn a_thousand_replicas_answer_all_requests() {
    let trace = trace(TraceKind::Conversations, 50_000, 300.0, 3);
    for policy in Policy::ALL {
        let found = report(&trace, &Options::new(1000, policy));
        assert_eq!(found.requests, 50_000);
    }
}

#[test]
fn a_plot_has_a_row_for_each_report() {
    let trace = trace(TraceKind::Prompts, 100, 1.0, 0);
    let counts = [1, 3].into_iter().flat_map(|count| Policy::ALL.map(|policy| (count, policy)));
    let reports: Vec<_> =
        counts.map(|(count, policy)| report(&trace, &Options::new(count, policy))).collect();
    let svg = plot(&reports);
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
    assert!(svg.contains(">1 replica<") && svg.contains(">3 replicas<"));
    assert!(svg.contains("prefers-color-scheme"));
    for policy in Policy::ALL {
        assert_eq!(svg.matches(&format!(">{policy}<")).count(), 2);
    }
    assert!(svg.len() < 40_000, "{}", svg.len());
}
