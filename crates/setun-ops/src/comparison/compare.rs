//! Runs a case on two backends and compares.

use std::{
    fmt,
    future::Future,
    pin::pin,
    task::{Context, Poll, Waker},
};

use half::f16;

use super::Case;
use crate::{
    Backend, BatchInputs, BlockId, CacheElement, CacheSpec, HAS_RECURRENT, OpsError, ScalarBackend,
    op::BufferId,
    plan::{BufferKind, BufferSpec, RowSet},
    recurrent::all_states,
    top_logits::Ranked,
};

/// Where a backend differs from the definitions.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Disagreement {
    /// A call failed.
    #[error("a call failed: {0}")]
    Refused(#[from] OpsError),

    /// A value of a buffer is another.
    #[error(
        "step {step}, buffer {} (width {width}), element {element}: expected {expected}, \
         found {found}",
        buffer.0
    )]
    Value {
        /// Index of the step.
        step: usize,
        /// The buffer.
        buffer: BufferId,
        /// Its width.
        width: usize,
        /// Index among the buffer's elements.
        element: usize,
        /// By the definition.
        expected: String,
        /// By the backend.
        found: String,
    },

    /// The caches differ.
    #[error("step {step}: the caches differ at byte {byte} of block {block}")]
    Cache {
        /// Index of the step.
        step: usize,
        /// The block.
        block: usize,
        /// Byte within the block.
        byte: usize,
    },

    /// The recurrent states differ.
    #[error("step {step}: float {float} of the states is {found}, expected {expected}")]
    State {
        /// Index of the step.
        step: usize,
        /// Index among all floats of all states.
        float: usize,
        /// By the definition.
        expected: String,
        /// By the backend.
        found: String,
    },
}

/// What a case computes by the definitions: with it several backends are compared.
pub struct Expected(Vec<Memory>);

/// All buffers in their order, and the cache, after a step.
struct Memory {
    buffers: Vec<Vec<u8>>,
    cache: Vec<u8>,
    states: Vec<u8>,
}

impl Case {
    /// Runs the case on `backend` and compares all buffers and the cache after every step.
    ///
    /// # Errors
    ///
    /// The first difference, or the first call that failed.
    pub async fn compare<B: Backend>(&self, backend: &mut B) -> Result<(), Disagreement> {
        self.compare_with(&self.expected().await?, backend).await
    }

    /// What the definitions compute.
    ///
    /// # Errors
    ///
    /// If a call fails.
    pub async fn expected(&self) -> Result<Expected, OpsError> {
        let mut scalar = ScalarBackend;
        let mut running = Running::start(self, &mut scalar)?;
        let mut steps = vec![];
        for inputs in &self.steps {
            running.run(inputs)?;
            let mut buffers = vec![];
            for (id, ..) in self.plan.each_buffer() {
                buffers.push(running.buffer(self, id).await?);
            }
            let cache = running.cache(self).await?;
            let states = if HAS_RECURRENT { running.states(self).await? } else { vec![] };
            steps.push(Memory { buffers, cache, states });
        }
        Ok(Expected(steps))
    }

    /// [`compare`](Self::compare) with what [`expected`](Self::expected) gave.
    ///
    /// # Errors
    ///
    /// The first difference, or the first call that failed.
    pub async fn compare_with<B: Backend>(
        &self,
        expected: &Expected,
        backend: &mut B,
    ) -> Result<(), Disagreement> {
        let mut found = Running::start(self, backend)?;
        for (step, (inputs, expected)) in self.steps.iter().zip(&expected.0).enumerate() {
            found.run(inputs)?;
            for ((id, ..), expected) in self.plan.each_buffer().zip(&expected.buffers) {
                self.compare_buffer(step, id, expected, &found.buffer(self, id).await?)?;
            }
            let cache = found.cache(self).await?;
            compare_cache(step, self.plan.cache(), &expected.cache, &cache)?;
            if HAS_RECURRENT {
                compare_states(step, &expected.states, &found.states(self).await?)?;
            }
        }
        Ok(())
    }

