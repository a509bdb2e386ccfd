//! The queue of sequences that wait for a place in the batch, by priority and arrival.

use std::{cmp::Reverse, collections::VecDeque, sync::Arc, time::Duration};

use setun_clock::Instant;

use crate::{
    command::MaintenanceTask,
    error::Error,
    sequence::{Request, Sequence},
};

/// Sequences that wait, those that go first come first.
#[derive(Default)]
pub(super) struct WaitQueue {
    sequences: Vec<Sequence>,
    arrivals: u64,
    /// What is to be done before the next step.
    pub(super) maintenance: VecDeque<MaintenanceTask>,
}

impl WaitQueue {
    /// Has a request wait, which has arrived after all others. A search of more rows than ever run
    /// at once fails.
    pub(super) fn enqueue(&mut self, request: Request, max_running: usize) {
        self.arrivals += 1;
        let mut sequence = Sequence::new(request, self.arrivals);
        if sequence.is_search() && sequence.count() > max_running {
            let found = sequence.count().to_string();
            let expected = format!("{max_running} or fewer");
            let error = Error::BadOption { option: "num_beams", found, expected };
            sequence.fail(&Arc::new(error));
        } else {
            self.push(sequence);
        }
    }

    /// Puts a sequence behind those of its priority that came before.
    pub(super) fn push(&mut self, sequence: Sequence) {
        let rank = |sequence: &Sequence| (Reverse(sequence.priority()), sequence.arrival);
        let index = self.sequences.partition_point(|other| rank(other) <= rank(&sequence));
        self.sequences.insert(index, sequence);
    }

    /// The place of the sequence that goes next, of those that are not passed over. Each tenant's go in
    /// their order, and the tenant goes first that has the fewest `places` with those before it.
    pub(super) fn next(
        &self,
        is_passed: impl Fn(usize, &Sequence) -> bool,
        places: impl Fn(Option<u64>) -> usize,
    ) -> Option<usize> {
        let mut tenants: Vec<(Option<u64>, usize)> = vec![];
        let mut first = None;
        for (index, sequence) in self.sequences.iter().enumerate() {
            let tenant = sequence.tenant();
            let known = tenants.iter().position(|(known, _)| *known == tenant);
            let known = known.unwrap_or_else(|| {
                tenants.push((tenant, places(tenant)));
                tenants.len() - 1
            });
            let rank = (tenants[known].1, sequence.arrival, index);
            tenants[known].1 += sequence.count();
            if first.is_none_or(|first| rank < first) && !is_passed(index, sequence) {
                first = Some(rank);
            }
        }
        first.map(|(_, _, index)| index)
    }

    pub(super) fn get(&self, index: usize) -> Option<&Sequence> {
        self.sequences.get(index)
    }

    pub(super) fn remove(&mut self, index: usize) -> Sequence {
        self.sequences.remove(index)
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Sequence> {
        self.sequences.iter_mut()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.sequences.is_empty()
    }

    /// Sequences that may come to run, each sample and beam by itself.
    pub(super) fn count(&self) -> usize {
        self.sequences.iter().map(Sequence::count).sum()
    }

    /// Whether one of them has run before.
    pub(super) fn has_preempted(&self) -> bool {
        self.sequences.iter().any(Sequence::has_entered)
    }

    /// The earliest of their deadlines, for their ends or their places.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let both = |sequence: &Sequence| [sequence.deadline(), sequence.queue_deadline()];
        self.sequences.iter().flat_map(both).flatten().min()
    }

    /// Takes out those that have waited too long for a place.
    pub(super) fn take_overdue(&mut self, now: Instant) -> Vec<Sequence> {
        self.sequences.extract_if(.., |sequence| sequence.is_overdue(now)).collect()
    }

    /// How much longer to wait for more requests, from the first one on; none where there is none,
    /// the time is over, one may wait no longer, or enough are there for a batch.
    pub(super) fn gathering(&self, wait: Duration, batch: usize, now: Instant) -> Option<Duration> {
        if self.count() >= batch {
            return None;
        }
        let first = self.sequences.iter().map(Sequence::arrival_time).min()?;
        let places = self.sequences.iter().filter_map(Sequence::queue_deadline);
        let end = places.fold(first + wait, Instant::min);
        end.checked_duration_since(now).filter(|left| !left.is_zero())
    }

