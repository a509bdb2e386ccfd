//! Limits of a device, by which the speed of its kernels is judged.

use std::time::{Duration, Instant};

use setun_ops::OpsError;

use crate::{
    executor::{Bound, Executor},
    kernel::Kernel,
    launch::When,
    peak,
};

/// Enough for a copy that no cache of a device holds.
pub const MAX_COPY_BYTES: u64 = 1 << 30;

/// What a device can do at most, as measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Bytes that a copy within its memory reads and writes together, in 10⁹ a second.
    pub copy_gb_per_second: f64,
    /// Integer operations of the fastest products that kernels use, in 10¹² a second; a
    /// multiply-add is two.
    pub tera_operations_per_second: f64,
}

/// Passes that count; the best one does.
const PASSES: usize = 5;

/// A pass takes at least this long, so that the wait for its end is a small part of it.
const MIN_PASS: Duration = Duration::from_millis(20);

/// Most times that a pass repeats its work.
const MAX_REPEATS: u32 = 1 << 12;

/// Workgroups of a launch: several for each processor of a large device.
const WORKGROUPS: u32 = 4096;

/// Rounds of a launch in its shortest pass.
const ROUNDS: u32 = 4;

impl Limits {
    /// Measures a device that does nothing else, by copies of at most this many bytes and of at
    /// most [`MAX_COPY_BYTES`].
    ///
    /// # Errors
    ///
    /// If it has not twice the memory of a copy, is lost, or computes wrong sums.
    pub async fn measure<E: Executor>(executor: &mut E, max_bytes: u64) -> Result<Self, OpsError> {
        let bytes = max_bytes.min(MAX_COPY_BYTES).min(executor.max_buffer_bytes());
        let copy_gb_per_second = copy(executor, (bytes & !15).max(16)).await?;
        let tera_operations_per_second = products(executor).await?;
        Ok(Self { copy_gb_per_second, tera_operations_per_second })
    }
}

async fn copy<E: Executor>(executor: &mut E, bytes: u64) -> Result<f64, OpsError> {
    let from = executor.create_buffer("a copy's source", bytes)?;
    let to = executor.create_buffer("a copy's target", bytes)?;
    let mut rate = 0.0_f64;
    let mut passes = Passes::default();
    while let Some(repeats) = passes.repeats() {
        let begun = Instant::now();
        executor.copy_times(&from, &to, bytes, repeats)?;
        executor.read(&to, 0, &mut [0; 4]).await?;
        let seconds = passes.took(begun.elapsed());
        rate = rate.max(2.0 * to_f64(bytes) * f64::from(repeats) / seconds / 1e9);
    }
    Ok(rate)
}

async fn products<E: Executor>(executor: &mut E) -> Result<f64, OpsError> {
    let products = executor.peak_products();
    let step = executor.create_buffer("no step's inputs", 256)?;
    let sums =
        executor.create_buffer("sums of products", u64::from(4 * WORKGROUPS * peak::LANES))?;
    let per_round = peak::multiply_adds(products) * peak::LANES;
    let mut rate = 0.0_f64;
    let mut passes = Passes::default();
    while let Some(repeats) = passes.repeats() {
        let rounds = ROUNDS * repeats;
        let list = executor.record(&[Bound {
            kernel: Kernel::Peak(products),
            shape: &[rounds, peak::CODES, peak::ACTIVATIONS],
            buffers: vec![step.clone(), sums.clone()],
            grid: [WORKGROUPS, 1, 1],
            when: When::Always,
        }])?;
        let mut first = [0; 4 * 32]; // a warp's
        executor.read(&sums, 0, &mut first[..4]).await?; // what it waits for is not timed
        let begun = Instant::now();
        executor.play(&list, 1)?;
        executor.read(&sums, 0, &mut first).await?;
        let seconds = passes.took(begun.elapsed());
        for (lane, found) in (0..).zip(bytemuck::cast_slice::<u8, u32>(&first)) {
            let expected = peak::sum(products, lane, rounds);
            if *found != expected {
                let reason = format!("lane {lane} of `peak` has {found}, expected {expected}");
                return Err(OpsError::DeviceLost { reason });
            }
        }
        let operations = 2.0 * f64::from(per_round) * f64::from(WORKGROUPS) * f64::from(rounds);
        rate = rate.max(operations / seconds / 1e12);
    }
    Ok(rate)
}

/// Repeats of one pass after the other: more until one takes long enough, then [`PASSES`] of them.
#[derive(Debug)]
struct Passes {
    repeats: u32,
    left: usize,
}

impl Default for Passes {
    fn default() -> Self {
        Self { repeats: 1, left: PASSES }
    }
}

impl Passes {
    /// None once enough have counted.
    fn repeats(&self) -> Option<u32> {
        (self.left > 0).then_some(self.repeats)
    }

    /// The time of the pass in seconds.
    fn took(&mut self, time: Duration) -> f64 {
        if time < MIN_PASS && self.repeats < MAX_REPEATS {
            self.repeats *= 2;
        } else {
            self.left -= 1;
        }
        time.as_secs_f64().max(1e-9)
    }
}

#[expect(clippy::cast_precision_loss, reason = "a power of two, or near one")]
fn to_f64(bytes: u64) -> f64 {
    bytes as f64
}