    fn compare_buffer(
        &self,
        step: usize,
        buffer: BufferId,
        expected: &[u8],
        found: &[u8],
    ) -> Result<(), Disagreement> {
        let BufferSpec { kind, width, .. } = self.plan.buffer(buffer);
        let place = Place { step, buffer, width };
        match kind {
            BufferKind::Quantized { .. } => place.compare(codes(expected), codes(found), i8::eq),
            BufferKind::Ranked => place.compare(ranked(expected), ranked(found), |a, b| {
                let is_bound = a.token == Ranked::SUM && b.logit >= a.logit;
                a.token == b.token && (is_bound || same(&a.logit, &b.logit))
            }),
            BufferKind::Tokens => place.compare(words(expected), words(found), u32::eq),
            BufferKind::F32 => place.compare(floats(expected), floats(found), same),
        }
    }
}

/// What a buffer holds after a step.
#[derive(Debug, PartialEq, Eq)]
pub struct Output {
    /// Index of the step.
    pub step: usize,
    /// The buffer.
    pub buffer: BufferId,
    /// Its rows of that step.
    pub bytes: Vec<u8>,
}

impl Case {
    /// All floats, ranked and chosen tokens after each of the first steps. Codes are no output:
    /// they may be made where they are read.
    ///
    /// # Errors
    ///
    /// If a call fails.
    pub async fn outputs<B: Backend>(
        &self,
        backend: &mut B,
        steps: usize,
    ) -> Result<Vec<Output>, OpsError> {
        let mut running = Running::start(self, backend)?;
        let mut outputs = vec![];
        for (step, inputs) in self.steps.iter().take(steps).enumerate() {
            running.run(inputs)?;
            for (buffer, spec, _) in self.plan.each_buffer() {
                let rows = match spec.rows {
                    RowSet::Batch => inputs.rows(),
                    RowSet::Wanted => inputs.wanted.len(),
                };
                if !matches!(spec.kind, BufferKind::Quantized { .. }) {
                    let mut bytes = vec![0; rows * spec.width * spec.kind.element_bytes()];
                    running.backend.read(&running.step, buffer, 0..rows, &mut bytes).await?;
                    outputs.push(Output { step, buffer, bytes });
                }
            }
        }
        Ok(outputs)
    }
}

/// A buffer after a step.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) step: usize,
    pub(super) buffer: BufferId,
    pub(super) width: usize,
}

impl Place {
    /// That an element of the buffer is another.
    pub(super) fn differs<T: fmt::Debug>(
        self,
        element: usize,
        expected: T,
        found: T,
    ) -> Disagreement {
        let Self { step, buffer, width } = self;
        let (expected, found) = (format!("{expected:?}"), format!("{found:?}"));
        Disagreement::Value { step, buffer, width, element, expected, found }
    }

    fn compare<T: fmt::Debug>(
        self,
        expected: impl Iterator<Item = T>,
        found: impl Iterator<Item = T>,
        same: impl Fn(&T, &T) -> bool,
    ) -> Result<(), Disagreement> {
        let mut pairs = expected.zip(found).enumerate();
        let differs = pairs.find(|(_, (expected, found))| !same(expected, found));
        differs.map_or(Ok(()), |(element, (a, b))| Err(self.differs(element, a, b)))
    }
}

/// A case on one backend.
pub(super) struct Running<'a, B: Backend> {
    pub(super) backend: &'a mut B,
    pub(super) step: B::Prepared,
    pub(super) cache: B::Cache,
}

impl<'a, B: Backend> Running<'a, B> {
    pub(super) fn start(case: &Case, backend: &'a mut B) -> Result<Self, OpsError> {
        let weights = case.upload(backend)?;
        let step = backend.prepare(&case.plan, &weights)?;
        let mut cache = backend.create_cache(case.plan.cache(), case.blocks)?;
        if HAS_RECURRENT {
            backend.grow_states(&mut cache, case.states())?;
        }
        Ok(Self { backend, step, cache })
    }

    pub(super) fn run(&mut self, inputs: &BatchInputs) -> Result<(), OpsError> {
        self.backend.run(&mut self.step, &mut self.cache, inputs)
    }

