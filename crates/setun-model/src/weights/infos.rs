//! Headers of a checkpoint, by name.

use std::collections::HashMap;

use setun_checkpoint::{
    CheckpointError, Dtype, TensorInfo, config::QuantizationMode, tensor::missing,
};

use crate::{error::ModelError, families::Family};

/// Headers of a checkpoint's tensors, by name.
pub(crate) struct TensorInfos<'a> {
    all: &'a [TensorInfo],
    by_name: HashMap<&'a str, &'a TensorInfo>,
}

impl<'a> TensorInfos<'a> {
    pub(super) fn new(all: &'a [TensorInfo]) -> Self {
        Self { all, by_name: all.iter().map(|info| (info.name.as_str(), info)).collect() }
    }

    /// How a linear layer is stored.
    pub(crate) fn form(
        &self,
        linear: &str,
        family: &Family,
        mode: QuantizationMode,
    ) -> Result<StorageFormat, ModelError> {
        let info = self.find(&format!("{linear}{}", family.weight))?;
        let has_scale = self.get(&format!("{linear}{}", family.scale)).is_some();
        if let QuantizationMode::Affine { group } = mode {
            return Ok(StorageFormat::Affine { group });
        }
        Ok(match info.dtype {
            Dtype::U8 | Dtype::Base3 => StorageFormat::Packed,
            dtype if dtype.is_ternary() => StorageFormat::Blocks,
            _ if has_scale => StorageFormat::Exact,
            _ if mode == QuantizationMode::FakeQuantized => StorageFormat::Blocks,
            _ => StorageFormat::Master,
        })
    }

    pub(crate) fn find(&self, name: &str) -> Result<&'a TensorInfo, ModelError> {
        self.get(name).ok_or_else(|| self.missing(name).into())
    }

    pub(crate) fn get(&self, name: &str) -> Option<&'a TensorInfo> {
        self.by_name.get(name).copied()
    }

    /// The error for a tensor that is not there.
    pub(crate) fn missing(&self, name: &str) -> CheckpointError {
        missing(self.all, name)
    }
}

/// How the weights of a linear layer are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StorageFormat {
    /// Four or five codes a byte, with scales beside them.
    Packed,
    /// −1, 0 and +1 as floats, with a scale beside them.
    Exact,
    /// With scales of their own, which one beside them may multiply.
    Blocks,
    /// Floats to be quantized at load.
    Master,
    /// MLX's codes, with scales and biases for groups of this many columns beside them.
    Affine { group: usize },
}

impl StorageFormat {
    /// Whether there must be a scale beside it.
    pub(crate) fn has_scale_beside(self) -> bool {
        matches!(self, Self::Packed | Self::Exact)
    }
}
