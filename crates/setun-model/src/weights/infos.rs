//! Headers of a checkpoint, by name.

use std::collections::HashMap;

use setun_checkpoint::{CheckpointError, Dtype, TensorInfo, tensor::missing};

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

    /// How a linear layer is stored: codes are packed in bytes; floats are codes where a scale
    /// lies beside them, and master weights where none does.
    pub(crate) fn form(&self, linear: &str, family: &Family) -> Result<Form, ModelError> {
        let info = self.find(&format!("{linear}{}", family.weight))?;
        let has_scale = self.by_name.contains_key(format!("{linear}{}", family.scale).as_str());
        Ok(match (info.dtype, has_scale) {
            (Dtype::U8, _) => Form::Packed,
            (_, true) => Form::Exact,
            (_, false) => Form::Master,
        })
    }

    pub(crate) fn find(&self, name: &str) -> Result<&'a TensorInfo, ModelError> {
        let found = self.by_name.get(name).copied();
        found.ok_or_else(|| missing(self.all, name).into())
    }

    /// The error for a tensor that is not there.
    pub(crate) fn missing(&self, name: &str) -> CheckpointError {
        missing(self.all, name)
    }
}

/// How the weights of a linear layer are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Four codes a byte, with a scale.
    Packed,
    /// −1, 0 and +1 as floats, with a scale.
    Exact,
    /// Floats to be quantized at load.
    Master,
}
