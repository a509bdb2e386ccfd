//! A plan made ready: its weights and buffers.

use std::{
    ops::Range,
    sync::{Arc, OnceLock},
    time::Duration,
};

use setun_ops::{
    DenseMatrix, HAS_RECURRENT, Op, OpsError, Plan, TernaryMatrix,
    aligned::Aligned,
    backend::{check_read, check_weights, check_write},
    op::{BufferId, WeightId},
    plan::{BufferKind, BufferSpec},
    rope_append::RopeTable,
    ternary_matmul::common_group,
    top_logits::Ranked,
    weight::{WeightData, WeightSpec},
};

use crate::{
    isa::Isa, memory::zeroed, quantized::Quantized, screen::Screen, team::Crew,
    ternary_columns::TernaryColumns,
};

/// A plan with its weights and buffers, made by [`CpuBackend`](crate::CpuBackend).
#[derive(Debug)]
pub struct CpuStep {
    pub(crate) plan: Plan,
    pub(crate) weights: Weights,
    pub(crate) buffers: Buffers,
    pub(crate) times: Option<Times>,
}

/// What the last run of a step took, where it is timed.
#[derive(Debug)]
pub(crate) struct Times {
    /// Of each op of the plan.
    pub(crate) ops: Vec<Duration>,
    /// Given to the team.
    pub(crate) jobs: usize,
    /// Bytes of weights that each op did not read.
    pub(crate) unread: Vec<u64>,
    /// Codes or gates of each op that are not zero.
    pub(crate) nonzero: Vec<u64>,
    /// Of each row of a `top_logits`.
    pub(crate) candidates: Vec<Option<u32>>,
}

impl Times {
    pub(crate) fn new(plan: &Plan) -> Self {
        let ops = plan.ops().len();
        Self {
            ops: vec![Duration::ZERO; ops],
            jobs: 0,
            unread: vec![0; ops],
            nonzero: vec![0; ops],
            candidates: Vec::with_capacity(plan.wanted()),
        }
    }
}

impl CpuStep {
    pub(crate) fn new(plan: &Plan, weights: &[CpuWeight]) -> Result<Self, OpsError> {
        if !HAS_RECURRENT && plan.ops().iter().any(Op::is_hybrid) {
            return Err(OpsError::NoStates);
        }
        check_weights(plan, weights.iter().map(CpuWeight::spec))?;
        let weights = Weights(weights.to_vec());
        weights.check_gates(plan)?;
        let buffers = plan.each_buffer().map(|(_, BufferSpec { kind, width, .. }, rows)| {
            Ok(match kind {
                BufferKind::F32 => Buffer::Floats(Rows::zeroed(rows, width)?),
                BufferKind::Ranked => Buffer::Ranked(Rows::zeroed(rows, width)?),
                BufferKind::Tokens => Buffer::Tokens(Rows::zeroed(rows, width)?),
                BufferKind::Quantized { group } => {
                    Buffer::Quantized(Quantized::zeroed(rows, width, group)?)
                }
            })
        });
        let mut buffers = Buffers(buffers.collect::<Result<_, OpsError>>()?);
        for linear in plan.ops().iter().flat_map(Op::linears) {
            let x = buffers.quantized_mut(linear.x);
            if weights.columns(linear.weight).is_none() {
                let scales = weights.ternary(linear.weight).scales();
                if let Some(run) = common_group(x.group, scales) {
                    x.add_run(run)?;
                }
            } else if x.group.is_some() {
                return Err(sparse_input(linear.weight));
            }
        }
        Ok(Self { plan: plan.clone(), weights, buffers, times: None })
    }

    /// Matrices that are kept by columns.
    pub(crate) fn columns(&self) -> impl Iterator<Item = &TernaryColumns> {
        let ids = (0..).map(WeightId).take(self.plan.weights().len());
        ids.filter_map(|id| self.weights.columns(id))
    }

    /// See [`Backend::write`](setun_ops::Backend::write).
    pub(crate) fn write(
        &mut self,
        id: BufferId,
        rows: &Range<usize>,
        data: &[u8],
    ) -> Result<(), OpsError> {
        let elements = check_write(&self.plan, id, rows, data)?;
        self.buffers.write_floats(id, |_, floats| {
            bytemuck::cast_slice_mut(&mut floats.values[elements]).copy_from_slice(data);
        });
        Ok(())
    }

