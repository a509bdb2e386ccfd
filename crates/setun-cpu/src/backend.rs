//! `CpuBackend`: weights in host memory, steps run by a thread team.

use std::{
    ops::Range,
    sync::{Mutex, PoisonError, RwLock},
};

#[cfg(not(target_family = "wasm"))]
use setun_ops::image::{Adopted, MappedWeight, WeightBytes};
use setun_ops::{
    Backend, BatchInputs, OpsError, Plan, Usage, WeightData,
    backend::{StepTimes, check_step},
    host_cache::HostCache,
    op::{BufferId, Op},
};

#[cfg(not(target_family = "wasm"))]
use crate::image;
use crate::{
    argmax::ArgmaxScratch,
    attention::SpanScratch,
    dispatch::{Resources, run_plan},
    error::CpuError,
    float_mode,
    isa::{Isa, with_token},
    level::Level,
    member_sums::MemberSums,
    scratch::{Scratch, ScratchSize},
    step::{CpuStep, CpuWeight, Times},
    team::{self, Team},
    ternary_columns::TernaryColumns,
    top_logits::TopLogitsScratch,
};

/// Most threads of a backend; 1 where WebAssembly has no shared memory.
pub const MAX_THREADS: usize = team::MAX_THREADS;

/// What to make a [`CpuBackend`] with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuOptions {
    /// The level; by default the best that there is.
    pub level: Option<Level>,
    /// Threads, the caller included, 1 to [`MAX_THREADS`]; by default one for each core, at
    /// most 16.
    pub threads: Option<usize>,
}

/// Runs plans on the processor, with the same bits as
/// [`ScalarBackend`](setun_ops::ScalarBackend). See the [crate](crate).
#[derive(Debug)]
pub struct CpuBackend {
    level: Level,
    isa: Isa,
    team: Team,
    // One of each for each member.
    scratch: Vec<Mutex<Scratch>>,
    sums: Vec<RwLock<MemberSums>>,
    top_logits: TopLogitsScratch,
    argmax: ArgmaxScratch,
    spans: SpanScratch,
}

impl CpuBackend {
    /// # Errors
    ///
    /// If the level is not available here or none is, the number of threads is not possible, a
    /// thread cannot be started, or one does not compute as IEEE 754 says.
    pub fn new(options: CpuOptions) -> Result<Self, CpuError> {
        let detect = |level| Isa::detect(level).map(|isa| (level, isa));
        let detected = match options.level {
            Some(level) => detect(level),
            None => Level::ALL.into_iter().find_map(detect),
        };
        let (level, isa) = detected.ok_or_else(|| CpuError::Level {
            wanted: options.level,
            available: Level::available(),
        })?;
        let team = Team::new(options.threads.unwrap_or_else(team::default_threads))?;
        let members = 0..team.threads();
        let scratch = members.clone().map(|member| Mutex::new(Scratch::of_member(member)));
        let (scratch, sums) = (scratch.collect(), members.map(|_| RwLock::default()).collect());
        Ok(Self {
            level,
            isa,
            team,
            scratch,
            sums,
            top_logits: TopLogitsScratch::default(),
            argmax: ArgmaxScratch::default(),
            spans: SpanScratch::default(),
        })
    }

    /// The level in use.
    #[must_use]
    pub fn level(&self) -> Level {
        self.level
    }

    /// Threads in use, the caller included.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.team.threads()
    }

    fn each_scratch(
        &mut self,
        mut f: impl FnMut(&mut Scratch) -> Result<(), OpsError>,
    ) -> Result<(), OpsError> {
        self.scratch
            .iter_mut()
            .try_for_each(|scratch| f(scratch.get_mut().unwrap_or_else(PoisonError::into_inner)))
    }

    /// Makes what is kept beside a table of floats.
    pub(crate) fn make_screen(&mut self, weight: &CpuWeight) {
        let isa = self.isa;
        self.team.step(|crew| weight.make_screen(isa, crew));
    }

    /// Makes room for the scores of the longest sequence, where `prepare` could not know it.
    fn grow_scores(&mut self, plan: &Plan, inputs: &BatchInputs) -> Result<(), OpsError> {
        let longest = inputs.positions.iter().max().map_or(0, |&position| position as usize + 1);
        for op in plan.ops() {
            if let Op::Attention { shape, .. } = op {
                self.each_scratch(|scratch| scratch.grow_scores(*shape, longest))?;
                self.spans.grow(*shape, inputs.rows(), longest, self.team.threads())?;
            }
        }
        Ok(())
    }
}

