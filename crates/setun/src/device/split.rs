//! Layers of one model on several devices.

mod shares;

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use setun_model::{LayerRange, Model as _, SplitBuilder};
use setun_ops::{WeightData, WeightId};
use shares::Shares;

use super::{
    Device, DeviceReport, DeviceVerdict, HeadType,
    load::{LoadedModel, Place, fill, is_of_device, open_named},
    open::{Finished, Opened, Receive, Settled, Taker, as_kept},
};
use crate::{error::Error, input::ModelInput, reader::Sketch};

/// Moves a model's layers to their devices. A device that was to take what it can, and could not
/// hold it, leaves some to the next; then all is read once more. With `keep`, weights in memory
/// are there afterwards.
pub(super) async fn load(
    model: &mut ModelInput,
    sketch: &Sketch,
    place: &Place,
    shares: &[(Device, usize)],
    keep: bool,
) -> Result<LoadedModel, Error> {
    let mut shares = Shares::new(shares, sketch.config.layers)?;
    loop {
        let held = Arc::new(AtomicUsize::new(0));
        let placed = match open(&shares, sketch, place, &held).await {
            Ok((opened, report)) => fill(model, opened, report, keep || shares.can_shrink()).await,
            Err(error) => Err(error),
        };
        match placed {
            Err(error) if is_of_device(&error) && shares.can_shrink() => {
                shares.shrink(sketch, held.load(Ordering::Relaxed));
                model.rewind().await?;
            }
            placed => return placed,
        }
    }
}

/// Opens all devices, each for its layers. `held` counts the bytes that the one takes that takes
/// what it can.
async fn open(
    shares: &Shares,
    sketch: &Sketch,
    place: &Place,
    held: &Arc<AtomicUsize>,
) -> Result<(Opened, DeviceReport), Error> {
    let parts = shares.parts()?;
    let devices: Vec<_> = parts.iter().map(|(device, _)| device.clone()).collect();
    let (mut stages, mut settled, mut report) = (vec![], vec![], DeviceReport::default());
    let (mut names, mut threads, mut head) = (vec![], 0, place.head);
    let device =
        Device::Split(parts.iter().map(|(on, part)| (on.clone(), part.layers())).collect());
    for (device, part) in parts {
        let stage = place.of_part(sketch, &device, part, &devices);
        let opened = open_named(sketch, &stage).await?;
        let layers = part.layers();
        let reason = format!("{layers} of {} layers", sketch.config.layers);
        report.devices.push(DeviceVerdict::chosen(opened.backend, &opened.level, &reason));
        names.push(format!("{} {}: {layers} layers", opened.backend, opened.level));
        threads += opened.threads;
        head = opened.head; // that of the last stage
        settled.extend(opened.settled);
        if let Taker::Stage(stage) = opened.taker {
            stages.push(stage);
        }
    }
    let receiver = Receiver {
        builder: SplitBuilder::new(stages)?,
        int8_head: place.int8_head(sketch),
        counted: shares.flexible()?.map(|part| part.needs(&sketch.layout)),
        held: Arc::clone(held),
    };
    let opened = Opened {
        device,
        backend: "split",
        head,
        level: names.join(", "),
        threads,
        layer: None,
        taker: Taker::Model(Box::new(receiver)),
        settled: Some(all(settled)),
    };
    Ok((opened, report))
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
struct Receiver {
    builder: SplitBuilder,
    int8_head: Option<WeightId>,
    /// Whose bytes are counted, by weight: of the device that takes what it can.
    counted: Option<Vec<bool>>,
    held: Arc<AtomicUsize>,
}

impl Receive for Receiver {
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

impl Place {
    /// The same for some layers, on one of several devices.
    fn of_part(&self, sketch: &Sketch, device: &Device, part: LayerRange, all: &[Device]) -> Self {
        let is_gpu = matches!(device, Device::Gpu(_));
        let mut options = self.options.of_one(device, all);
        if !part.has_head() {
            options.head = HeadType::Stored;
        }
        let place = Self { part: Some(part), ..Self::new(sketch, options) };
        if is_gpu { place.on_gpu() } else { place }
    }
}
