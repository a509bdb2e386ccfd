//! Time profile of steps: `--profile`.

mod timing;

use serde::Serialize;
use setun::{
    EngineProfile, PhaseProfile,
    forward::{Density, LayerDensity, OpProfile, Profile},
};

use crate::{
    error::CliError,
    output::{counted, titled},
};
pub(super) use timing::TimingArgs;

/// What `--profile` adds to a report.
#[derive(Debug, Serialize)]
pub(super) struct ProfileReport {
    /// Steps with rows of prompts. None if there were none.
    prefill: Option<Phase>,
    /// Steps that only decode. None if there were none.
    decode: Option<Phase>,
}

/// Steps of one kind.
#[derive(Debug, Serialize)]
struct Phase {
    steps: usize,
    /// Rows of these steps.
    tokens: usize,
    ms_per_step: f64,
    ms_per_token: f64,
    /// Given to the team of threads; where it has several, each ends with a barrier.
    jobs_per_token: f64,
    /// All that was read.
    weight_bytes_per_token: u64,
    /// What a step takes beside its operations, in microseconds: the engine, choosing tokens, and
    /// the walk through the plan.
    overhead_us_per_token: f64,
    /// Gates that are open. None where the activation closes none.
    gates_open: Option<Spread>,
    /// Codes that enter `down` and are not zero.
    down_nonzero: Option<Spread>,
    ops: Vec<Line>,
}

/// A share, 0 to 1, over the layers.
#[derive(Debug, PartialEq, Serialize)]
struct Spread {
    mean: f64,
    least: f64,
    most: f64,
}

/// One kind of operation, all layers together.
#[derive(Debug, Serialize)]
struct Line {
    op: &'static str,
    /// Which layers, of a `ternary_matmul`.
    role: Option<&'static str>,
    ms_per_step: f64,
    ms_per_token: f64,
    /// Of the time of all operations, 0 to 1.
    share: f64,
    /// Each weight counted once a step, and those that were not read not at all.
    weight_bytes_per_step: f64,
    /// In 10⁹ bytes. None where nothing is read.
    weight_gb_per_second: Option<f64>,
    /// With ternary matrices, those with zeros included. None of other operations.
    multiply_adds_per_second: Option<f64>,
}

/// A level that does not time its operations.
pub(super) fn untimed(level: &str) -> CliError {
    CliError::Usage(format!("--profile, --trace: level `{level}` does not time its operations"))
}

impl ProfileReport {
    pub(super) fn of(profile: &EngineProfile) -> Self {
        Self { prefill: Phase::of(&profile.prefill), decode: Phase::of(&profile.decode) }
    }

    /// Bytes of weights that a decoded token read. None if none was decoded.
    pub(super) fn weight_bytes_per_token(&self) -> Option<u64> {
        self.decode.as_ref().map(|decode| decode.weight_bytes_per_token)
    }
}

impl Phase {
    fn of(phase: &PhaseProfile) -> Option<Self> {
        let PhaseProfile { time, steps: profile } = phase;
        if profile.steps == 0 || profile.rows == 0 {
            return None;
        }
        let (steps, tokens) = (to_f64(profile.steps), to_f64(profile.rows));
        let bytes: u64 = profile.ops.iter().map(|op| op.weight_bytes).sum();
        let milliseconds = time.as_secs_f64() * 1e3;
        let overhead = time.saturating_sub(profile.time()).as_secs_f64();
        Some(Self {
            steps: profile.steps,
            tokens: profile.rows,
            ms_per_step: milliseconds / steps,
            ms_per_token: milliseconds / tokens,
            jobs_per_token: to_f64(profile.jobs) / tokens,
            weight_bytes_per_token: bytes / profile.rows as u64,
            overhead_us_per_token: overhead * 1e6 / tokens,
            gates_open: Spread::of(&profile.layers, |layer| layer.gates),
            down_nonzero: Spread::of(&profile.layers, |layer| layer.down),
            ops: profile.ops.iter().map(|op| Line::of(op, profile)).collect(),
        })
    }

