//! Layers of one model on several devices.

mod shares;

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use setun_engine::{DeviceReport, DeviceVerdict, HeadType};
use setun_model::{LayerRange, Model as _, SplitBuilder};
use setun_ops::{WeightData, WeightId};
use shares::Shares;

use super::open_named;
use crate::{
    device::{
        Device, DeviceKind,
        opened::{Finished, OpenedDevice, ReceiveWeights, Receiver, Settled, as_kept},
        placement::Placement,
    },
    error::Error,
    header::ModelHeader,
};

/// Shares of a model's layers, and how much of them was taken.
pub(super) struct Split {
    shares: Shares,
    /// Bytes that the device has taken that takes what it can.
    held: Arc<AtomicUsize>,
}

impl Split {
    /// A number of layers on each device, in order.
    pub(super) fn new(shares: &[(Device, usize)], header: &ModelHeader) -> Result<Self, Error> {
        Ok(Self { shares: Shares::new(shares, header.config.layers.len())?, held: Arc::default() })
    }

    /// Whether what a device cannot hold has another to go to.
    pub(super) fn can_shrink(&self) -> bool {
        self.shares.can_shrink()
    }

    /// Moves layers from the device that could not hold them to the next.
    pub(super) fn shrink(&mut self, header: &ModelHeader) {
        self.shares.shrink(header, self.held.load(Ordering::Relaxed));
    }

    /// Opens all devices, each for its layers.
    pub(super) async fn open(
        &mut self,
        header: &ModelHeader,
        placement: &Placement,
    ) -> Result<OpenedDevice, Error> {
        self.held = Arc::default();
        let parts = self.shares.parts()?;
        let devices: Vec<_> = parts.iter().map(|(device, _)| device.clone()).collect();
        let (mut stages, mut settled, mut report) = (vec![], vec![], DeviceReport::default());
        let (mut names, mut threads, mut head) = (vec![], 0, placement.head);
        let named = parts.iter().map(|(device, part)| (device.clone(), part.layers()));
        let device = Device::Split(named.collect());
        for (device, part) in parts {
            let stage = placement.of_part(header, &device, part, &devices);
            let opened = open_named(header, &stage).await?;
            let layers = part.layers();
            let reason = format!("{layers} of {} layers", header.config.layers.len());
            report.devices.push(DeviceVerdict::chosen(opened.backend, &opened.level, &reason));
            names.push(format!("{} {}: {layers} layers", opened.backend, opened.level));
            threads += opened.threads;
            head = opened.head; // that of the last stage
            settled.extend(opened.settled);
            if let Receiver::Stage(stage) = opened.receiver {
                stages.push(stage);
            }
        }
        let receiver = SplitReceiver {
            builder: SplitBuilder::new(stages)?,
            int8_head: placement.int8_head(header),
            counted: self.shares.flexible()?.map(|part| part.needs(&header.layout)),
            held: Arc::clone(&self.held),
        };
        Ok(OpenedDevice {
            device,
            backend: DeviceKind::Split,
            head,
            level: names.join(", "),
            threads,
            layer_time: None,
            report,
            receiver: Receiver::Model(Box::new(receiver)),
            settled: Some(all(settled)),
        })
    }
}

/// Ready once all are.
fn all(settled: Vec<Settled>) -> Settled {
    let wait = || async {
        for settled in settled {
            settled().await?;
        }
        Ok(())
    };
    Box::new(|| Box::pin(wait()))
}

/// Takes the weights of all stages.
struct SplitReceiver {
    builder: SplitBuilder,
    int8_head: Option<WeightId>,
    /// Whose bytes are counted, by weight: of the device that takes what it can.
    counted: Option<Vec<bool>>,
    held: Arc<AtomicUsize>,
}

impl ReceiveWeights for SplitReceiver {
    fn take(&mut self, id: WeightId, weight: WeightData) -> Result<(), Error> {
        let weight = as_kept(id, weight, self.int8_head)?;
        let bytes = weight.bytes();
        self.builder.add(id, weight)?;
        if self.counted.as_ref().is_some_and(|counted| counted[id.0 as usize]) {
            self.held.fetch_add(bytes, Ordering::Relaxed);
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<Finished, Error> {
        let model = self.builder.finish()?;
        let bytes = model.memory().weights();
        Ok((Box::new(model), bytes))
    }
}

impl Placement {
    /// The same for some layers, on one of several devices.
    fn of_part(
        &self,
        header: &ModelHeader,
        device: &Device,
        part: LayerRange,
        all: &[Device],
    ) -> Self {
        let is_gpu = matches!(device, Device::Gpu(_));
        let mut options = self.options.of_one(device, all);
        if !part.has_head() {
            options.head = HeadType::Stored;
        }
        let placement = Self { part: Some(part), ..Self::new(header, options) };
        if is_gpu { placement.on_gpu() } else { placement }
    }
}
