//! Steps one after the other, for a chart of their time.

use std::{
    collections::VecDeque,
    io::{self, Write},
    time::Duration,
};

use setun_model::TimedOp;

/// Steps with their operations, in the order in which they ran; of several devices, one after the
/// other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timeline {
    steps: VecDeque<TimedStep>,
}

/// A step with its operations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimedStep {
    /// Which of the engine's devices, from 0 on.
    pub device: usize,
    /// Whether it had rows of prompts.
    pub is_prefill: bool,
    /// Its rows.
    pub rows: usize,
    /// Its beginning, since the timeline's.
    pub begun: Duration,
    /// What it took, with choosing tokens.
    pub time: Duration,
    /// The beginning of its forward pass, since the timeline's.
    pub forward_begun: Duration,
    /// What the forward pass took, with waiting for the device.
    pub forward_time: Duration,
    /// Its operations. Of a model whose layers are split over devices there are none.
    pub ops: Vec<TimedOp>,
}

impl Timeline {
    /// Most steps that are kept of a device: the latest.
    pub const MAX_STEPS: usize = 4096;

    /// The steps.
    #[must_use]
    pub fn steps(&self) -> impl ExactSizeIterator<Item = &TimedStep> {
        self.steps.iter()
    }

    /// Writes the trace format that `chrome://tracing` and Perfetto read: JSON with an event of
    /// phase `X` for each step, its forward pass and each operation, in microseconds. Operations
    /// follow each other from the beginning of the forward pass, as devices say what they took
    /// but not when they began.
    ///
    /// # Errors
    ///
    /// As the writer's own.
    pub fn write_chrome(&self, mut out: impl Write) -> io::Result<()> {
        write!(out, r#"{{"displayTimeUnit":"ms","traceEvents":["#)?;
        write!(out, r#"{{"name":"process_name","ph":"M","pid":1,"args":{{"name":"setun"}}}}"#)?;
        self.steps.iter().try_for_each(|step| step.write_chrome(&mut out))?;
        writeln!(out, "\n]}}")
    }

    pub(crate) fn push(&mut self, step: TimedStep) {
        if self.steps.len() >= Self::MAX_STEPS {
            self.steps.pop_front();
        }
        self.steps.push_back(step);
    }

    /// Adds the steps of a device.
    pub(crate) fn add(&mut self, device: usize, other: Self) {
        self.steps.extend(other.steps.into_iter().map(|step| TimedStep { device, ..step }));
    }
}

impl TimedStep {
    fn write_chrome(&self, out: &mut impl Write) -> io::Result<()> {
        let name = if self.is_prefill { "prefill" } else { "decode" };
        let rows = format!(r#"{{"rows":{}}}"#, self.rows);
        self.event(out, ("step", name, None), (self.begun, self.time), &rows)?;
        let forward = (self.forward_begun, self.forward_time);
        self.event(out, ("step", "forward", None), forward, &rows)?;
        let mut begun = self.forward_begun;
        for &TimedOp { name, role, layer, time } in &self.ops {
            let layer = layer.map_or("{}".to_owned(), |layer| format!(r#"{{"layer":{layer}}}"#));
            self.event(out, ("operation", name, role), (begun, time), &layer)?;
            begun += time;
        }
        Ok(())
    }

    /// Writes what took some time from then on. No name needs an escape.
    fn event(
        &self,
        out: &mut impl Write,
        (category, name, role): (&str, &str, Option<&str>),
        (begun, time): (Duration, Duration),
        arguments: &str,
    ) -> io::Result<()> {
        let (space, role) = role.map_or(("", ""), |role| (" ", role));
        let (begun, time, thread) = (Microseconds(begun), Microseconds(time), self.device + 1);
        write!(
            out,
            ",\n{{\"name\":\"{name}{space}{role}\",\"cat\":\"{category}\",\"ph\":\"X\",\"ts\":{begun},\
             \"dur\":{time},\"pid\":1,\"tid\":{thread},\"args\":{arguments}}}"
        )
    }
}

/// Shown to the nanosecond.
struct Microseconds(Duration);

impl std::fmt::Display for Microseconds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let nanoseconds = self.0.as_nanos();
        write!(f, "{}.{:03}", nanoseconds / 1000, nanoseconds % 1000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_steps_are_kept_with_their_device() {
        let step = |nanoseconds| TimedStep {
            device: 0,
            is_prefill: false,
            rows: 1,
            begun: Duration::from_nanos(nanoseconds),
            time: Duration::from_nanos(1),
            forward_begun: Duration::ZERO,
            forward_time: Duration::ZERO,
            ops: vec![],
        };
        let (mut timeline, mut all) = (Timeline::default(), Timeline::default());
        (0..5000).for_each(|begun| timeline.push(step(begun)));
        assert_eq!(timeline.steps().len(), Timeline::MAX_STEPS);
        assert_eq!(timeline.steps().last(), Some(&step(4999)));
        all.add(3, timeline);
        let mut text = vec![];
        all.write_chrome(&mut text).expect("memory");
        let text = String::from_utf8(text).expect("UTF-8");
        assert!(text.contains(r#""ts":4.999,"dur":0.001,"pid":1,"tid":4"#), "{text}");
    }
}