    /// Takes out sequences that are interrupted, and keeps in their places what `end` leaves of
    /// them.
    pub(super) fn end_interrupted(
        &mut self,
        now: Instant,
        mut end: impl FnMut(Sequence) -> Option<Sequence>,
    ) {
        for index in (0..self.sequences.len()).rev() {
            if self.sequences[index].is_interrupted(now)
                && let Some(left) = end(self.sequences.remove(index))
            {
                self.sequences.insert(index, left);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use setun_clock::Clock;

    use super::{super::test_support::request, *};

    fn queue(priorities: &[i32]) -> WaitQueue {
        let mut queue = WaitQueue::default();
        for &priority in priorities {
            let mut request = request(vec![1; 3], 4);
            request.priority = priority;
            queue.enqueue(request, 64);
        }
        queue
    }

    fn order(queue: &WaitQueue) -> Vec<(i32, u64)> {
        queue.sequences.iter().map(|one| (one.priority(), one.arrival)).collect()
    }

    #[test]
    fn requests_go_in_the_order_of_their_arrival() {
        let queue = queue(&[0, 0, 0]);
        assert_eq!(order(&queue), [(0, 1), (0, 2), (0, 3)]);
        assert_eq!((queue.count(), queue.is_empty()), (3, false));
    }

    #[test]
    fn a_higher_priority_goes_first() {
        assert_eq!(order(&queue(&[0, 2, -1, 2])), [(2, 2), (2, 4), (0, 1), (-1, 3)]);
    }

    #[test]
    fn a_preempted_sequence_has_its_earlier_place_in_the_queue() {
        let mut queue = queue(&[0, 0, 0]);
        let preempted = queue.remove(1);
        queue.enqueue(request(vec![1], 1), 64);
        queue.push(preempted);
        assert_eq!(order(&queue), [(0, 1), (0, 2), (0, 3), (0, 4)]);
    }

    #[test]
    fn tenants_take_turns_and_each_has_its_own_order() {
        let mut queue = WaitQueue::default();
        // A crowd of one, then two of others, of which the last is in a hurry.
        for (tenant, priority) in [(1, 0), (1, 0), (1, 9), (2, 0), (3, 7)] {
            let mut request = request(vec![1; 3], 4);
            (request.tenant, request.priority) = (Some(tenant), priority);
            queue.enqueue(request, 64);
        }
        let order = |running: [usize; 4]| {
            let mut passed: Vec<u64> = vec![];
            let places = |tenant: Option<u64>| {
                running[usize::try_from(tenant.unwrap_or_default()).expect("it is small")]
            };
            while let Some(next) = queue.next(|_, one| passed.contains(&one.arrival), places) {
                passed.push(queue.sequences[next].arrival);
            }
            passed
        };
        assert_eq!(order([0; 4]), [3, 4, 5, 1, 2], "one each, by arrival; a hurry is one's own");
        assert_eq!(order([0, 1, 0, 0]), [4, 5, 3, 1, 2], "who runs already goes last");
        assert_eq!(order([0, 0, 2, 1]), [3, 1, 5, 2, 4], "of equals who came first");
    }

    #[test]
    fn an_empty_queue_gathers_nothing_and_has_no_deadline() {
        let queue = queue(&[]);
        let now = Clock::held().now();
        assert_eq!(queue.gathering(Duration::from_secs(9), 4, now), None);
        assert_eq!((queue.deadline(), queue.has_preempted()), (None, false));
    }

    #[test]
    fn more_requests_are_waited_for_from_the_first_one_on_until_there_is_a_batch() {
        let queue = queue(&[0, 0]);
        let first = queue.sequences[0].arrival_time();
        let (wait, later) = (Duration::from_secs(9), first + Duration::from_secs(4));
        assert_eq!(queue.gathering(wait, 3, later), Some(Duration::from_secs(5)));
        assert_eq!(queue.gathering(wait, 3, first + wait), None, "the time is over");
        assert_eq!(queue.gathering(wait, 2, later), None, "a batch is there");
        assert_eq!(queue.gathering(Duration::ZERO, 3, first), None);
    }

    #[test]
    fn the_earliest_deadline_counts_and_ends_its_sequence_alone() {
        let mut queue = queue(&[0]);
        let now = queue.sequences[0].arrival_time();
        for seconds in [7, 3, 5] {
            let mut request = request(vec![1], 1);
            request.deadline = Some(now + Duration::from_secs(seconds));
            queue.enqueue(request, 64);
        }
        assert_eq!(queue.deadline(), Some(now + Duration::from_secs(3)));
        queue.end_interrupted(now, |_| panic!("none is over"));
        let mut ended = vec![];
        queue.end_interrupted(now + Duration::from_secs(5), |sequence| {
            ended.push(sequence.arrival);
            None
        });
        assert_eq!((ended, order(&queue)), (vec![4, 3], vec![(0, 1), (0, 2)]));
    }

    #[test]
    fn a_sequence_waits_for_its_first_place_as_long_as_it_may_and_for_another_as_long_as_it_takes()
    {
        let mut queue = queue(&[0]);
        for seconds in [5, 3, 3] {
            let mut request = request(vec![1], 1);
            request.queue_timeout = Some(Duration::from_secs(seconds));
            queue.enqueue(request, 64);
        }
        let mut preempted = queue.remove(3);
        preempted.enter(0);
        queue.push(preempted);
        let second = Duration::from_secs(1);
        let (first, last) =
            (queue.sequences[2].arrival_time(), queue.sequences[1].arrival_time() + 5 * second);
        assert_eq!(queue.deadline(), Some(first + 3 * second));
        assert_eq!(queue.gathering(9 * second, 9, first + second), Some(2 * second));
        assert!(queue.take_overdue(first + 2 * second).is_empty());
        let mut overdue = |now| {
            let taken = queue.take_overdue(now);
            taken.iter().map(|sequence| sequence.arrival).collect::<Vec<_>>()
        };
        assert_eq!((overdue(first + 3 * second), overdue(last)), (vec![3], vec![2]));
        assert_eq!((queue.deadline(), order(&queue)), (None, vec![(0, 1), (0, 4)]));
    }

    #[test]
    fn what_is_left_of_an_interrupted_sequence_keeps_its_place() {
        let mut queue = queue(&[0, 0, 0]);
        queue.sequences[1].queue().cancel();
        let now = queue.sequences[1].arrival_time();
        queue.end_interrupted(now, Some);
        assert_eq!(order(&queue), [(0, 1), (0, 2), (0, 3)]);
        queue.end_interrupted(now, |_| None);
        assert_eq!(order(&queue), [(0, 1), (0, 3)]);
    }
}
