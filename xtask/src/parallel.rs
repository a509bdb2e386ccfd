//! A parallel map: as many items at a time as there are processors.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use anyhow::Result;

/// What `work` makes of each of `things`, in their order, or the error of the first that has one.
/// As many are worked on at a time as there are processors; all are, even after an error.
pub(crate) fn parallel_map<Thing: Sync, Made: Send>(
    things: &[Thing],
    work: impl Fn(&Thing) -> Result<Made> + Sync,
) -> Result<Vec<Made>> {
    let next = AtomicUsize::new(0);
    let take_turns = || {
        let mut made = vec![];
        loop {
            let place = next.fetch_add(1, Ordering::Relaxed);
            let Some(thing) = things.get(place) else { return made };
            made.push((place, work(thing)));
        }
    };
    let mut made = thread::scope(|scope| {
        let threads = thread::available_parallelism().map_or(1, usize::from);
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(take_turns)).collect();
        let made = threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)));
        made.flatten().collect::<Vec<_>>()
    });
    made.sort_by_key(|(place, _)| *place);
    made.into_iter().map(|(_, made)| made).collect()
}

#[cfg(test)]
mod tests {
    use anyhow::ensure;

    use super::*;

    #[test]
    fn what_is_made_has_the_order_of_the_things() {
        let numbers: Vec<u64> = (0..50).collect();
        let doubled = parallel_map(&numbers, |number| Ok(2 * number)).unwrap();
        assert_eq!(doubled, numbers.iter().map(|number| 2 * number).collect::<Vec<_>>());
        assert!(parallel_map(&[], |(): &()| Ok(())).unwrap().is_empty());
    }

    #[test]
    fn the_first_error_is_told_and_all_were_worked_on() {
        let done = AtomicUsize::new(0);
        let error = parallel_map(&[1, 2, 3, 4], |number| {
            done.fetch_add(1, Ordering::Relaxed);
            ensure!(number % 2 == 1, "{number} is even");
            Ok(())
        });
        assert_eq!(error.unwrap_err().to_string(), "2 is even");
        assert_eq!(done.into_inner(), 4);
    }
}
