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

#[derive(Clone, Debug)]
enum Step {
    Create,
    Fork(usize),
    Extend(usize, usize),
    Truncate(usize, usize),
    Remove(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        Just(Step::Create),
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
    fn sequences_never_see_each_other(steps in steps()) {
        let mut cache = PagedCache::new(4, 24);
        let mut memory = vec![[0u32; 4]; 24];
        let mut live: Vec<(SequenceId, Vec<u32>)> = vec![];
        let mut stamp = 0;
        for step in steps {
            let count = live.len().max(1);
            match step {
                Step::Create => live.push((cache.create(), vec![])),
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
                            stamp += 1;
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
        }
        for (id, _) in live {
            cache.remove(id);
        }
        prop_assert_eq!(cache.free_blocks(), 24);
    }
}
