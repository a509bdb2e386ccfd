//! Timestamps of launches, by the device's own clock.

use std::{task::Waker, time::Duration};

use setun_ops::OpsError;

use super::{Wgpu, WgpuList};
use crate::executor::Executor;

/// Most launches of a list that is timed: a query set holds twice as many.
const MAX_LAUNCHES: usize = 2048;

/// Where the clock's values of a list go.
#[derive(Debug)]
pub(super) struct Clock {
    queries: wgpu::QuerySet,
    values: wgpu::Buffer,
}

impl Wgpu {
    pub(super) fn has_clock(&self) -> bool {
        // A browser's host does not wait.
        cfg!(not(target_family = "wasm"))
            && self.device.features().contains(wgpu::Features::TIMESTAMP_QUERY)
    }

    /// Plays launches one by one, waits, and says what each took.
    pub(super) fn play_with_clock(
        &mut self,
        list: &mut WgpuList,
        chunks: u32,
        times: &mut Vec<Duration>,
    ) -> Result<(), OpsError> {
        let launches = list.launches.len().min(MAX_LAUNCHES);
        let clock = match list.clock.take() {
            Some(clock) => clock,
            None => self.clock(launches)?,
        };
        self.submit_played();
        let mut encoder = self.device.create_command_encoder(&<_>::default());
        for (index, launch) in (0..).zip(&list.launches) {
            let writes = wgpu::ComputePassTimestampWrites {
                query_set: &clock.queries,
                beginning_of_pass_write_index: Some(2 * index),
                end_of_pass_write_index: Some(2 * index + 1),
            };
            let is_timed = (index as usize) < launches;
            let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor {
                label: None,
                timestamp_writes: is_timed.then_some(writes),
            });
            launch.dispatch(&mut pass, chunks);
        }
        let queries = u32::try_from(2 * launches).unwrap_or(0);
        encoder.resolve_query_set(&clock.queries, 0..queries, &clock.values, 0);
        self.queue.submit([encoder.finish()]);
        let mut values = vec![0u64; 2 * launches];
        now(self.read(&clock.values, 0, bytemuck::cast_slice_mut(&mut values)))?;
        let period = f64::from(self.queue.get_timestamp_period());
        times.clear();
        times.extend(values.chunks_exact(2).map(|pair| {
            let ticks = pair[1].saturating_sub(pair[0]);
            #[expect(clippy::cast_precision_loss, reason = "a launch takes no weeks")]
            Duration::from_secs_f64(ticks as f64 * period / 1e9)
        }));
        times.resize(list.launches.len(), Duration::ZERO);
        list.clock = Some(clock);
        self.check()
    }

    fn clock(&mut self, launches: usize) -> Result<Clock, OpsError> {
        let queries = self.device.create_query_set(&wgpu::QuerySetDescriptor {
            label: Some("times"),
            ty: wgpu::QueryType::Timestamp,
            count: u32::try_from(2 * launches).unwrap_or(0),
        });
        let values = self.device.create_buffer(&wgpu::BufferDescriptor {
            label: Some("times"),
            size: (16 * launches).max(16) as u64,
            usage: wgpu::BufferUsages::QUERY_RESOLVE | wgpu::BufferUsages::COPY_SRC,
            mapped_at_creation: false,
        });
        self.check().map(|()| Clock { queries, values })
    }
}

/// What a future gives that waits for the device by itself.
fn now<T>(future: impl Future<Output = Result<T, OpsError>>) -> Result<T, OpsError> {
    let mut context = std::task::Context::from_waker(Waker::noop());
    match std::pin::pin!(future).poll(&mut context) {
        std::task::Poll::Ready(result) => result,
        std::task::Poll::Pending => {
            Err(OpsError::DeviceLost { reason: "it does not say when it has ended".into() })
        }
    }
}
