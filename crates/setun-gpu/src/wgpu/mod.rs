//! The executor over `wgpu`.

mod adapter;
mod callback_future;
mod compile;
mod failure;
#[cfg(feature = "testing")]
mod testing;
mod timing;
#[cfg(target_family = "wasm")]
mod web_name;

use std::time::Duration;

pub use adapter::{Adapter, Api, ListedAdapter};
use compile::{Compiled, compile};
pub use failure::DeviceHealth;
use failure::Failure;
use setun_ops::{HAS_RECURRENT, OpsError};

use crate::{
    error::GpuError,
    executor::{Bound, Executor},
    kernel::{Kernel, Language},
    launch::When,
    pipeline_cache::PipelineCache,
};

/// Shapes begin at multiples of this in their buffer: WebGPU's default for uniforms.
const SHAPE_BYTES: usize = 256;

/// Most bytes that are written or copied before they are waited for: until then there is a copy of
/// them, or what they were copied from, though it has no owner any more.
const MAX_UNFINISHED: u64 = 1 << 26;

/// A device of `wgpu`.
#[derive(Debug)]
pub struct Wgpu {
    device: wgpu::Device,
    queue: wgpu::Queue,
    adapter: String,
    language: Language,
    kernels: PipelineCache<Compiled>,
    staging: Option<wgpu::Buffer>,
    played: Option<wgpu::CommandEncoder>, // not submitted yet: what reads may join it
    unfinished: u64,                      // bytes written or copied
    #[cfg(feature = "testing")]
    taken: u64, // bytes, those that were given back too
    failure: Failure,
}

/// Memory of a [`Wgpu`].
pub type WgpuBuffer = wgpu::Buffer;

/// A launch with its pipeline and bindings.
#[derive(Debug)]
struct Ready {
    pipeline: wgpu::ComputePipeline,
    group: wgpu::BindGroup,
    grid: [u32; 3],
    when: When,
}

impl Ready {
    fn dispatch(&self, pass: &mut wgpu::ComputePass<'_>, chunks: u32) {
        let [x, y, z] = self.grid;
        let layers = self.when.layers(z, chunks);
        if layers > 0 {
            pass.set_pipeline(&self.pipeline);
            pass.set_bind_group(0, &self.group, &[]);
            pass.dispatch_workgroups(x, y, layers);
        }
    }
}

/// Launches made ready.
#[derive(Debug)]
pub struct WgpuList {
    launches: Vec<Ready>,
    clock: Option<timing::Clock>,
}

impl Wgpu {
    fn new(
        device: wgpu::Device,
        queue: wgpu::Queue,
        adapter: String,
        language: Language,
        failure: Failure,
    ) -> Self {
        #[cfg(feature = "testing")]
        testing::opened(&device);
        Self {
            device,
            queue,
            adapter,
            language,
            kernels: PipelineCache::default(),
            staging: None,
            played: None,
            unfinished: 0,
            #[cfg(feature = "testing")]
            taken: 0,
            failure,
        }
    }

    /// The best device that an interface reaches.
    ///
    /// # Errors
    ///
    /// If there is none, or its driver refuses.
    pub async fn open(api: Api) -> Result<Self, GpuError> {
        Adapter::find(api).await?.open().await
    }

    /// The driver's own handle: for tests, which take it away.
    #[cfg(feature = "testing")]
    #[must_use]
    pub fn handle(&self) -> wgpu::Device {
        self.device.clone()
    }

    /// Name of the adapter, as the driver gives it.
    #[must_use]
    pub fn adapter(&self) -> &str {
        &self.adapter
    }

    /// Reports the state of the device while this executor is in use elsewhere.
    #[must_use]
    pub fn health(&self) -> DeviceHealth {
        DeviceHealth::new(self.queue.clone(), self.failure.clone())
    }

    fn check(&self) -> Result<(), OpsError> {
        self.failure.check()
    }

    /// Waits for all that is submitted; a browser does so by itself.
    #[cfg(not(target_family = "wasm"))]
    fn wait(&self) -> Result<(), OpsError> {
        let lost = |reason: String| OpsError::DeviceLost { reason };
        let poll = || self.device.poll(wgpu::PollType::wait_indefinitely());
        // `wgpu` panics where a device is lost while it is waited for.
        match std::panic::catch_unwind(std::panic::AssertUnwindSafe(poll)) {
            Ok(polled) => polled.map(|_| ()).map_err(|error| lost(error.to_string())),
            Err(_) => Err(lost("it went away while it was waited for".into())),
        }
    }

