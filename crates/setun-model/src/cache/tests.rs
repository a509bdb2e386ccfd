//! Block tables by example, and against a model of the memory.

use super::*;
use proptest::{collection::vec, prelude::*};

#[test]
fn a_fork_shares_full_blocks_and_copies_the_partial_one() {
    let mut cache = PagedCache::new(4, 8);
    let a = cache.create();
    cache.extend(a, 6).unwrap();
    let b = cache.fork(a).unwrap();
    assert_eq!(cache.free_blocks(), 6);
    cache.extend(b, 1).unwrap();
    let copies = cache.copies().to_vec();
    cache.copies_made();
    assert_eq!(copies, [(cache.blocks(a).unwrap()[1], cache.blocks(b).unwrap()[1])]);
    assert_eq!(cache.blocks(a).unwrap()[0], cache.blocks(b).unwrap()[0]);
    cache.extend(a, 1).unwrap();
    assert_eq!(cache.copies(), [], "the other owner has left");
}

#[test]
fn a_full_cache_says_so_and_stays_as_it_was() {
    let mut cache = PagedCache::new(4, 2);
    let a = cache.create();
    cache.extend(a, 5).unwrap();
    assert!(matches!(
        cache.extend(a, 4),
        Err(ModelError::CacheFull { needed: 1, free: 0, blocks: 2 })
    ));
    assert_eq!(cache.len(a).unwrap(), 5);
    cache.extend(a, 3).unwrap();
    cache.remove(a);
    assert_eq!(cache.free_blocks(), 2);
    assert!(matches!(cache.len(a), Err(ModelError::UnknownSequence(_))));
}

#[test]
fn an_empty_cache_needs_no_memory_again() {
    let mut cache = PagedCache::new(4, 8);
    let (a, b) = (cache.create(), cache.create());
    cache.extend(a, 20).unwrap();
    cache.extend(b, 4).unwrap();
    cache.remove(a);
    assert_eq!(cache.high_water_blocks(), 6);
    cache.remove(b);
    assert_eq!((cache.high_water_blocks(), cache.free_blocks()), (0, 8));
    let c = cache.create();
    cache.extend(c, 32).unwrap();
    assert_eq!(cache.free_blocks(), 0);
}

#[test]
fn a_prefix_is_found_by_its_tokens_and_runs_its_last_row() {
    let mut cache = PagedCache::new(4, 8);
    cache.keep_prefixes(8);
    let tokens: Vec<u32> = (0..10).collect();
    let a = cache.create();
    cache.extend(a, 10).unwrap();
    cache.record_prefix(a, &tokens).unwrap();
    assert_eq!(cache.found(None, &tokens[..8]), (1, 0), "the eighth token has to run");
    assert_eq!(cache.found(None, &tokens[..9]), (2, 0));
    assert_eq!(cache.found(None, &[0, 1, 2, 3, 9, 9, 9, 9, 9]), (1, 0));
    assert_eq!(cache.found(None, &[9, 1, 2, 3, 4]), (0, 0));
    let b = cache.create_from(None, &tokens);
    assert_eq!(cache.len(b).unwrap(), 8);
    assert_eq!(cache.blocks(b).unwrap(), &cache.blocks(a).unwrap()[..2]);
    cache.remove(a);
    cache.remove(b);
    assert_eq!((cache.idle_blocks(), cache.free_blocks()), (2, 8));
    assert_eq!(cache.found(None, &tokens), (2, 2));
    cache.forget_idle(1);
    assert_eq!(cache.found(None, &tokens), (1, 1), "the end of a prefix goes first");
    cache.forget_idle(0);
    assert_eq!((cache.high_water_blocks(), cache.free_blocks()), (0, 8));
}

