//! Consistent hashing, with and without bounded loads.

use super::Load;
use crate::hash::combine;

/// Points of each replica: those of a server with `weight 100` in `HAProxy`, which has 16 for a weight
/// of 1.
const POINTS: u32 = 1600;

/// Points of all replicas by their hashes. A key belongs to the next point.
#[derive(Clone, Debug)]
pub(super) struct Ring {
    points: Vec<(u64, u32)>,
    factor: Option<u32>, // most open requests of a replica, in percent of the mean
}

impl Ring {
    /// Each seed has other points.
    pub(super) fn new(replicas: u32, factor: Option<u32>, seed: u64) -> Self {
        let of_replica = |replica| {
            let hash = move |point| {
                combine(combine(seed.wrapping_add(1), u64::from(replica)), u64::from(point))
            };
            (0..POINTS).map(move |point| (hash(point), replica))
        };
        let mut points: Vec<_> = (0..replicas).flat_map(of_replica).collect();
        points.sort_unstable();
        Self { points, factor }
    }

    /// The first replica from a key's place on that is there and has a free slot.
    pub(super) fn choose(&self, key: u64, loads: &[Load]) -> usize {
        let start = self.points.partition_point(|(hash, _)| *hash < key);
        let (before, behind) = self.points.split_at(start);
        let replicas = behind.iter().chain(before).map(|(_, replica)| *replica as usize);
        let mut there = replicas.filter(|&replica| !loads[replica].lost);
        let Some(factor) = self.factor else { return there.next().unwrap_or_default() };
        let slots = Slots::new(loads, factor);
        let mut full = vec![false; loads.len()];
        let mut owner = None;
        for replica in there {
            owner = owner.or(Some(replica));
            if !full[replica] && slots.has_room(replica, loads) {
                return replica;
            }
            full[replica] = true;
        }
        owner.unwrap_or_default()
    }
}

/// Slots of the replicas: the open requests and the new one times the factor, rounded up and shared
/// out as whole numbers. There are more of them than open requests.
struct Slots {
    each: u64,
    rest: u64,
    replicas: u64,
}

impl Slots {
    fn new(loads: &[Load], factor: u32) -> Self {
        let there = || loads.iter().filter(|load| !load.lost);
        let open: u64 = there().map(|load| u64::from(load.open)).sum();
        let all = ((open + 1) * u64::from(factor)).div_ceil(100);
        let replicas = there().count() as u64;
        Self { each: all / replicas, rest: all % replicas, replicas }
    }

    fn has_room(&self, replica: usize, loads: &[Load]) -> bool {
        let before = loads[..replica].iter().filter(|load| !load.lost).count() as u64;
        let rest = |replicas: u64| replicas * self.rest / self.replicas;
        let slots = self.each + rest(before + 1) - rest(before);
        u64::from(loads[replica].open) < slots.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loads(open: &[u32]) -> Vec<Load> {
        open.iter().map(|&open| Load { open, ..Load::default() }).collect()
    }

    fn keys() -> impl Iterator<Item = u64> {
        (0..10_000).map(|key| combine(2, key))
    }

    #[test]
    fn keys_are_spread() {
        let (ring, loads) = (Ring::new(10, None, 0), loads(&[0; 10]));
        let mut counts = [0_u32; 10];
        keys().for_each(|key| counts[ring.choose(key, &loads)] += 1);
        assert!(counts.iter().all(|count| (850..1150).contains(count)), "{counts:?}");
    }

    #[test]
    fn only_the_keys_of_a_lost_replica_move() {
        let ring = Ring::new(7, None, 0);
        let all = loads(&[0; 7]);
        let mut left = all.clone();
        left[3].lost = true;
        let mut to = [0_u32; 7];
        for key in keys() {
            let (before, after) = (ring.choose(key, &all), ring.choose(key, &left));
            if before == 3 {
                to[after] += 1;
            } else {
                assert_eq!(before, after);
            }
        }
        assert_eq!(to[3], 0);
        assert!((0..7).filter(|&replica| replica != 3).all(|replica| to[replica] > 0), "{to:?}");
    }

    #[test]
    fn keys_move_only_to_a_new_replica() {
        let (few, more) = (Ring::new(7, None, 0), Ring::new(8, None, 0));
        for key in keys() {
            let (before, after) =
                (few.choose(key, &loads(&[0; 7])), more.choose(key, &loads(&[0; 8])));
            assert!(after == before || after == 7);
        }
    }

    /// 150 % of (6 + 1) are 10.5, so there are 11 slots: 3, 4 and 4.
    #[test]
    fn a_bounded_load_moves_the_excess_alone() {
        let (plain, bounded) = (Ring::new(3, None, 0), Ring::new(3, Some(150), 0));
        for (open, full) in [([2, 3, 1], None), ([3, 3, 0], Some(0)), ([2, 0, 4], Some(2))] {
            let loads = loads(&open);
            for key in keys() {
                let (owner, chosen) = (plain.choose(key, &loads), bounded.choose(key, &loads));
                assert_eq!(owner == chosen, Some(owner) != full, "{open:?}");
            }
        }
    }

    #[test]
    fn no_replica_has_more_than_its_bound() {
        let ring = Ring::new(4, Some(125), 0);
        let mut loads = loads(&[0; 4]);
        for _ in 0..1000 {
            let chosen = ring.choose(42, &loads); // one key alone
            loads[chosen].open += 1;
        }
        let open: Vec<_> = loads.iter().map(|load| load.open).collect();
        assert_eq!(open.iter().sum::<u32>(), 1000);
        assert!(open.iter().all(|&open| open <= 313), "125 % of 250, rounded up: {open:?}");
    }
}
