//! A worker: some rows of every matrix, and pieces of steps over them.

mod plan;

use setun_ops::{
    Backend, BatchInputs, CacheSpec, OpsError, Usage, WeightData, WeightId, WeightSpec,
    host_cache::HostCache, numeric::to_u32, plan::RowSet,
};

use crate::{
    backend::{CpuBackend, CpuOptions},
    error::CpuError,
    shards::{
        message::{DONE, FAILED, Message, PREPARE, RUN, WEIGHT},
        ranked::read_request,
        weights::weight_of,
    },
    step::{CpuStep, CpuWeight},
};
use plan::{BLOCK_POSITIONS, WorkerPiece, WorkerPlan, WorkerWeights, worker_plan};

/// Computes the outputs of some rows of a model's matrices for a leader: the other end of a
/// [`ShardLink`](crate::ShardLink).
#[derive(Debug)]
pub struct ShardWorker {
    backend: CpuBackend,
    weights: Held,
    steps: Vec<Step>,
    failed: Option<String>, // with nobody asking
}

/// A step by its number.
#[derive(Debug)]
struct Step {
    id: u32,
    prepared: CpuStep,
    pieces: Vec<WorkerPiece>,
}

#[derive(Debug, Default)]
struct Held {
    weights: Vec<HeldWeight>,
    biases: Vec<Vec<f32>>, // of the plan that is being read
}

#[derive(Debug)]
struct HeldWeight {
    weight: CpuWeight,
    spec: WeightSpec,
    /// Its first row in the whole matrix.
    first: usize,
    /// Of a vector.
    values: Option<Vec<f32>>,
}

impl ShardWorker {
    /// # Errors
    ///
    /// As [`CpuBackend::new`].
    pub fn new(options: CpuOptions) -> Result<Self, CpuError> {
        let backend = CpuBackend::new(options)?;
        Ok(Self { backend, weights: Held::default(), steps: vec![], failed: None })
    }

    /// Why it can no longer serve; none while it can.
    #[must_use]
    pub fn failure(&self) -> Option<&str> {
        self.failed.as_deref()
    }

    /// Takes a message of the leader, and gives the answer, if one is due. What fails meanwhile
    /// is the answer to the next request.
    pub fn handle(&mut self, message: &[u8]) -> Option<Vec<u8>> {
        let mut message = match Message::new(message) {
            Ok(message) => message,
            Err(error) => return Some(answer(0, FAILED, error.to_string().as_bytes())),
        };
        if message.kind == RUN {
            let serial = message.word().unwrap_or_default();
            let done = match self.failed.take() {
                None => self.run(&mut message).map_err(|error| error.to_string()),
                Some(failure) => Err(failure),
            };
            return Some(match done {
                Ok(values) => answer(serial, DONE, &values),
                Err(failure) => {
                    let answer = answer(serial, FAILED, failure.as_bytes());
                    self.failed = Some(failure);
                    answer
                }
            });
        }
        if self.failed.is_none() {
            self.failed = self.take(&mut message).err().map(|error| error.to_string());
        }
        None
    }

    fn take(&mut self, message: &mut Message<'_>) -> Result<(), OpsError> {
        match message.kind {
            WEIGHT => self.weights.add(message, &mut self.backend),
            PREPARE => self.prepare(message),
            kind => {
                let (what, found) = ("kind of a message to a worker", kind as usize);
                Err(OpsError::Inputs { what, expected: RUN as usize, found })
            }
        }
    }

    fn prepare(&mut self, message: &mut Message<'_>) -> Result<(), OpsError> {
        let (steps, weights) = (&mut self.steps, &mut self.weights);
        weights.biases.clear();
        let (id, WorkerPlan { plan, pieces }) =
            worker_plan(message, weights, |dropped| steps.retain(|step| step.id != dropped))?;
        let weights = weights.for_plan(&mut self.backend)?;
        let step = self.backend.prepare(&plan, &weights)?;
        steps.push(Step { id, prepared: step, pieces });
        Ok(())
    }

