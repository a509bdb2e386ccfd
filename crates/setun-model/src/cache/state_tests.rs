//! Recurrent states against a model of their memory: each holds the tokens that it has taken in.

use proptest::{collection::vec, prelude::*};

use super::*;
use setun_ops::recurrent::StateRows;

const POSITIONS: usize = 4;
const BLOCKS: usize = 60;
const COST: usize = 3;

/// Most rows that may be taken back.
const TENTATIVE: usize = 3;

#[derive(Clone, Debug)]
enum Step {
    Create(usize, usize),
    Note(usize),
    Fork(usize),
    Run(usize, usize, usize),
    Reserve(usize, usize),
    Fail(usize, usize),
    Truncate(usize, usize),
    Remove(usize),
    Forget(usize),
    Compact,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let (one, few) = (0..8usize, 0..20usize);
    let step = prop_oneof![
        (one.clone(), few.clone()).prop_map(|(s, n)| Step::Create(s, n)),
        one.clone().prop_map(Step::Note),
        one.clone().prop_map(Step::Fork),
        (one.clone(), 1..12usize, 0..=TENTATIVE).prop_map(|(s, n, t)| Step::Run(s, n, t)),
        (one.clone(), 1..12usize, 0..=TENTATIVE).prop_map(|(s, n, t)| Step::Run(s, n, t)),
        (one.clone(), 1..5usize).prop_map(|(s, n)| Step::Reserve(s, n)),
        (one.clone(), 1..9usize).prop_map(|(s, n)| Step::Fail(s, n)),
        (one.clone(), few).prop_map(|(s, n)| Step::Truncate(s, n)),
        one.prop_map(Step::Remove),
        (0..9usize).prop_map(Step::Forget),
        Just(Step::Compact),
    ];
    vec(step, 1..80)
}

/// What each state has taken in.
type Memory = Vec<Vec<u32>>;

/// Does with the memory what a step does.
fn take(memory: &mut Memory, states: &StateRows, tokens: &[u32]) {
    let base = states.base() as usize;
    if let Some((id, _)) = states.loaded {
        assert_eq!(memory[id.0 as usize], tokens[..base], "the state before");
    }
    for &(id, taken) in &states.stored {
        let id = id.0 as usize;
        memory.resize(memory.len().max(id + 1), vec![]);
        memory[id] = tokens[..taken as usize].to_vec();
    }
}

/// Reserves positions, within the memory of as many blocks.
fn extend(
    cache: &mut PagedCache,
    memory: &mut Memory,
    (sequence, positions): (SequenceId, usize),
) -> Result<(), ModelError> {
    if let Some(blocks) = cache.lacks_memory(sequence, positions)? {
        cache.compact_for(blocks);
        shrink(cache, memory);
        assert_eq!(cache.lacks_memory(sequence, positions)?, None, "there is room now");
    }
    cache.extend(sequence, positions)?;
    cache.copies_made();
    Ok(())
}

/// Moves states and drops the unused ones, as a model does when it shrinks its cache.
fn shrink(cache: &mut PagedCache, memory: &mut Memory) {
    for &(from, to) in cache.state_copies() {
        let most = from.0.max(to.0) as usize + 1;
        memory.resize(memory.len().max(most), vec![]); // a state that no step has written to
        memory[to.0 as usize] = memory[from.0 as usize].clone();
    }
    cache.copies_made();
    memory.truncate(cache.high_water_states());
}

/// Runs `rows` rows, of which the last `drafts` may be taken back.
fn run(
    cache: &mut PagedCache,
    memory: &mut Memory,
    (sequence, tokens): (SequenceId, &mut Vec<u32>),
    (rows, drafts): (usize, usize),
    stamp: &mut u32,
) {
    let (first, drafts) = (tokens.len(), drafts.min(rows - 1));
    if extend(cache, memory, (sequence, rows)).is_err() {
        return;
    }
    cache.mark_tentative(sequence, drafts).unwrap();
    for _ in 0..rows {
        *stamp = (*stamp + 1) % 3; // so that sequences have much in common
        tokens.push(*stamp);
    }
    let states = cache.begin_rows(sequence, (first, first + rows)).unwrap();
    let last = states.stored.last().unwrap();
    assert_eq!(last.1 as usize, first + rows - drafts, "drafts are not taken in");
    take(memory, &states, tokens);
    cache.step_runs();
    cache.step_done();
}

/// Begins a step that writes to its states and does not end.
fn fail(
    cache: &mut PagedCache,
    memory: &mut Memory,
    (sequence, tokens): (SequenceId, &mut Vec<u32>),
    rows: usize,
) {
    let first = tokens.len();
    if extend(cache, memory, (sequence, rows)).is_err() {
        return;
    }
    let states = cache.begin_rows(sequence, (first, first + rows)).unwrap();
    cache.step_runs();
    for (id, _) in states.stored {
        let id = id.0 as usize;
        memory.resize(memory.len().max(id + 1), vec![]);
        memory[id] = vec![u32::MAX];
    }
    cache.truncate(sequence, first).unwrap();
    tokens.truncate(cache.len(sequence).unwrap());
}