#[test]
fn prefixes_of_two_salts_share_nothing() {
    let mut cache = PagedCache::new(4, 12);
    cache.keep_prefixes(12);
    let tokens: Vec<u32> = (0..9).collect();
    let salts: [Option<CacheSalt>; 3] = [None, Some("a".into()), Some("b".into())];
    for (known, salt) in salts.iter().enumerate() {
        let found = salts.each_ref().map(|salt| cache.found(salt.as_ref(), &tokens).0);
        assert_eq!(found, std::array::from_fn(|index| if index < known { 2 } else { 0 }));
        let own = cache.create_from(salt.as_ref(), &tokens);
        cache.extend(own, 9).unwrap();
        let fork = cache.fork(own).unwrap();
        cache.remove(own);
        cache.record_prefix(fork, &tokens).unwrap();
        cache.remove(fork);
    }
    cache.compact();
    cache.copies_made();
    assert_eq!((cache.idle_blocks(), cache.free_blocks()), (6, 12));
    let [a, b] = [1, 2].map(|index| cache.create_from(salts[index].as_ref(), &tokens));
    let blocks = [a, b].map(|id| cache.blocks(id).unwrap().to_vec());
    assert!(blocks.iter().all(|blocks| blocks.len() == 2), "{blocks:?}");
    assert!(blocks[0].iter().all(|block| !blocks[1].contains(block)), "{blocks:?}");
    cache.forget_idle(0);
    let found = salts.each_ref().map(|salt| cache.found(salt.as_ref(), &tokens));
    assert_eq!(found, [(0, 0), (2, 0), (2, 0)], "those that are in use stay");
}

#[test]
fn what_two_sequences_computed_is_kept_once() {
    let mut cache = PagedCache::new(4, 8);
    cache.keep_prefixes(8);
    let tokens: Vec<u32> = (0..8).collect();
    let (a, b) = (cache.create(), cache.create());
    for sequence in [a, b] {
        cache.extend(sequence, 8).unwrap();
    }
    let twin = cache.fork(b).unwrap();
    for sequence in [a, b, twin] {
        cache.record_prefix(sequence, &tokens).unwrap();
        cache.record_prefix(sequence, &tokens).unwrap();
    }
    assert_eq!(cache.blocks(a).unwrap(), cache.blocks(b).unwrap());
    assert_eq!(cache.blocks(a).unwrap(), cache.blocks(twin).unwrap());
    assert_eq!(cache.free_blocks(), 6);
    for sequence in [a, b, twin] {
        assert_eq!(cache.idle_blocks(), 0);
        cache.remove(sequence);
    }
    assert_eq!((cache.idle_blocks(), cache.free_blocks()), (2, 8));
}

#[test]
fn the_least_lately_used_prefix_makes_room() {
    let mut cache = PagedCache::new(2, 4);
    cache.keep_prefixes(3);
    for token in [1, 2, 3] {
        let sequence = cache.create();
        cache.extend(sequence, 2).unwrap();
        cache.record_prefix(sequence, &[token, 0]).unwrap();
        cache.remove(sequence);
    }
    let again = cache.create_from(None, &[1, 0, 5]);
    cache.remove(again);
    let long = cache.create();
    cache.extend(long, 4).unwrap();
    let found = [1, 2, 3].map(|token| cache.found(None, &[token, 0, 5]).0);
    assert_eq!(found, [1, 0, 1], "one block was free, and one had to go");
    cache.extend(long, 4).unwrap();
    assert_eq!((cache.idle_blocks(), cache.free_blocks()), (0, 0));
    assert!(matches!(cache.extend(long, 1), Err(ModelError::CacheFull { needed: 1, .. })));
    cache.remove(long);
    assert_eq!(cache.free_blocks(), 4);
}

#[test]
fn a_recorded_block_that_is_written_again_is_copied_first() {
    let mut cache = PagedCache::new(4, 8);
    cache.keep_prefixes(8);
    let a = cache.create();
    cache.extend(a, 8).unwrap();
    cache.record_prefix(a, &[7; 8]).unwrap();
    let recorded = cache.blocks(a).unwrap()[1];
    cache.truncate(a, 6).unwrap();
    cache.extend(a, 1).unwrap();
    assert_eq!(cache.copies(), [(recorded, cache.blocks(a).unwrap()[1])]);
    assert_eq!(cache.found(None, &[7; 9]), (2, 1), "the prefix is what it was");
}