    pub(super) async fn buffer(&mut self, case: &Case, id: BufferId) -> Result<Vec<u8>, OpsError> {
        let (spec, rows) = (case.plan.buffer(id), case.plan.buffer_rows(id));
        let mut bytes = vec![0; rows * spec.width * spec.kind.element_bytes()];
        self.backend.read(&self.step, id, 0..rows, &mut bytes).await?;
        Ok(bytes)
    }

    pub(super) async fn cache(&mut self, case: &Case) -> Result<Vec<u8>, OpsError> {
        let blocks: Vec<BlockId> =
            (0..case.blocks).map(|block| BlockId(crate::numeric::to_u32(block))).collect();
        let mut bytes = vec![0; blocks.len() * case.plan.cache().block_bytes()];
        self.backend.read_blocks(&self.cache, &blocks, &mut bytes).await?;
        Ok(bytes)
    }

    pub(super) async fn states(&mut self, case: &Case) -> Result<Vec<u8>, OpsError> {
        let states = all_states(case.states());
        let mut bytes = vec![0; states.len() * case.plan.cache().state_bytes()];
        if !states.is_empty() {
            self.backend.read_states(&self.cache, &states, &mut bytes).await?;
        }
        Ok(bytes)
    }
}

/// Blocks as [`Backend::read_blocks`] gives them.
pub(super) fn compare_cache(
    step: usize,
    spec: &CacheSpec,
    expected: &[u8],
    found: &[u8],
) -> Result<(), Disagreement> {
    let element = match spec.element {
        CacheElement::F16 => 2,
        CacheElement::F32 | CacheElement::Int8 => 4,
    };
    let pairs = expected.chunks_exact(element).zip(found.chunks_exact(element));
    for (index, (a, b)) in pairs.enumerate() {
        let (block, byte) =
            (index * element / spec.block_bytes(), index * element % spec.block_bytes());
        // Of an int8 cache the scales are floats, and lie after the codes of each layer.
        let layer = spec.block_bytes() / spec.layers;
        let codes = layer / (spec.head_dim + 4) * spec.head_dim;
        let floats = spec.element != CacheElement::Int8 || byte % layer >= codes;
        if a != b && !(floats && is_nan(a) && is_nan(b)) {
            return Err(Disagreement::Cache { step, block, byte });
        }
    }
    Ok(())
}

/// Recurrent states as [`Backend::read_states`] gives them.
fn compare_states(step: usize, expected: &[u8], found: &[u8]) -> Result<(), Disagreement> {
    let mut pairs = floats(expected).zip(floats(found)).enumerate();
    match pairs.find(|(_, (expected, found))| !same(expected, found)) {
        Some((float, (expected, found))) => {
            let (expected, found) = (format!("{expected:?}"), format!("{found:?}"));
            Err(Disagreement::State { step, float, expected, found })
        }
        None => Ok(()),
    }
}

/// Whether 2 or 4 bytes are a NaN.
fn is_nan(bytes: &[u8]) -> bool {
    match *bytes {
        [a, b] => f16::from_ne_bytes([a, b]).is_nan(),
        [a, b, c, d] => f32::from_ne_bytes([a, b, c, d]).is_nan(),
        _ => false,
    }
}

pub(super) fn codes(bytes: &[u8]) -> impl Iterator<Item = i8> {
    bytes.iter().map(|byte| byte.cast_signed())
}

pub(super) fn floats(bytes: &[u8]) -> impl Iterator<Item = f32> {
    let (words, _) = bytes.as_chunks::<4>();
    words.iter().map(|&word| f32::from_ne_bytes(word))
}

pub(super) fn words(bytes: &[u8]) -> impl Iterator<Item = u32> {
    let (words, _) = bytes.as_chunks::<4>();
    words.iter().map(|&word| u32::from_ne_bytes(word))
}

pub(super) fn ranked(bytes: &[u8]) -> impl Iterator<Item = Ranked> {
    let (pairs, _) = bytes.as_chunks::<{ size_of::<Ranked>() }>();
    pairs.iter().map(|pair| bytemuck::pod_read_unaligned(pair))
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as an equality")]
fn same(a: &f32, b: &f32) -> bool {
    a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan())
}

/// Polls a future until it is ready: for backends whose futures need no event loop.
pub fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
        std::hint::spin_loop();
    }
}