    /// See [`Backend::read`](setun_ops::Backend::read).
    pub(crate) fn read(
        &self,
        id: BufferId,
        rows: Range<usize>,
        out: &mut [u8],
    ) -> Result<(), OpsError> {
        let BufferSpec { kind, width, .. } = check_read(&self.plan, id, &rows, out, 1)?;
        let row_bytes = width * kind.element_bytes();
        let copy = |out: &mut [u8], all: &[u8]| {
            out.copy_from_slice(&all[rows.start * row_bytes..rows.end * row_bytes]);
        };
        match &self.buffers.0[id.0 as usize] {
            Buffer::Floats(floats) => copy(out, bytemuck::cast_slice(&floats.values)),
            Buffer::Ranked(ranked) => copy(out, bytemuck::cast_slice(&ranked.values)),
            Buffer::Tokens(tokens) => copy(out, bytemuck::cast_slice(&tokens.values)),
            Buffer::Quantized(quantized) => {
                for (out, row) in out.chunks_exact_mut(width.max(1)).zip(rows.clone()) {
                    out.copy_from_slice(bytemuck::cast_slice(&quantized.row(row)[..width]));
                }
            }
        }
        Ok(())
    }
}

/// A weight in the form in which it is kept, with its screen once a plan has requested one.
/// Clones share both.
#[derive(Clone, Debug)]
pub struct CpuWeight(Arc<WeightStorage>);

/// The form in which a weight is kept.
#[derive(Debug)]
#[expect(clippy::allow_attributes, reason = "whether it is large depends on the target")]
#[allow(clippy::large_enum_variant, reason = "a model has few, each behind an `Arc`")]
pub(crate) enum WeightStorage {
    /// As it came, and the screen of a table.
    Plain {
        data: WeightData,
        screen: OnceLock<Option<Screen>>,
    },
    Columns(TernaryColumns),
}

impl CpuWeight {
    pub(crate) fn plain(data: WeightData) -> Self {
        Self(Arc::new(WeightStorage::Plain { data, screen: OnceLock::new() }))
    }

    pub(crate) fn columns(matrix: TernaryColumns) -> Self {
        Self(Arc::new(WeightStorage::Columns(matrix)))
    }

    /// A table of which it is known whether it has a screen.
    #[cfg(not(target_family = "wasm"))]
    pub(crate) fn table(table: DenseMatrix, screen: Option<Screen>) -> Self {
        let (data, screen) = (WeightData::Dense(table), OnceLock::from(screen));
        Self(Arc::new(WeightStorage::Plain { data, screen }))
    }

    #[cfg(not(target_family = "wasm"))]
    pub(crate) fn storage(&self) -> &WeightStorage {
        &self.0
    }

    pub(crate) fn spec(&self) -> WeightSpec {
        match &*self.0 {
            WeightStorage::Plain { data, .. } => data.spec(),
            WeightStorage::Columns(matrix) => matrix.spec(),
        }
    }

    /// Bytes of the screen, where there is one.
    pub(crate) fn screen_bytes(&self) -> usize {
        match &*self.0 {
            WeightStorage::Plain { screen, .. } => {
                screen.get().map_or(0, |screen| screen.as_ref().map_or(0, Screen::bytes))
            }
            WeightStorage::Columns(_) => 0,
        }
    }

    /// Makes the screen of a table, if there is none yet and it can have one.
    pub(crate) fn make_screen(&self, isa: Isa, crew: &Crew<'_>) {
        if let WeightStorage::Plain { data: WeightData::Dense(table), screen } = &*self.0 {
            screen.get_or_init(|| Screen::new(table, isa, crew));
        }
    }
}

/// The weights of a plan. `prepare` has checked their kinds, so access by kind cannot fail.
#[derive(Debug)]
pub(crate) struct Weights(Vec<CpuWeight>);

impl Weights {
    fn storage(&self, id: WeightId) -> &WeightStorage {
        &self.0[id.0 as usize].0
    }

    /// A gate opens rows, so its matrices must be kept by rows.
    fn check_gates(&self, plan: &Plan) -> Result<(), OpsError> {
        for op in plan.ops() {
            let Op::Gate { gate, up, .. } = op else { continue };
            for id in [gate.weight, up.weight] {
                if self.columns(id).is_some() {
                    return Err(sparse_input(id));
                }
            }
        }
        Ok(())
    }

    /// A matrix that is kept by columns.
    pub(crate) fn columns(&self, id: WeightId) -> Option<&TernaryColumns> {
        match self.storage(id) {
            WeightStorage::Columns(matrix) => Some(matrix),
            WeightStorage::Plain { .. } => None,
        }
    }

