//! Where the beams of a search lie in a paged cache.

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
    places: &mut Vec<SequenceId>,
    parents: &[usize],
) -> Result<(), ModelError> {
    for &place in places.iter() {
        pool.len(place)?;
    }
    let mut left: Vec<_> = places.iter().copied().map(Some).collect();
    let mut next = Vec::with_capacity(parents.len());
    for &parent in parents {
        let place = match left[parent].take() {
            Some(place) => place,
            None => pool.fork(places[parent])?,
        };
        next.push(place);
    }
    for place in left.into_iter().flatten() {
        pool.remove(place);
    }
    *places = next;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_share_what_they_have_in_common_until_they_write() {
        let mut pool = PagedCache::new(4, 8);
        let mut places = vec![pool.create()];
        pool.extend(places[0], 6).expect("room");
        follow(&mut pool, &mut places, &[0, 0, 0]).expect("forks");
        assert_eq!((places.len(), pool.free_blocks()), (3, 6));
        for &place in &places {
            pool.extend(place, 1).expect("room");
        }
        assert_eq!(pool.free_blocks(), 4, "each has a second block of its own");
        pool.copies_made();
        let before = places.clone();
        follow(&mut pool, &mut places, &[2, 2, 0]).expect("forks");
        assert_eq!((places[0], places[2]), (before[2], before[0]));
        assert_eq!(pool.free_blocks(), 5, "nothing goes on from the second");
        assert!(pool.len(before[1]).is_err());
        follow(&mut pool, &mut places, &[]).expect("nothing");
        assert_eq!((places.len(), pool.free_blocks()), (0, 8));
    }
}
