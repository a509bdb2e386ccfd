//! GPU launches of a step of one token.

use serde::Serialize;
use setun::{
    checkpoint::{Dtype, ModelConfig, TensorInfo},
    forward::{Layout, plan::HeadOutput},
    gpu::{self, LaunchReport, kernel::Table, launch::When},
    ops::{WeightId, WeightSpec, op::ArgmaxCapacity},
};

use super::plan::plan_of;
use crate::{error::CliError, output::table};

/// What requests of a greedy choice without a penalty hold.
const ROOM: ArgmaxCapacity = ArgmaxCapacity { touched: 16, biases: 0 };

/// The launches of a step of one token whose choice is greedy.
#[derive(Debug, Serialize)]
pub(super) struct LaunchesReport {
    launches: Vec<Line>,
    weight_bytes: u64,
}

#[derive(Debug, Serialize)]
struct Line {
    op: usize,
    shader: &'static str,
    grid: [u32; 3],
    steps: &'static str,
    weight_bytes: u64,
    products: u64,
}

pub(super) fn describe(
    layout: &Layout,
    config: &ModelConfig,
    tensors: &[TensorInfo],
) -> Result<LaunchesReport, CliError> {
    let plan = plan_of(layout, config, HeadOutput::Argmax { room: ROOM })?;
    let element = |id: WeightId| element(plan.weights()[id.0 as usize], tensors);
    let launches = gpu::describe(&plan, element).map_err(setun::forward::ModelError::from)?;
    let always = launches.iter().filter(|launch| launch.when == When::Always);
    Ok(LaunchesReport {
        weight_bytes: always.map(|launch| launch.weight_bytes).sum(),
        launches: launches.iter().map(Line::of).collect(),
    })
}

/// The elements of a table, which is a tensor of the same shape.
fn element(spec: WeightSpec, tensors: &[TensorInfo]) -> Table {
    let WeightSpec::Dense { rows, columns } = spec else { return Table::F32 };
    let tensor = tensors.iter().find(|tensor| tensor.shape == [rows, columns]);
    match tensor.map(|tensor| tensor.dtype) {
        Some(Dtype::F16) => Table::F16,
        Some(Dtype::Bf16) => Table::Bf16,
        _ => Table::F32,
    }
}

impl Line {
    fn of(launch: &LaunchReport) -> Self {
        let &LaunchReport { op, shader, grid, when, weight_bytes, products } = launch;
        let steps = match when {
            When::Always => "all",
            When::OneChunk => "up to 512 positions",
            When::Chunks | When::EachChunk => "beyond 512 positions",
        };
        Self { op, shader, grid, steps, weight_bytes, products }
    }
}

impl LaunchesReport {
    /// For people.
    pub(super) fn text(&self) -> String {
        let header = ["launch", "op", "shader", "workgroups", "weight bytes", "products", "steps"];
        let mut rows = vec![header.map(str::to_owned).to_vec()];
        rows.extend(self.launches.iter().enumerate().map(|(index, line)| {
            let [x, y, z] = line.grid;
            vec![
                index.to_string(),
                line.op.to_string(),
                line.shader.to_owned(),
                format!("{x} x {y} x {z}"),
                line.weight_bytes.to_string(),
                line.products.to_string(),
                line.steps.to_owned(),
            ]
        }));
        format!("{}\n\n{} bytes of weights", table(&rows), self.weight_bytes)
    }
}