    pub(crate) fn ternary(&self, id: WeightId) -> &TernaryMatrix {
        match self.storage(id) {
            WeightStorage::Plain { data: WeightData::Ternary(matrix), .. } => matrix,
            other => unreachable!("checked by prepare: {other:?}"),
        }
    }

    pub(crate) fn dense(&self, id: WeightId) -> &DenseMatrix {
        match self.storage(id) {
            WeightStorage::Plain { data: WeightData::Dense(matrix), .. } => matrix,
            other => unreachable!("checked by prepare: {other:?}"),
        }
    }

    /// The screen of a table, if it has one.
    pub(crate) fn screen(&self, id: WeightId) -> Option<&Screen> {
        match self.storage(id) {
            WeightStorage::Plain { screen, .. } => screen.get()?.as_ref(),
            WeightStorage::Columns(_) => None,
        }
    }

    pub(crate) fn vector(&self, id: WeightId) -> &[f32] {
        match self.storage(id) {
            WeightStorage::Plain { data: WeightData::Vector(values), .. } => values,
            other => unreachable!("checked by prepare: {other:?}"),
        }
    }

    pub(crate) fn rope(&self, id: WeightId) -> &RopeTable {
        match self.storage(id) {
            WeightStorage::Plain { data: WeightData::Rope(table), .. } => table,
            other => unreachable!("checked by prepare: {other:?}"),
        }
    }
}

/// A gate opens rows, and columns add up with one scale a row.
fn sparse_input(id: WeightId) -> OpsError {
    let expected = "a matrix of general usage".to_owned();
    OpsError::Weight { id, expected, found: "one for sparse inputs".to_owned() }
}

/// The buffers of a plan. Plans are checked when they are built, so access by kind cannot fail.
#[derive(Debug)]
pub(crate) struct Buffers(Vec<Buffer>);

/// Rows of one type, `[rows, width]`.
#[derive(Debug, Default)]
pub(crate) struct Rows<T: Copy> {
    pub(crate) width: usize,
    pub(crate) values: Aligned<T>,
}

/// An `f32` buffer.
pub(crate) type Floats = Rows<f32>;

/// A buffer of ranked tokens.
pub(crate) type RankedRows = Rows<Ranked>;

/// A buffer of tokens.
pub(crate) type TokenRows = Rows<u32>;

impl Buffers {
    pub(crate) fn floats(&self, id: BufferId) -> &Floats {
        match &self.0[id.0 as usize] {
            Buffer::Floats(floats) => floats,
            _ => unreachable!("checked with the plan"),
        }
    }

    fn quantized_mut(&mut self, id: BufferId) -> &mut Quantized {
        match &mut self.0[id.0 as usize] {
            Buffer::Quantized(quantized) => quantized,
            _ => unreachable!("checked with the plan"),
        }
    }

    pub(crate) fn quantized(&self, id: BufferId) -> &Quantized {
        match &self.0[id.0 as usize] {
            Buffer::Quantized(quantized) => quantized,
            _ => unreachable!("checked with the plan"),
        }
    }
}

macro_rules! buffer_kinds {
    ($($kind:ident $memory:ty, $write:ident;)+) => {
        #[derive(Debug)]
        #[expect(clippy::allow_attributes, reason = "whether it is large depends on the target")]
        #[allow(clippy::large_enum_variant, reason = "a plan has few")]
        enum Buffer {
            $($kind($memory),)+
        }

        impl Buffers {
            $(
                /// Takes a buffer out while `write` writes to it; the others can be read.
                pub(crate) fn $write(
                    &mut self,
                    id: BufferId,
                    write: impl FnOnce(&Self, &mut $memory),
                ) {
                    let mut taken = match &mut self.0[id.0 as usize] {
                        Buffer::$kind(memory) => std::mem::take(memory),
                        _ => unreachable!("checked with the plan"),
                    };
                    write(self, &mut taken);
                    self.0[id.0 as usize] = Buffer::$kind(taken);
                }
            )+
        }
    };
}

buffer_kinds! {
    Floats Floats, write_floats;
    Quantized Quantized, write_quantized;
    Ranked RankedRows, write_ranked;
    Tokens TokenRows, write_tokens;
}

impl<T: Copy + Default> Rows<T> {
    fn zeroed(rows: usize, width: usize) -> Result<Self, OpsError> {
        Ok(Self { width, values: zeroed(rows * width, "a buffer")? })
    }
}

impl Floats {
    pub(crate) fn row(&self, row: usize) -> &[f32] {
        &self.values[row * self.width..][..self.width]
    }
}