proptest! {
    #[test]
    fn states_hold_the_tokens_of_their_sequences(steps in steps(), kept in prop_oneof![Just(0), 0..40_usize]) {
        let mut cache = PagedCache::new(POSITIONS, BLOCKS);
        cache.keep_states(COST);
        cache.keep_prefixes(kept);
        let mut memory: Memory = vec![];
        let mut live: Vec<(SequenceId, Vec<u32>)> = vec![];
        let mut stamp = 0;
        for step in steps {
            let count = live.len().max(1);
            match step {
                Step::Create(i, n) => {
                    let mut tokens = live.get(i % count).map(|it| it.1.clone()).unwrap_or_default();
                    tokens.truncate(n);
                    let id = cache.create_from(None, &tokens);
                    tokens.truncate(cache.len(id).unwrap());
                    live.push((id, tokens));
                }
                Step::Note(i) if !live.is_empty() => {
                    let (id, tokens) = &live[i % count];
                    cache.record_prefix(*id, tokens).unwrap();
                }
                Step::Fork(i) if !live.is_empty() => {
                    let (id, tokens) = live[i % count].clone();
                    live.push((cache.fork(id).unwrap(), tokens));
                }
                Step::Run(i, n, drafts) if !live.is_empty() => {
                    let (id, tokens) = &mut live[i % count];
                    run(&mut cache, &mut memory, (*id, tokens), (n, drafts), &mut stamp);
                }
                Step::Reserve(i, n) if !live.is_empty() => {
                    // Reserved, and given up before a step.
                    let (id, tokens) = &mut live[i % count];
                    if extend(&mut cache, &mut memory, (*id, n)).is_ok() {
                        cache.truncate(*id, tokens.len()).unwrap();
                        prop_assert_eq!(cache.len(*id).unwrap(), tokens.len());
                    }
                }
                Step::Fail(i, n) if !live.is_empty() => {
                    let (id, tokens) = &mut live[i % count];
                    fail(&mut cache, &mut memory, (*id, tokens), n);
                }
                Step::Truncate(i, n) if !live.is_empty() => {
                    let (id, tokens) = &mut live[i % count];
                    cache.truncate(*id, n).unwrap();
                    let len = cache.len(*id).unwrap();
                    prop_assert!(len <= tokens.len() && (len <= n || len == tokens.len()));
                    tokens.truncate(len);
                }
                Step::Remove(i) if !live.is_empty() => {
                    let (id, _) = live.swap_remove(i % count);
                    cache.remove(id);
                }
                Step::Forget(most) => cache.forget_idle(most),
                Step::Compact => {
                    cache.compact();
                    shrink(&mut cache, &mut memory);
                    prop_assert_eq!(cache.high_water(), cache.held_blocks());
                }
                _ => {}
            }
            for (id, tokens) in &live {
                prop_assert_eq!(cache.len(*id).unwrap(), tokens.len());
                if let Some((state, base)) = cache.state(*id).unwrap() {
                    prop_assert_eq!(&memory[state.0 as usize], &tokens[..base]);
                    prop_assert!(tokens.len() - base <= TENTATIVE);
                } else {
                    prop_assert!(tokens.is_empty());
                }
            }
            let held = cache.held_blocks();
            prop_assert!(held <= BLOCKS, "{held} blocks are held");
            let memory = cache.high_water();
            prop_assert!(memory <= BLOCKS, "there is memory for {memory} blocks");
        }
        for (id, _) in live {
            cache.remove(id);
        }
        prop_assert_eq!(cache.free_blocks(), BLOCKS);
        cache.forget_idle(0);
        let highest = (cache.high_water_blocks(), cache.high_water_states());
        prop_assert_eq!((cache.free_blocks(), highest), (BLOCKS, (0, 0)));
    }
}

#[test]
fn a_prefix_ends_at_the_last_snapshot() {
    let mut cache = PagedCache::new(POSITIONS, BLOCKS);
    cache.keep_states(COST);
    cache.keep_prefixes(BLOCKS);
    let (mut memory, mut tokens) = (vec![], vec![]);
    let a = cache.create();
    run(&mut cache, &mut memory, (a, &mut tokens), (10, 0), &mut 0);
    cache.record_prefix(a, &tokens).unwrap();
    let found = cache.found(None, &tokens);
    assert_eq!(found, (2, COST), "8 of 10 positions, where a block ends, and the snapshot");
    assert_eq!(cache.found(None, &tokens[..8]), (0, 0), "no snapshot is at 4");
    for _ in 0..3 {
        run(&mut cache, &mut memory, (a, &mut tokens), (1, 0), &mut 0);
    }
    cache.record_prefix(a, &tokens).unwrap();
    assert_eq!(cache.found(None, &tokens).0, 3, "the answer has a snapshot at 12");
    assert_eq!(cache.found(None, &tokens[..10]).0, 2, "and the prompt keeps its own");
    cache.truncate(a, 11).unwrap();
    assert_eq!(cache.len(a).unwrap(), 8, "back to the snapshot before");
    cache.remove(a);
    assert_eq!(cache.free_blocks(), BLOCKS, "snapshots give way");
}

#[test]
fn drafts_are_taken_back_without_running_again() {
    let mut cache = PagedCache::new(POSITIONS, BLOCKS);
    cache.keep_states(COST);
    let (mut memory, mut tokens) = (vec![], vec![]);
    let a = cache.create();
    run(&mut cache, &mut memory, (a, &mut tokens), (5, 3), &mut 0);
    assert_eq!(cache.state(a).unwrap().unwrap().1, 2);
    cache.truncate(a, 3).unwrap();
    assert_eq!(cache.len(a).unwrap(), 3, "one draft was right");
    tokens.truncate(3);
    run(&mut cache, &mut memory, (a, &mut tokens), (1, 0), &mut 0);
    assert_eq!(cache.state(a).unwrap().unwrap().1, 4, "which the next step takes in");
}

#[test]
fn a_cache_without_room_for_a_state_says_so() {
    let mut cache = PagedCache::new(POSITIONS, COST + 1);
    cache.keep_states(COST);
    let (a, b) = (cache.create(), cache.create());
    cache.extend(a, 1).unwrap();
    let full = cache.extend(b, 1);
    assert!(matches!(full, Err(ModelError::CacheFull { needed: 4, free: 0, .. })), "{full:?}");
    cache.remove(a);
    cache.extend(b, 1).unwrap();
}
