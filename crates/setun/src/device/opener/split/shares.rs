//! Numbers of layers that devices take.

use setun_engine::Error as EngineError;
use setun_model::LayerRange;
use setun_ops::{WeightSpec, weight::WeightKind};

use crate::{device::Device, error::Error, header::ModelHeader};

/// Shares of the layers of a model, in order.
pub(super) struct Shares {
    list: Vec<Share>,
    layers: usize,
}

struct Share {
    device: Device,
    layers: usize,
    /// Whether it takes as many as it can.
    is_flexible: bool,
}

impl Shares {
    /// Devices with 0 layers take what is left: all of it the first of them that is a GPU, or
    /// else the first.
    pub(super) fn new(shares: &[(Device, usize)], layers: usize) -> Result<Self, Error> {
        let bad = |expected: String| {
            let found = Device::Split(shares.to_vec()).to_string();
            EngineError::BadOption { option: "device", found, expected }.into()
        };
        let is_named =
            |device: &Device| !matches!(device, Device::Auto | Device::Each(_) | Device::Split(_));
        if shares.is_empty() || !shares.iter().all(|(device, _)| is_named(device)) {
            return Err(bad("devices by name, and their layers".into()));
        }
        let taken = shares.iter().fold(0, |sum: usize, (_, layers)| sum.saturating_add(*layers));
        let mut list: Vec<_> = shares
            .iter()
            .map(|(device, layers)| Share {
                device: device.clone(),
                layers: *layers,
                is_flexible: *layers == 0,
            })
            .collect();
        let left = layers.checked_sub(taken);
        let first = next(&list, 0);
        match (first, left) {
            (Some(index), Some(left)) => list[index].layers = left,
            (None, Some(0)) => {}
            _ => return Err(bad(format!("{layers} layers in all, which the model has"))),
        }
        Ok(Self { list, layers })
    }

    /// The devices that have layers, with these.
    pub(super) fn parts(&self) -> Result<Vec<(Device, LayerRange)>, Error> {
        let in_use = || self.list.iter().filter(|share| share.layers > 0);
        let layers: Vec<_> = in_use().map(|share| share.layers).collect();
        let parts = LayerRange::cut(&layers, self.layers)?;
        Ok(in_use().map(|share| share.device.clone()).zip(parts).collect())
    }

    /// The layers of the device that takes as many as it can, and whose layers others could take.
    pub(super) fn flexible(&self) -> Result<Option<LayerRange>, Error> {
        let Some(index) = self.last_flexible().filter(|_| self.can_shrink()) else {
            return Ok(None);
        };
        let before = self.list[..index].iter().filter(|share| share.layers > 0).count();
        Ok(self.parts()?.get(before).map(|(_, part)| *part))
    }

    /// Whether what a device cannot hold has another to go to.
    pub(super) fn can_shrink(&self) -> bool {
        next(&self.list, 0).is_some() && self.last_flexible().is_some()
    }

    /// Moves layers from the device that could hold `held` bytes of them to the next.
    pub(super) fn shrink(&mut self, header: &ModelHeader, held: usize) {
        let (Some(from), Some(to)) = (self.last_flexible(), next(&self.list, 0)) else { return };
        let layers = self.list[from].layers;
        let needed = match self.flexible() {
            Ok(Some(part)) => header.bytes_of(&part.needs(&header.layout)),
            _ => 0,
        };
        let layer = header.layer_bytes().max(1);
        let beside = needed.saturating_sub(layers * layer);
        // A tenth is left for the cache and for steps. Where all weights found room, these did not.
        let fit = if held < needed {
            (held / 10 * 9).saturating_sub(beside) / layer
        } else {
            layers * 3 / 4
        };
        let stay = fit.min(layers.saturating_sub(1));
        self.list[to].layers += layers - stay;
        self.list[from].layers = stay;
        self.list[from].is_flexible = false;
    }

    /// The flexible device with layers.
    fn last_flexible(&self) -> Option<usize> {
        self.list.iter().rposition(|share| share.is_flexible && share.layers > 0)
    }
}

/// The flexible device that is next to take layers: GPUs come first.
fn next(list: &[Share], layers: usize) -> Option<usize> {
    let free = |share: &Share| share.is_flexible && share.layers == layers;
    let is_gpu = |share: &Share| matches!(share.device, Device::Gpu(_));
    let gpu = list.iter().position(|share| free(share) && is_gpu(share));
    gpu.or_else(|| list.iter().position(free))
}

fn to_usize(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

impl ModelHeader {
    /// Bytes of those weights that are `wanted`, by weight.
    fn bytes_of(&self, wanted: &[bool]) -> usize {
        let weights = self.layout.specs.iter().zip(&self.kinds).zip(wanted);
        let bytes = |((spec, kind), wanted): ((&WeightSpec, &WeightKind), &bool)| {
            if *wanted { to_usize(kind.bytes(*spec)) } else { 0 }
        };
        weights.map(bytes).sum()
    }

    /// Bytes of a layer's weights.
    fn layer_bytes(&self) -> usize {
        let layers = self.layout.layers.len();
        let own = self.layout.specs.iter().zip(&self.kinds);
        let ternary = own.filter(|(spec, _)| matches!(spec, WeightSpec::Ternary { .. }));
        ternary.map(|(spec, kind)| to_usize(kind.bytes(*spec))).sum::<usize>() / layers.max(1)
    }
}