#[test]
fn a_compact_cache_has_what_it_had_in_its_first_blocks() {
    let mut cache = PagedCache::new(4, 24);
    cache.keep_prefixes(24);
    let tokens: Vec<u32> = (0..9).collect();
    let (a, b, c) = (cache.create(), cache.create(), cache.create());
    for sequence in [a, b, c] {
        cache.extend(sequence, 9).unwrap();
    }
    cache.record_prefix(c, &tokens).unwrap();
    let twin = cache.fork(c).unwrap();
    cache.remove(a);
    cache.compact();
    assert_eq!((cache.held_blocks(), cache.high_water_blocks(), cache.free_blocks()), (6, 6, 18));
    let moves = [(6, 0), (7, 1), (8, 2)].map(|(from, to)| (BlockId(from), BlockId(to)));
    assert_eq!(cache.copies(), moves);
    cache.copies_made();
    for sequence in [c, twin] {
        assert_eq!(cache.blocks(sequence).unwrap(), [0, 1, 2].map(BlockId));
        cache.remove(sequence);
    }
    assert_eq!(cache.idle_blocks(), 2);
    let found = cache.create_from(None, &tokens);
    assert_eq!(cache.blocks(found).unwrap(), [0, 1].map(BlockId));
    cache.compact();
    assert_eq!(cache.copies(), [(BlockId(5), BlockId(2))]);
}

#[test]
fn a_compact_cache_makes_the_copies_that_it_owes() {
    let mut cache = PagedCache::new(4, 24);
    let (gone, a) = (cache.create(), cache.create());
    cache.extend(gone, 8).unwrap();
    cache.extend(a, 6).unwrap();
    let (b, c) = (cache.fork(a).unwrap(), cache.fork(a).unwrap());
    cache.extend(b, 1).unwrap(); // 3 to 4
    cache.extend(c, 1).unwrap(); // 3 to 5, whom nobody has soon
    for sequence in [gone, a, c] {
        cache.remove(sequence);
    }
    cache.compact();
    let copies = [(3, 4), (2, 0), (4, 1)].map(|(from, to)| (BlockId(from), BlockId(to)));
    assert_eq!(cache.copies(), copies);
    assert_eq!(cache.blocks(b).unwrap(), [0, 1].map(BlockId));
}

#[test]
fn a_limit_leaves_what_is_in_use() {
    let mut cache = PagedCache::new(4, 8);
    let (a, b) = (cache.create(), cache.create());
    cache.extend(a, 12).unwrap();
    cache.extend(b, 12).unwrap();
    cache.set_max_blocks(2);
    assert_eq!((cache.max_blocks(), cache.free_blocks()), (6, 0));
    cache.remove(a);
    cache.set_max_blocks(4);
    assert_eq!((cache.max_blocks(), cache.free_blocks(), cache.high_water_blocks()), (4, 1, 3));
    assert!(matches!(cache.extend(b, 5), Err(ModelError::CacheFull { needed: 2, free: 1, .. })));
    cache.set_max_blocks(8);
    cache.extend(b, 5).unwrap();
}

#[derive(Clone, Debug)]
enum Step {
    Compact,
    Create,
    CreateFrom(usize, usize),
    Note(usize),
    Forget(usize),
    Fork(usize),
    Extend(usize, usize),
    Truncate(usize, usize),
    Remove(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        Just(Step::Create),
        Just(Step::Compact),
        (0..8usize, 0..20usize).prop_map(|(s, n)| Step::CreateFrom(s, n)),
        (0..8usize).prop_map(Step::Note),
        (0..8usize).prop_map(Step::Forget),
        (0..8usize).prop_map(Step::Fork),
        (0..8usize, 0..9usize).prop_map(|(s, n)| Step::Extend(s, n)),
        (0..8usize, 0..20usize).prop_map(|(s, n)| Step::Truncate(s, n)),
        (0..8usize).prop_map(Step::Remove),
    ];
    vec(step, 1..60)
}