impl Backend for CpuBackend {
    type Weight = CpuWeight;
    type Prepared = CpuStep;
    type Cache = HostCache;
    const HAS_IMAGES: bool = cfg!(not(target_family = "wasm"));

    fn upload(&mut self, weight: WeightData, usage: Usage) -> Result<CpuWeight, OpsError> {
        Ok(match weight {
            WeightData::Ternary(matrix)
                if usage == Usage::SparseInput && TernaryColumns::can_hold(&matrix) =>
            {
                CpuWeight::columns(TernaryColumns::new(&matrix, &mut self.team)?)
            }
            weight => {
                if let WeightData::Ternary(matrix) = &weight {
                    matrix.settle();
                }
                CpuWeight::plain(weight)
            }
        })
    }

    fn bytes_beside(&self, weight: &CpuWeight) -> usize {
        weight.screen_bytes()
    }

    #[cfg(not(target_family = "wasm"))]
    fn image<'a>(&self, weight: &'a CpuWeight) -> Option<WeightBytes<'a>> {
        Some(image::image(weight))
    }

    #[cfg(not(target_family = "wasm"))]
    fn adopt(&mut self, image: MappedWeight, usage: Usage) -> Result<Adopted<CpuWeight>, OpsError> {
        image::adopt(image, usage)
    }

    fn prepare(&mut self, plan: &Plan, weights: &[CpuWeight]) -> Result<CpuStep, OpsError> {
        let step = CpuStep::new(plan, weights)?;
        let size = ScratchSize::of(plan, &step.weights);
        self.each_scratch(|scratch| scratch.grow(size))?;
        for sums in &mut self.sums {
            let sums = sums.get_mut().unwrap_or_else(PoisonError::into_inner);
            step.columns().try_for_each(|matrix| sums.grow(matrix, plan.rows()))?;
        }
        for op in plan.ops() {
            if let Op::TopLogits { table, out, .. } = op {
                self.make_screen(&weights[table.0 as usize]);
                let capacity = plan.buffer(*out).width;
                self.top_logits.grow(&step.weights, *table, plan.wanted(), capacity)?;
            }
            if let Op::Argmax { table, .. } = op {
                self.argmax.grow(&step.weights, *table, plan.wanted())?;
            }
            if let Op::Attention { shape, .. } = op {
                let (_, positions) = plan.token_and_position_limits();
                if positions != usize::MAX {
                    let rows = plan.rows();
                    self.spans.grow(*shape, rows, positions, self.team.threads())?;
                }
            }
        }
        Ok(step)
    }

    fn write(
        &mut self,
        step: &mut CpuStep,
        buffer: BufferId,
        rows: Range<usize>,
        data: &[u8],
    ) -> Result<(), OpsError> {
        step.write(buffer, &rows, data)
    }

    fn run(
        &mut self,
        step: &mut CpuStep,
        cache: &mut HostCache,
        inputs: &BatchInputs,
    ) -> Result<(), OpsError> {
        check_step(&step.plan, cache.spec(), cache.sizes(), inputs)?;
        if !float_mode::is_ieee() {
            return Err(OpsError::FloatMode);
        }
        self.grow_scores(&step.plan, inputs)?;
        let (isa, scratch, sums) = (self.isa, self.scratch.as_slice(), self.sums.as_slice());
        let (top_logits, argmax, spans) = (&mut self.top_logits, &mut self.argmax, &mut self.spans);
        self.team.step(|crew| {
            let resources =
                Resources { step, cache, inputs, crew, scratch, sums, top_logits, argmax, spans };
            with_token!(isa, token => run_plan(token, resources));
        });
        Ok(())
    }

    /// Nothing is timed in WebAssembly, which has no clock without its host.
    fn time(&mut self, step: &mut CpuStep, is_timed: bool) -> bool {
        let is_timed = is_timed && !cfg!(target_family = "wasm");
        let times = || Times::new(&step.plan);
        step.times = is_timed.then(times);
        is_timed
    }

    fn times<'a>(&self, step: &'a CpuStep) -> Option<StepTimes<'a>> {
        let Times { ops, jobs, unread, nonzero, candidates } = step.times.as_ref()?;
        Some(StepTimes { ops, jobs: *jobs, unread, nonzero, candidates })
    }

    async fn read(
        &mut self,
        step: &CpuStep,
        buffer: BufferId,
        rows: Range<usize>,
        out: &mut [u8],
    ) -> Result<(), OpsError> {
        step.read(buffer, rows, out)
    }

    setun_ops::host_cache_methods!();
}
