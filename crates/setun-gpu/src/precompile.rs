//! The kernels of plans, before there are weights.

use setun_ops::{Op, OpsError, Plan, WeightId, WeightSpec, ternary::padded_columns};

use crate::{
    backend::GpuBackend,
    executor::Executor,
    kernel::{Kernel, Table, Tiles},
    lowering::{Fusion, lower},
    weight::{GpuWeight, WeightFormat, WeightSlice, row_quads},
};

/// Rows of plans that together have every kernel of a model, all rows being requested up to eight
/// and one of more.
pub const PRECOMPILED_ROWS: [(usize, usize); 5] = [(1, 1), (2, 2), (4, 4), (8, 8), (64, 1)];

/// The kernels that a plan needs, each once. `table` says of which elements a table is.
///
/// # Errors
///
/// If an operation exceeds what its kernel can do.
pub fn kernels_of(
    plan: &Plan,
    table: impl Fn(WeightId) -> Table,
    fusion: Fusion,
    tiles: Tiles,
) -> Result<Vec<Kernel>, OpsError> {
    let mut kernels = vec![];
    for launch in lower(plan, &weights_of(plan, table), fusion, tiles)?.list {
        if !kernels.contains(&launch.kernel) {
            kernels.push(launch.kernel);
        }
    }
    Ok(kernels)
}

impl<E: Executor> GpuBackend<E> {
    /// Begins to compile the kernels of a plan whose weights are still to come: [`PRECOMPILED_ROWS`] says
    /// which plans of a model have all. `table` says of which elements a table will be; a kernel for
    /// another is compiled when the plan is prepared.
    ///
    /// # Errors
    ///
    /// If an operation exceeds what its kernel can do, or the device is lost.
    pub fn precompile(
        &mut self,
        plan: &Plan,
        table: impl Fn(WeightId) -> Table,
    ) -> Result<(), OpsError> {
        self.check_ops(plan)?;
        let kernels = kernels_of(plan, table, self.fusion, self.executor.tiles())?;
        self.executor.compile(&kernels)
    }

    /// Refuses a plan with operations that the device has no kernels for.
    pub(crate) fn check_ops(&self, plan: &Plan) -> Result<(), OpsError> {
        let is_hybrid = plan.cache().recurrent.is_some() || plan.ops().iter().any(Op::is_hybrid);
        if is_hybrid && !self.executor.runs_hybrid() { Err(OpsError::NoStates) } else { Ok(()) }
    }
}

/// Weights without memory, each in one part.
pub(crate) fn weights_of(plan: &Plan, table: impl Fn(WeightId) -> Table) -> Vec<GpuWeight<()>> {
    let ids = (0..).map(WeightId);
    ids.zip(plan.weights()).map(|(id, &spec)| dry(spec, table(id))).collect()
}

fn dry(spec: WeightSpec, table: Table) -> GpuWeight<()> {
    let (form, rows) = match spec {
        WeightSpec::Ternary { rows, columns, .. } => {
            (WeightFormat::Ternary { groups: 1, group_planes: padded_columns(columns) }, rows)
        }
        WeightSpec::Dense { rows, columns } => {
            (WeightFormat::Dense { table, stride: row_quads(table, columns) }, rows)
        }
        WeightSpec::Vector { .. } | WeightSpec::Rope { .. } => (WeightFormat::Floats, 1),
    };
    GpuWeight { spec, form, parts: vec![WeightSlice { buffer: (), first: 0, rows }] }
}
