//! Device memory that is held, counted by an executor that computes nothing.

use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    rc::Rc,
};

use setun_gpu::{
    GpuBackend,
    executor::{Bound, Executor},
    kernel::Kernel,
};
use setun_ops::{Backend, OpsError, comparison::Case};

/// Bytes that are there now, and most that there have been, by what they are for.
type Held = Rc<RefCell<HashMap<&'static str, (u64, u64)>>>;

#[derive(Clone, Default)]
struct Counting {
    held: Held,
    refuses: Rc<Cell<bool>>,
}

struct Memory {
    held: Held,
    what: &'static str,
    bytes: u64,
}

impl Drop for Memory {
    fn drop(&mut self) {
        if let Some((now, _)) = self.held.borrow_mut().get_mut(self.what) {
            *now -= self.bytes;
        }
    }
}

impl Counting {
    fn now(&self, what: &str) -> u64 {
        self.held.borrow().get(what).map_or(0, |(now, _)| *now)
    }

    fn most(&self, what: &str) -> u64 {
        self.held.borrow().get(what).map_or(0, |(_, most)| *most)
    }

    fn refuse(&self, refuses: bool) {
        self.refuses.set(refuses);
    }
}

impl Executor for Counting {
    type Buffer = Rc<Memory>;
    type List = Vec<Rc<Memory>>;

    fn create_buffer(&mut self, what: &'static str, bytes: u64) -> Result<Rc<Memory>, OpsError> {
        if self.refuses.get() {
            return Err(OpsError::OutOfMemory { what, bytes: 0 });
        }
        let mut held = self.held.borrow_mut();
        let (now, most) = held.entry(what).or_default();
        *now += bytes;
        *most = (*most).max(*now);
        Ok(Rc::new(Memory { held: Rc::clone(&self.held), what, bytes }))
    }

    fn max_buffer_bytes(&self) -> u64 {
        u64::MAX
    }

    fn write(&mut self, _: &Rc<Memory>, _: u64, _: &[u8]) -> Result<(), OpsError> {
        Ok(())
    }

    fn copy(
        &mut self,
        _: (&Rc<Memory>, u64),
        _: (&Rc<Memory>, u64),
        _: u64,
    ) -> Result<(), OpsError> {
        Ok(())
    }

    fn compile(&mut self, _: &[Kernel]) -> Result<(), OpsError> {
        Ok(())
    }

    fn record(&mut self, launches: &[Bound<'_, Rc<Memory>>]) -> Result<Self::List, OpsError> {
        Ok(launches.iter().flat_map(|launch| launch.buffers.clone()).collect())
    }

    fn play(&mut self, _: &Self::List, _: u32) -> Result<(), OpsError> {
        Ok(())
    }

    async fn read(&mut self, _: &Rc<Memory>, _: u64, _: &mut [u8]) -> Result<(), OpsError> {
        Ok(())
    }
}

/// Cases of models of several sizes.
fn cases() -> Vec<Case> {
    (0..8).map(|seed| setun_parity::case("model", seed).expect("a subject")).collect()
}

/// Steps that are kept are recorded over memory that later ones replace.
#[test]
fn kept_steps_hold_no_memory_that_is_gone() {
    let counting = Counting::default();
    let mut backend = GpuBackend::new(counting.clone()).expect("memory");
    let mut kept = vec![];
    for case in cases() {
        let weights = case.upload(&mut backend).expect("memory");
        let mut step = backend.prepare(&case.plan, &weights).expect("a plan");
        let mut cache = backend.create_cache(case.plan.cache(), case.blocks).expect("memory");
        backend.run(&mut step, &mut cache, &case.steps[0]).expect("a step");
        kept.push(step);
        let held = counting.now("a buffer") + counting.now("scratch memory");
        assert_eq!(held, backend.step_bytes(), "after {} steps", kept.len());
    }
}

/// A cache that grows is never there twice, whatever has been recorded over it.
#[test]
fn a_cache_grows_piece_by_piece() {
    for case in cases() {
        let counting = Counting::default();
        let mut backend = GpuBackend::new(counting.clone()).expect("memory");
        let weights = case.upload(&mut backend).expect("memory");
        let mut step = backend.prepare(&case.plan, &weights).expect("a plan");
        let mut cache = backend.create_cache(case.plan.cache(), case.blocks).expect("memory");
        backend.run(&mut step, &mut cache, &case.steps[0]).expect("a step");
        let had = counting.now("a KV cache");
        backend.grow_cache(&mut cache, 2 * case.blocks).expect("memory");
        let pieces = 2 * case.plan.cache().layers as u64;
        assert_eq!(counting.now("a KV cache"), 2 * had);
        assert!(counting.most("a KV cache") <= 2 * had + had / pieces);
    }
}

/// One that shrinks is there with a piece more at most, and what was recorded over it holds none.
#[test]
fn a_cache_shrinks_piece_by_piece_as_far_as_there_is_room() {
    for case in cases() {
        let counting = Counting::default();
        let mut backend = GpuBackend::new(counting.clone()).expect("memory");
        let weights = case.upload(&mut backend).expect("memory");
        let mut step = backend.prepare(&case.plan, &weights).expect("a plan");
        let mut cache = backend.create_cache(case.plan.cache(), 4 * case.blocks).expect("memory");
        backend.run(&mut step, &mut cache, &case.steps[0]).expect("a step");
        let had = counting.now("a KV cache");
        counting.refuse(true);
        backend.shrink_cache(&mut cache, 2 * case.blocks).expect("no failure");
        assert_eq!(counting.now("a KV cache"), had, "no room to move");
        counting.refuse(false);
        backend.shrink_cache(&mut cache, case.blocks).expect("memory");
        let pieces = 2 * case.plan.cache().layers as u64;
        assert_eq!(counting.now("a KV cache"), had / 4);
        assert!(counting.most("a KV cache") <= had + had / 4 / pieces);
        backend.run(&mut step, &mut cache, &case.steps[0]).expect("a step");
        assert_eq!(counting.now("a KV cache"), had / 4);
    }
}