    /// The outputs of a piece.
    fn run(&mut self, message: &mut Message<'_>) -> Result<Vec<u8>, OpsError> {
        let (id, index) = (message.word()?, message.size()?);
        let (rows, wanted) = (message.size()?, message.size()?);
        let unknown = OpsError::Inputs { what: "piece of a step", expected: 0, found: index };
        let found = self.steps.iter_mut().find(|step| step.id == id);
        let Step { prepared: step, pieces, .. } = found.ok_or(unknown.clone())?;
        let WorkerPiece { ops, input, out } = *pieces.get(index).ok_or(unknown)?;
        let mut inputs = BatchInputs { tokens: vec![0; rows], ..<_>::default() };
        inputs.wanted = vec![0; wanted];
        while !message.is_empty() {
            inputs.top_logits.push(read_request(message)?);
        }
        let is_wanted = step.plan.buffer(input).rows == RowSet::Wanted;
        let count = if is_wanted { wanted } else { rows };
        step.write(input, &(0..count), message.bytes)?;
        let cache = &mut HostCache::new(CacheSpec::smallest(BLOCK_POSITIONS), 0)?; // unused
        self.backend.run_ops(step, cache, &inputs, ops.0..ops.1);
        let spec = step.plan.buffer(out);
        let mut values = vec![0; count * spec.width * spec.kind.element_bytes()];
        step.read(out, 0..count, &mut values)?;
        Ok(values)
    }
}

impl Held {
    fn add(&mut self, message: &mut Message<'_>, backend: &mut CpuBackend) -> Result<(), OpsError> {
        let (weight, usage, first) = weight_of(message)?;
        let values = match &weight {
            WeightData::Vector(values) => Some(values.clone()),
            _ => None,
        };
        let spec = weight.spec();
        let weight = backend.upload(weight, usage)?;
        self.weights.push(HeldWeight { weight, spec, first, values });
        Ok(())
    }

    /// The weights, then the biases of the plan that was read last.
    fn for_plan(&mut self, backend: &mut CpuBackend) -> Result<Vec<CpuWeight>, OpsError> {
        let mut weights: Vec<_> = self.weights.iter().map(|held| held.weight.clone()).collect();
        for bias in self.biases.drain(..) {
            weights.push(backend.upload(WeightData::Vector(bias), Usage::General)?);
        }
        Ok(weights)
    }
}

impl WorkerWeights for Held {
    fn specs(&self) -> Vec<WeightSpec> {
        let biases = self.biases.iter().map(|bias| WeightSpec::Vector { len: bias.len() });
        self.weights.iter().map(|held| held.spec).chain(biases).collect()
    }

    fn bias(&mut self, bias: WeightId, matrix: WeightId) -> Result<WeightId, OpsError> {
        let missing = || OpsError::Weight {
            id: bias,
            expected: "a bias of the rows of a matrix".to_owned(),
            found: "none".to_owned(),
        };
        let held = |id: WeightId| self.weights.get(id.0 as usize).ok_or_else(missing);
        let (matrix, whole) = (held(matrix)?, held(bias)?.values.as_ref().ok_or_else(missing)?);
        let WeightSpec::Ternary { rows, .. } = matrix.spec else { return Err(missing()) };
        let part = whole.get(matrix.first..matrix.first + rows).ok_or_else(missing)?;
        self.biases.push(part.to_vec());
        let id = self.weights.len() + self.biases.len() - 1;
        Ok(WeightId(to_u32(id)))
    }
}

fn answer(serial: u32, status: u32, values: &[u8]) -> Vec<u8> {
    let mut answer = Vec::with_capacity(8 + values.len());
    answer.extend_from_slice(bytemuck::cast_slice(&[serial, status]));
    answer.extend_from_slice(values);
    answer
}
