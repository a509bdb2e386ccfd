//! The launches of a plan in numbers, without a device.

use setun_ops::{Op, OpsError, Plan, WeightId, WeightSpec, ternary::padded_columns};

use crate::{
    kernel::{Table, Tiles},
    launch::{Argument, Launch, When},
    lowering::{Fusion, lower},
    precompile::weights_of,
    weight::{GpuWeight, QUAD_BYTES, WeightFormat},
};

/// A launch in numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaunchReport {
    /// Index of the operation in the plan.
    pub op: usize,
    /// Name of its shader.
    pub shader: &'static str,
    /// Workgroups.
    pub grid: [u32; 3],
    /// The steps that it takes part in.
    pub when: When,
    /// Bytes of weights that it reads, each counted once.
    pub weight_bytes: u64,
    /// Products that it adds up, of all rows, those with keys and values not counted.
    pub products: u64,
}

/// The launches of a plan, on a device that binds buffers of any size. `table` says of which
/// elements a table is.
///
/// # Errors
///
/// If an operation exceeds what its kernel can do.
pub fn describe(
    plan: &Plan,
    table: impl Fn(WeightId) -> Table,
) -> Result<Vec<LaunchReport>, OpsError> {
    let weights = weights_of(plan, table);
    let launches = lower(plan, &weights, Fusion::Shared, Tiles::default())?.list;
    Ok(launches.iter().map(|launch| report(plan, launch, &weights)).collect())
}

fn report(plan: &Plan, launch: &Launch, weights: &[GpuWeight<()>]) -> LaunchReport {
    let op = &plan.ops()[launch.op];
    let rows = op.accesses().1.map_or(1, |out| plan.buffer_rows(out)) as u64;
    let (mut weight_bytes, mut products) = (0, 0);
    for argument in &launch.arguments {
        let Argument::Weight(id, _) = argument else { continue };
        let weight = &weights[id.0 as usize];
        match (weight.spec, weight.form) {
            (WeightSpec::Ternary { rows: outputs, columns, .. }, _) => {
                let row_bytes = padded_columns(columns) / 4 + 4;
                weight_bytes += (outputs * row_bytes) as u64;
                products += rows * (outputs * columns) as u64;
            }
            (WeightSpec::Dense { rows: all, columns }, WeightFormat::Dense { stride, .. }) => {
                let is_embedded = matches!(op, Op::Embed { .. });
                let read = if is_embedded { rows } else { all as u64 };
                weight_bytes += read * (stride * QUAD_BYTES) as u64;
                products += if is_embedded { 0 } else { rows * (all * columns) as u64 };
            }
            (WeightSpec::Vector { len }, _) => weight_bytes += 4 * len as u64,
            (WeightSpec::Rope { head_dim, .. }, _) => weight_bytes += rows * 4 * head_dim as u64,
            (WeightSpec::Dense { .. }, _) => {}
        }
    }
    let (grid, when) = (launch.grid, launch.when);
    LaunchReport {
        op: launch.op,
        shader: launch.kernel.shader().name,
        grid,
        when,
        weight_bytes,
        products,
    }
}

#[cfg(test)]
mod tests {
    use setun_parity::SUBJECTS;

    use super::*;

    #[test]
    fn every_operation_is_launched_or_made_by_its_reader() {
        for subject in SUBJECTS {
            let plan = setun_parity::case(subject, 1).expect("a subject").plan;
            let launches = describe(&plan, |_| Table::F16).expect("launches");
            for (index, op) in plan.ops().iter().enumerate() {
                let is_launched = launches.iter().any(|launch| launch.op == index);
                assert!(is_launched || matches!(op, Op::Quantize { .. }), "{subject}: {op:?}");
            }
        }
    }
}
