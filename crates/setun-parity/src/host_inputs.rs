//! Buffers that the host writes: what [`Backend::write`] brings is what the next run reads.

use crate::Random;
use setun_ops::{
    Backend, BatchInputs, BlockId, BufferId, CacheSpec, Op, OpsError, Plan, Usage, WeightData,
    WeightId,
    op::Norm,
    plan::{BufferKind, PlanBuilder, RowSet},
    rms_norm::rms_norm_row,
};

const WIDTH: usize = 48;
const ROWS: usize = 5;
const EPS: f32 = 1e-5;
/// How far a norm on any device may be from the definition.
const BOUND: f32 = 1e-4;

/// Runs a plan that begins from an input some times, and says what is wrong with it.
///
/// # Errors
///
/// If what was written is not what was read, or something is written that cannot be.
pub async fn check_inputs<B: Backend>(backend: &mut B) -> Result<(), String> {
    let random = &mut Random::new(3);
    let mut floats = |len: usize| -> Vec<f32> { (0..len).map(|_| random.unit() - 0.5).collect() };
    let gain = floats(WIDTH);
    let (plan, x, out) = plan();
    let failed = |error: OpsError| error.to_string();
    let gain_weight = WeightData::Vector(gain.clone());
    let weight = backend.upload(gain_weight, Usage::General).map_err(failed)?;
    let mut step = backend.prepare(&plan, &[weight]).map_err(failed)?;
    let mut cache = backend.create_cache(plan.cache(), 1).map_err(failed)?;
    for rows in [ROWS, 1, ROWS - 1] {
        let values = floats(rows * WIDTH);
        let (first, rest) = values.split_at(rows / 2 * WIDTH);
        let cut = rows / 2;
        backend.write(&mut step, x, 0..cut, bytemuck::cast_slice(first)).map_err(failed)?;
        check_refused(backend, &mut step, (x, out))?;
        backend.write(&mut step, x, cut..rows, bytemuck::cast_slice(rest)).map_err(failed)?;
        backend.run(&mut step, &mut cache, &inputs(rows)).map_err(failed)?;
        let mut read = [vec![0.0f32; rows * WIDTH], vec![0.0; rows * WIDTH]];
        for (buffer, read) in [x, out].into_iter().zip(&mut read) {
            let bytes = bytemuck::cast_slice_mut(read);
            backend.read(&step, buffer, 0..rows, bytes).await.map_err(failed)?;
        }
        if read[0] != values {
            return Err(format!("{rows} rows: the input holds other values than were written"));
        }
        for (row, found) in values.chunks_exact(WIDTH).zip(read[1].chunks_exact(WIDTH)) {
            let mut expected = vec![0.0; WIDTH];
            rms_norm_row(row, &gain, EPS, &mut expected);
            let is_close = |(a, b): (&f32, &f32)| (a - b).abs() <= BOUND;
            if !expected.iter().zip(found).all(is_close) {
                return Err(format!("{rows} rows: {found:?}, expected {expected:?}"));
            }
        }
    }
    Ok(())
}

fn check_refused<B: Backend>(
    backend: &mut B,
    step: &mut B::Prepared,
    (x, out): (BufferId, BufferId),
) -> Result<(), String> {
    let row = [0u8; WIDTH * size_of::<f32>()];
    let refused = [
        (out, 0..1, &row[..], "no input of the plan"),
        (BufferId(99), 0..1, &row, "no input of the plan"),
        (x, ROWS..ROWS + 1, &row, "rows out of range"),
        (x, 0..1, &row[..8], "data of another size"),
        (x, 0..2, &row, "data of another size"),
    ];
    for (id, rows, data, what) in refused {
        let found = backend.write(step, id, rows, data);
        if found != Err(OpsError::Write { id, what }) {
            return Err(format!("expected {what}, found {found:?}"));
        }
    }
    Ok(())
}

/// The norm of an input.
fn plan() -> (Plan, BufferId, BufferId) {
    let cache = CacheSpec::smallest(64);
    let gain = WeightData::Vector(vec![0.0; WIDTH]).spec();
    let mut plan = PlanBuilder::new(ROWS, 1, vec![gain], cache);
    let x = plan.input(WIDTH);
    let out = plan.buffer(BufferKind::F32, WIDTH, RowSet::Batch);
    plan.push(Op::RmsNorm { x, norm: Norm { gain: WeightId(0), eps: EPS }, out });
    (plan.finish().expect("the plan fits together"), x, out)
}

fn inputs(rows: usize) -> BatchInputs {
    BatchInputs {
        tokens: vec![0; rows],
        positions: (0..rows).map(crate::to_u32).collect(),
        slots: vec![0; rows],
        block_tables: vec![vec![BlockId(0)]],
        ..BatchInputs::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use setun_ops::{ScalarBackend, comparison::block_on};

    #[test]
    fn the_definitions_take_inputs() {
        assert_eq!(block_on(check_inputs(&mut ScalarBackend)), Ok(()));
    }

    #[test]
    fn an_input_counts_as_written() {
        let (plan, x, _) = plan();
        assert_eq!(plan.inputs(), [x]);
        let specs = plan.weights().to_vec();
        let mut without = PlanBuilder::new(ROWS, 1, specs, *plan.cache());
        without.buffer(BufferKind::F32, WIDTH, RowSet::Batch);
        without.buffer(BufferKind::F32, WIDTH, RowSet::Batch);
        without.push(plan.ops()[0].clone());
        assert!(matches!(without.finish(), Err(OpsError::Plan { op: 0, .. })));
    }
}