    /// Ready once all that is submitted has been done.
    async fn finished(&self) -> Result<(), OpsError> {
        let (resolve, done) = callback_future::callback_future();
        self.queue.on_submitted_work_done(move || resolve(()));
        #[cfg(not(target_family = "wasm"))]
        self.wait()?;
        done.await;
        self.check()
    }

    /// Waits now and then for what is written and copied.
    fn count(&mut self, bytes: u64) -> Result<(), OpsError> {
        self.unfinished += bytes;
        if self.unfinished > MAX_UNFINISHED {
            self.unfinished = 0;
            self.queue.submit([]);
            #[cfg(not(target_family = "wasm"))]
            self.wait()?;
        }
        self.check()
    }

    fn submit_played(&mut self) {
        if let Some(encoder) = self.played.take() {
            self.queue.submit([encoder.finish()]);
        }
    }

    fn kernel(&self, kernel: Kernel) -> Compiled {
        self.kernels.get(kernel, |kernel| compile(&self.device, kernel, self.language))
    }
}

/// A browser would keep the memory until it collects its garbage.
#[cfg(target_family = "wasm")]
impl Drop for Wgpu {
    fn drop(&mut self) {
        self.device.destroy();
    }
}

impl Executor for Wgpu {
    type Buffer = wgpu::Buffer;
    type List = WgpuList;

    fn runs_hybrid(&self) -> bool {
        HAS_RECURRENT
    }

    fn create_buffer(&mut self, what: &'static str, bytes: u64) -> Result<wgpu::Buffer, OpsError> {
        let most = self.max_buffer_bytes();
        if bytes > most {
            return Err(OpsError::BeyondLimit { what, bytes, most });
        }
        let usage = wgpu::BufferUsages::STORAGE
            | wgpu::BufferUsages::UNIFORM
            | wgpu::BufferUsages::COPY_SRC
            | wgpu::BufferUsages::COPY_DST;
        let size = bytes.max(16);
        #[cfg(feature = "testing")]
        testing::take(&mut self.taken, what, size)?;
        self.failure.record_wanted(size);
        let buffer = self.device.create_buffer(&wgpu::BufferDescriptor {
            label: Some(what),
            size,
            usage,
            mapped_at_creation: false,
        });
        self.failure.check_memory(what, size).map(|()| buffer)
    }

    fn max_buffer_bytes(&self) -> u64 {
        let limits = self.device.limits();
        limits.max_buffer_size.min(limits.max_storage_buffer_binding_size)
    }

    fn write(&mut self, buffer: &wgpu::Buffer, offset: u64, data: &[u8]) -> Result<(), OpsError> {
        self.submit_played();
        self.queue.write_buffer(buffer, offset, data);
        self.count(data.len() as u64)
    }

    fn copy(
        &mut self,
        from: (&wgpu::Buffer, u64),
        to: (&wgpu::Buffer, u64),
        bytes: u64,
    ) -> Result<(), OpsError> {
        self.submit_played();
        let mut encoder = self.device.create_command_encoder(&<_>::default());
        if from.0 == to.0 {
            // A copy within a buffer is not allowed.
            let between = self.create_buffer("a copy", bytes)?;
            encoder.copy_buffer_to_buffer(from.0, from.1, &between, 0, bytes);
            encoder.copy_buffer_to_buffer(&between, 0, to.0, to.1, bytes);
        } else {
            encoder.copy_buffer_to_buffer(from.0, from.1, to.0, to.1, bytes);
        }
        self.queue.submit([encoder.finish()]);
        self.count(bytes)
    }

    /// In one submission, with nothing to wait for between two.
    fn copy_times(
        &mut self,
        from: &wgpu::Buffer,
        to: &wgpu::Buffer,
        bytes: u64,
        times: u32,
    ) -> Result<(), OpsError> {
        self.submit_played();
        let mut encoder = self.device.create_command_encoder(&<_>::default());
        for _ in 0..times {
            encoder.copy_buffer_to_buffer(from, 0, to, 0, bytes);
        }
        self.queue.submit([encoder.finish()]);
        self.check()
    }

