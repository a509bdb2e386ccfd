//! Times of steps by their rows, measured by `setun bench`.

use serde::{Deserialize, Serialize};

use crate::error::SimulateError;

/// Measured times of steps: points of rows and milliseconds, with growing rows. Between two points
/// and beyond the last the time is on a line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StepCosts {
    /// What was measured, and where.
    pub name: String,
    /// Steps of one row of each of some decoding sequences.
    pub decode: Vec<(u32, f64)>,
    /// Steps of prompt rows without logits.
    pub prefill: Vec<(u32, f64)>,
}

impl StepCosts {
    /// `BitNet` 2B-4T's shape with two threads of an Emerald Rapids host, from the tables of
    /// docs/performance.md: sequences ("Batches"), a prompt of 128 tokens ("Native engines"), and
    /// one row without the head ("Screened head": 20.3 ms of one thread, halved).
    #[must_use]
    pub fn bitnet_2b4t() -> Self {
        Self {
            name: "2b4t, two threads, Emerald Rapids".to_owned(),
            decode: vec![(1, 23.5), (4, 52.7), (8, 71.4), (16, 109.6)],
            prefill: vec![(1, 13.4), (128, 494.2)],
        }
    }

    /// The embedded story model with one thread: the engine's streams of
    /// docs/lab/2026-11-25-server.md ("Overhead of HTTP"), and the prompts of docs/simulate.md.
    #[must_use]
    pub fn stories() -> Self {
        Self {
            name: "stories, one thread".to_owned(),
            decode: vec![(1, 0.263), (4, 0.512), (16, 1.565)],
            prefill: vec![(1, 0.22), (16, 1.06), (64, 3.75)],
        }
    }

    /// Reads a table of JSON.
    ///
    /// # Errors
    ///
    /// If it is not one, or its points do not grow.
    pub fn read(text: &str) -> Result<Self, SimulateError> {
        let costs: Self =
            serde_json::from_str(text).map_err(|error| SimulateError::Costs(error.to_string()))?;
        costs.check()?;
        Ok(costs)
    }

    /// # Errors
    ///
    /// If its points do not grow.
    pub(crate) fn check(&self) -> Result<(), SimulateError> {
        for (name, points) in [("decode", &self.decode), ("prefill", &self.prefill)] {
            let wrong = |what: String| Err(SimulateError::Costs(format!("`{name}` {what}")));
            let Some(&(rows, ms)) = points.first() else {
                return wrong("has no points of rows and milliseconds".to_owned());
            };
            if rows == 0 || !(ms > 0.0 && ms.is_finite()) {
                return wrong(format!("begins with [{rows}, {ms}], expected numbers above 0"));
            }
            for pair in points.windows(2) {
                let [(rows, ms), (more, longer)] = [pair[0], pair[1]];
                if more <= rows || !(longer >= ms && longer.is_finite()) {
                    return wrong(format!("has [{more}, {longer}] after [{rows}, {ms}]"));
                }
            }
        }
        Ok(())
    }

    /// Milliseconds of a step of decoding and prompt rows. Prompt rows add to a step what they add
    /// to one of as many prompt rows: all rows share the weights that a step reads.
    #[must_use]
    pub fn step(&self, decoding: u32, prompt: u32) -> f64 {
        if decoding == 0 {
            return at(&self.prefill, prompt);
        }
        let added = match prompt {
            0 => 0.0,
            _ => at(&self.prefill, decoding + prompt) - at(&self.prefill, decoding),
        };
        at(&self.decode, decoding) + added
    }
}

/// The time at a number of rows. Below the first point it is that one's.
fn at(points: &[(u32, f64)], rows: u32) -> f64 {
    let behind = points.partition_point(|(point, _)| *point < rows);
    let [(first, ms), (second, longer)] = match (behind, points.len()) {
        (_, 1) => [(0, 0.0), points[0]],
        (0, _) => return points[0].1,
        (behind, len) if behind == len => [points[len - 2], points[len - 1]],
        (behind, _) => [points[behind - 1], points[behind]],
    };
    let share = (f64::from(rows) - f64::from(first)) / f64::from(second - first);
    ms + share * (longer - ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn costs() -> StepCosts {
        let decode = vec![(1, 10.0), (3, 14.0)];
        StepCosts { name: String::new(), decode, prefill: vec![(1, 5.0), (11, 25.0)] }
    }

    #[test]
    fn times_are_on_lines_between_points() {
        let found = [(1, 0), (2, 0), (3, 0), (5, 0), (0, 1), (0, 6), (0, 21), (2, 4), (0, 0)];
        let found = found.map(|(decoding, prompt)| costs().step(decoding, prompt));
        assert_eq!(found, [10.0, 12.0, 14.0, 18.0, 5.0, 15.0, 45.0, 20.0, 5.0]);
    }

    #[test]
    fn the_defaults_are_tables() {
        for costs in [StepCosts::bitnet_2b4t(), StepCosts::stories()] {
            costs.check().expect("growing points");
        }
    }

    #[test]
    fn what_does_not_grow_is_refused() {
        let refused = |decode: &str| {
            let text = format!(r#"{{"name": "n", "decode": {decode}, "prefill": [[1, 1.0]]}}"#);
            StepCosts::read(&text).map(|_| ()).expect_err("refused").to_string()
        };
        assert_eq!(refused("[[2, 1.0], [2, 3.0]]"), "step costs: `decode` has [2, 3] after [2, 1]");
        assert_eq!(refused("[[2, 3.0], [3, 1.0]]"), "step costs: `decode` has [3, 1] after [2, 3]");
        assert!(refused("[]").ends_with("has no points of rows and milliseconds"));
        assert!(refused("[[0, 1.0]]").contains("begins with [0, 1]"));
        assert!(refused("[[1]]").contains("line 1"));
    }
}
