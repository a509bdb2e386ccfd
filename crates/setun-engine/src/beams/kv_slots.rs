//! KV slots of a search's beams in a paged cache.

use setun_model::{ModelError, PagedCache, SequenceId};

/// Moves the sequences of a search to its next rows, of which each goes on from one of those before:
/// the first of them that does so takes its place, others share its blocks until one writes.
/// Sequences from which nothing goes on are freed.
///
/// # Errors
///
/// If a sequence is not here; all are as before then.
pub(crate) fn follow(
    pool: &mut PagedCache,
    kv_slots: &mut Vec<SequenceId>,
    parents: &[usize],
) -> Result<(), ModelError> {
    for &kv_slot in kv_slots.iter() {
        pool.len(kv_slot)?;
    }
    let mut left: Vec<_> = kv_slots.iter().copied().map(Some).collect();
    let mut next = Vec::with_capacity(parents.len());
    for &parent in parents {
        let kv_slot = match left[parent].take() {
            Some(kv_slot) => kv_slot,
            None => pool.fork(kv_slots[parent])?,
        };
        next.push(kv_slot);
    }
    for kv_slot in left.into_iter().flatten() {
        pool.remove(kv_slot);
    }
    *kv_slots = next;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_share_what_they_have_in_common_until_they_write() {
        let mut pool = PagedCache::new(4, 8);
        let mut kv_slots = vec![pool.create()];
        pool.extend(kv_slots[0], 6).expect("room");
        follow(&mut pool, &mut kv_slots, &[0, 0, 0]).expect("forks");
        assert_eq!((kv_slots.len(), pool.free_blocks()), (3, 6));
        for &kv_slot in &kv_slots {
            pool.extend(kv_slot, 1).expect("room");
        }
        assert_eq!(pool.free_blocks(), 4, "each has a second block of its own");
        pool.copies_made();
        let before = kv_slots.clone();
        follow(&mut pool, &mut kv_slots, &[2, 2, 0]).expect("forks");
        assert_eq!((kv_slots[0], kv_slots[2]), (before[2], before[0]));
        assert_eq!(pool.free_blocks(), 5, "nothing goes on from the second");
        assert!(pool.len(before[1]).is_err());
        follow(&mut pool, &mut kv_slots, &[]).expect("nothing");
        assert_eq!((kv_slots.len(), pool.free_blocks()), (0, 8));
    }
}