    fn compile(&mut self, kernels: &[Kernel]) -> Result<(), OpsError> {
        let (device, language) = (self.device.clone(), self.language);
        self.kernels.start(kernels, move |kernel| compile(&device, kernel, language));
        self.check()
    }

    fn record(&mut self, launches: &[Bound<'_, wgpu::Buffer>]) -> Result<WgpuList, OpsError> {
        let bytes = (launches.len() * SHAPE_BYTES) as u64;
        let shapes = self.create_buffer("shapes", bytes)?;
        let mut recorded = Vec::with_capacity(launches.len());
        for (launch, offset) in launches.iter().zip((0..).step_by(SHAPE_BYTES)) {
            self.write(&shapes, offset, bytemuck::cast_slice(launch.shape))?;
            let (pipeline, layout) = self.kernel(launch.kernel);
            let shape = wgpu::BufferBinding {
                buffer: &shapes,
                offset,
                size: wgpu::BufferSize::new(SHAPE_BYTES as u64),
            };
            let fixed = [wgpu::BindGroupEntry {
                binding: 0,
                resource: wgpu::BindingResource::Buffer(shape),
            }];
            let own = (1..).zip(&launch.buffers).map(|(binding, buffer)| wgpu::BindGroupEntry {
                binding,
                resource: buffer.as_entire_binding(),
            });
            let entries: Vec<_> = fixed.into_iter().chain(own).collect();
            let group = self.device.create_bind_group(&wgpu::BindGroupDescriptor {
                label: Some(launch.kernel.shader().name),
                layout: &layout,
                entries: &entries,
            });
            recorded.push(Ready { pipeline, group, grid: launch.grid, when: launch.when });
        }
        self.check().map(|()| WgpuList { launches: recorded, clock: None })
    }

    fn play(&mut self, list: &WgpuList, chunks: u32) -> Result<(), OpsError> {
        self.play_times(list, chunks, 1)
    }

    fn play_times(&mut self, list: &WgpuList, chunks: u32, times: usize) -> Result<(), OpsError> {
        let mut encoder = self.device.create_command_encoder(&<_>::default());
        let mut pass = encoder.begin_compute_pass(&<_>::default());
        for _ in 0..times {
            for launch in &list.launches {
                launch.dispatch(&mut pass, chunks);
            }
        }
        drop(pass);
        self.submit_played();
        self.played = Some(encoder);
        self.check()
    }

    fn can_time(&self) -> bool {
        self.has_clock()
    }

    fn play_timed(
        &mut self,
        list: &mut WgpuList,
        chunks: u32,
        times: &mut Vec<Duration>,
    ) -> Result<(), OpsError> {
        self.play_with_clock(list, chunks, times)
    }

    async fn read(
        &mut self,
        buffer: &wgpu::Buffer,
        offset: u64,
        out: &mut [u8],
    ) -> Result<(), OpsError> {
        if out.is_empty() {
            self.submit_played();
            return self.finished().await;
        }
        let bytes = out.len() as u64;
        let most = self.device.limits().max_buffer_size;
        let staging = match self.staging.take().filter(|staging| staging.size() >= bytes) {
            Some(staging) => staging,
            None => self.device.create_buffer(&wgpu::BufferDescriptor {
                label: Some("what is read"),
                size: bytes.next_power_of_two().min(most).max(bytes),
                usage: wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST,
                mapped_at_creation: false,
            }),
        };
        let played = self.played.take();
        let mut encoder =
            played.unwrap_or_else(|| self.device.create_command_encoder(&<_>::default()));
        encoder.copy_buffer_to_buffer(buffer, offset, &staging, 0, bytes);
        self.queue.submit([encoder.finish()]);
        let (resolve, mapped) = callback_future::callback_future();
        staging.map_async(wgpu::MapMode::Read, 0..bytes, resolve);
        let lost = |reason: String| OpsError::DeviceLost { reason };
        #[cfg(not(target_family = "wasm"))]
        self.wait()?;
        if let Err(error) = mapped.await {
            // What went wrong before says more.
            return self.check().and_then(|()| Err(lost(error.to_string())));
        }
        let view = staging.get_mapped_range(0..bytes).map_err(|error| lost(error.to_string()))?;
        out.copy_from_slice(&view);
        drop(view);
        staging.unmap();
        self.staging = Some(staging);
        self.check()
    }
}