proptest! {
    /// Writes go through the block tables into a model of the memory; every sequence
    /// always reads back what it wrote, and no block is lost.
    #[test]
    fn sequences_never_see_each_other(steps in steps(), kept in prop_oneof![Just(0), 0..24_usize]) {
        let mut cache = PagedCache::new(4, 24);
        cache.keep_prefixes(kept);
        let mut memory = vec![[0u32; 4]; 24];
        let mut live: Vec<(SequenceId, Vec<u32>)> = vec![];
        let mut stamp = 0;
        for step in steps {
            let count = live.len().max(1);
            match step {
                Step::Create => live.push((cache.create(), vec![])),
                Step::CreateFrom(i, n) if !live.is_empty() => {
                    let (_, contents) = &live[i % count];
                    let mut wanted = contents[..n.min(contents.len())].to_vec();
                    let id = cache.create_from(None, &wanted);
                    let len = cache.len(id).unwrap();
                    prop_assert!(len.is_multiple_of(4) && (wanted.is_empty() || len < wanted.len()));
                    wanted.truncate(len);
                    live.push((id, wanted));
                }
                Step::Note(i) if !live.is_empty() => {
                    let (id, contents) = &live[i % count];
                    cache.record_prefix(*id, contents).unwrap();
                }
                Step::Compact => {
                    cache.compact();
                    for (from, to) in cache.copies() {
                        memory[to.0 as usize] = memory[from.0 as usize];
                    }
                    cache.copies_made();
                    prop_assert_eq!(cache.high_water_blocks(), cache.held_blocks());
                    // What is beyond is no longer there.
                    memory[cache.held_blocks()..].fill([u32::MAX; 4]);
                }
                Step::Forget(most) => cache.forget_idle(most),
                Step::Fork(i) if !live.is_empty() => {
                    let (id, contents) = live[i % count].clone();
                    live.push((cache.fork(id).unwrap(), contents));
                }
                Step::Extend(i, n) if !live.is_empty() => {
                    let (id, contents) = &mut live[i % count];
                    if cache.extend(*id, n).is_ok() {
                        for &(from, to) in cache.copies() {
                            memory[to.0 as usize] = memory[from.0 as usize];
                        }
                        cache.copies_made();
                        for _ in 0..n {
                            stamp = (stamp + 1) % 3; // so that sequences have much in common
                            let block = cache.blocks(*id).unwrap()[contents.len() / 4];
                            memory[block.0 as usize][contents.len() % 4] = stamp;
                            contents.push(stamp);
                        }
                    }
                }
                Step::Truncate(i, n) if !live.is_empty() => {
                    let (id, contents) = &mut live[i % count];
                    cache.truncate(*id, n).unwrap();
                    contents.truncate(n);
                }
                Step::Remove(i) if !live.is_empty() => {
                    let (id, _) = live.swap_remove(i % count);
                    cache.remove(id);
                }
                _ => {}
            }
            for (id, contents) in &live {
                let blocks = cache.blocks(*id).unwrap();
                let found = contents.iter().enumerate().map(|(position, _)| {
                    memory[blocks[position / 4].0 as usize][position % 4]
                });
                prop_assert!(found.eq(contents.iter().copied()));
            }
            prop_assert!(cache.idle_blocks() <= kept);
        }
        for (id, _) in live {
            cache.remove(id);
        }
        prop_assert_eq!(cache.free_blocks(), 24);
        cache.forget_idle(0);
        prop_assert_eq!((cache.free_blocks(), cache.high_water_blocks()), (24, 0));
    }
}