    fn table(&self, name: &str) -> String {
        let mean = |count: usize| to_f64(count) / to_f64(self.steps);
        let head = format!(
            "{name}: {} of {:.1} tokens; a token takes {:.3} ms, {:.1} jobs of the thread team, and \
             {:.1} µs outside the operations",
            counted(self.steps, "step"),
            mean(self.tokens),
            self.ms_per_token,
            self.jobs_per_token,
            self.overhead_us_per_token
        );
        let title = ["operation", "ms/token", "ms/step", "share", "weight MB/step", "GB/s", "TOPS"];
        let densities =
            [("open gates", &self.gates_open), ("nonzero inputs of down", &self.down_nonzero)];
        let densities =
            densities.into_iter().filter_map(|(what, spread)| Some(spread.as_ref()?.text(what)));
        let densities = densities.collect::<Vec<_>>().join("; ");
        format!("{head}\n{}\n{densities}", titled(title, self.ops.iter().map(Line::row)))
    }
}

impl Spread {
    /// Over the layers of which anything was counted.
    fn of(layers: &[LayerDensity], part: impl Fn(&LayerDensity) -> Density) -> Option<Self> {
        let shares: Vec<_> = layers.iter().filter_map(|layer| part(layer).share()).collect();
        (!shares.is_empty()).then(|| Self {
            mean: shares.iter().sum::<f64>() / to_f64(shares.len()),
            least: shares.iter().copied().fold(f64::INFINITY, f64::min),
            most: shares.iter().copied().fold(0.0, f64::max),
        })
    }

    fn text(&self, what: &str) -> String {
        let [mean, least, most] = [self.mean, self.least, self.most].map(|share| share * 100.0);
        format!("{what}: {mean:.1} % ({least:.1} to {most:.1} over the layers)")
    }
}

impl Line {
    fn of(op: &OpProfile, profile: &Profile) -> Self {
        let (steps, tokens) = (to_f64(profile.steps), to_f64(profile.rows));
        let seconds = op.time.as_secs_f64();
        let all = profile.time().as_secs_f64();
        #[expect(clippy::cast_precision_loss, reason = "a speed is not exact")]
        let (bytes, products) = (op.weight_bytes as f64, op.multiply_adds as f64);
        Self {
            op: op.name,
            role: op.role,
            ms_per_step: seconds * 1e3 / steps,
            ms_per_token: seconds * 1e3 / tokens,
            share: if all > 0.0 { seconds / all } else { 0.0 },
            weight_bytes_per_step: bytes / steps,
            weight_gb_per_second: (bytes > 0.0 && seconds > 0.0).then(|| bytes / seconds / 1e9),
            multiply_adds_per_second: (products > 0.0 && seconds > 0.0).then(|| products / seconds),
        }
    }

    fn row(&self) -> Vec<String> {
        vec![
            self.role.map_or(self.op.to_owned(), |role| format!("{} {role}", self.op)),
            format!("{:.4}", self.ms_per_token),
            format!("{:.4}", self.ms_per_step),
            format!("{:.1} %", self.share * 100.0),
            format!("{:.3}", self.weight_bytes_per_step / 1e6),
            self.weight_gb_per_second.map_or("-".into(), |speed| format!("{speed:.1}")),
            self.multiply_adds_per_second
                .map_or("-".into(), |speed| format!("{:.3}", 2.0 * speed / 1e12)),
        ]
    }
}

impl ProfileReport {
    /// A table for each kind of step.
    pub(super) fn tables(&self) -> String {
        let phases = [("prefill", &self.prefill), ("decode", &self.decode)];
        let tables = phases.iter().filter_map(|(name, phase)| Some(phase.as_ref()?.table(name)));
        tables.collect::<Vec<_>>().join("\n\n")
    }
}

#[expect(clippy::cast_precision_loss, reason = "a count of tokens or steps")]
fn to_f64(count: usize) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_is_over_the_layers_that_were_counted() {
        let layer = |nonzero, all| {
            let gates = Density { nonzero, all };
            LayerDensity { gates, ..LayerDensity::default() }
        };
        let layers = [layer(1, 4), layer(0, 0), layer(6, 8)];
        let spread = Spread::of(&layers, |layer| layer.gates).expect("two layers");
        assert_eq!(spread, Spread { mean: 0.5, least: 0.25, most: 0.75 });
        assert_eq!(spread.text("open"), "open: 50.0 % (25.0 to 75.0 over the layers)");
        assert_eq!(Spread::of(&layers, |layer| layer.down), None);
    }
}
