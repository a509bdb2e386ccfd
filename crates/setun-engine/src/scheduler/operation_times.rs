//! Times of operations, from steps that are timed now and then.

use std::time::Duration;

use setun_model::Profile;

use crate::metrics::OperationTime;

/// Least time of steps between two timed ones of a kind. A timed step takes longer: of a small model,
/// timing ten steps a second costs half a percent.
const INTERVAL: Duration = Duration::from_millis(250);

/// The steps that wait for a timed one, whose operations stand for theirs.
#[derive(Default)]
pub(super) struct OperationTimes {
    prefill: Untimed,
    decode: Untimed,
}

/// Time of the steps since the last timed one; none before the first.
#[derive(Default)]
struct Untimed(Option<Duration>);

impl OperationTimes {
    /// Whether the next step is to be timed.
    pub(super) fn is_due(&self, is_prefill: bool) -> bool {
        let Untimed(time) = if is_prefill { &self.prefill } else { &self.decode };
        time.is_none_or(|time| time >= INTERVAL)
    }

    /// Adds what a step took, or several, to the times of its operations where it was timed.
    pub(super) fn add(
        &mut self,
        profile: Option<&Profile>,
        is_prefill: bool,
        elapsed: Duration,
        times: &mut Vec<OperationTime>,
    ) {
        let Untimed(untimed) = if is_prefill { &mut self.prefill } else { &mut self.decode };
        let all = untimed.unwrap_or_default() + elapsed;
        let Some(profile) = profile else {
            *untimed = untimed.map(|_| all);
            return;
        };
        *untimed = Some(Duration::ZERO);
        // Devices that work at the same time have more than the time of the step.
        let timed = elapsed.max(profile.time()).max(Duration::from_nanos(1));
        let share = |time: Duration| all.mul_f64(time.as_secs_f64() / timed.as_secs_f64());
        let mut rest = all;
        for op in &profile.ops {
            let time = share(op.time);
            rest = rest.saturating_sub(time);
            OperationTime::add((op.name, op.role), is_prefill, time, times);
        }
        OperationTime::add((OperationTime::OTHER, None), is_prefill, rest, times);
    }
}

#[cfg(test)]
mod tests {
    use setun_model::OpProfile;

    use super::*;

    const fn ms(count: u64) -> Duration {
        Duration::from_millis(count)
    }

    fn profile(ops: &[(&'static str, Duration)]) -> Profile {
        let op = |&(name, time)| OpProfile {
            name,
            role: None,
            calls: 1,
            time,
            weight_bytes: 0,
            multiply_adds: 0,
        };
        Profile { steps: 1, ops: ops.iter().map(op).collect(), ..Profile::default() }
    }

    #[test]
    fn a_timed_step_stands_for_those_before_it() {
        let (mut operations, mut times) = (OperationTimes::default(), vec![]);
        let step = profile(&[("gate", ms(2)), ("head", ms(1))]);
        assert!(operations.is_due(true) && operations.is_due(false), "the first is timed");
        operations.add(Some(&step), false, ms(4), &mut times);
        assert!(operations.is_due(true) && !operations.is_due(false));
        operations.add(None, false, ms(249), &mut times);
        assert!(!operations.is_due(false));
        operations.add(None, false, ms(1), &mut times);
        assert!(operations.is_due(false));
        let found = |times: &[OperationTime]| -> Vec<_> {
            times.iter().map(|time| (time.name, time.prefill, time.decode)).collect()
        };
        let zero = Duration::ZERO;
        let first = [("gate", zero, ms(2)), ("head", zero, ms(1)), ("other", zero, ms(1))];
        assert_eq!(found(&times), first);
        operations.add(Some(&step), false, ms(4), &mut times);
        operations.add(Some(&profile(&[("attention", ms(8))])), true, ms(8), &mut times);
        let both = [
            ("gate", zero, ms(129)),
            ("head", zero, Duration::from_micros(64_500)),
            ("other", zero, Duration::from_micros(64_500)),
            ("attention", ms(8), zero),
        ];
        assert_eq!(found(&times), both);
    }

    #[test]
    fn operations_of_several_devices_have_no_more_than_the_steps() {
        let (mut operations, mut times) = (OperationTimes::default(), vec![]);
        let step = profile(&[("gate", ms(6)), ("head", ms(2))]);
        operations.add(Some(&step), true, ms(4), &mut times);
        assert_eq!(times.iter().map(|time| time.prefill).sum::<Duration>(), ms(4));
        assert_eq!(times[0].prefill, ms(3));
    }
}
