//! Tensors of signs: they must be those of the rotation, and are not handed out.

use super::is_signs;
use crate::{
    config::{Hadamard, columns},
    dense,
    error::CheckpointError,
    source::ReadRequest,
    tensor::{Tensor, TensorInfo, find},
    tensor_assembler::{DataReader, TensorAssembler},
};

/// End of their names, behind that of the matrix.
pub(super) const END: &str = ".signs";

/// Each belongs to a rotated matrix and has a sign for each input.
pub(super) fn check_shapes(
    tensors: &[TensorInfo],
    hadamard: &Hadamard,
) -> Result<(), CheckpointError> {
    for info in tensors.iter().filter(|info| is_signs(info)) {
        let matrix = info.name.strip_suffix(END).unwrap_or_default();
        let width = columns(find(tensors, &format!("{matrix}.weight"))?)?;
        info.expect_shape(&[width])?;
        if !hadamard.is_rotated(matrix) {
            return Err(CheckpointError::UnsupportedModel {
                file: info.file.to_string(),
                what: "the tensor",
                found: info.name.clone(),
                supported: "signs of matrices that the rotation names",
            });
        }
    }
    Ok(())
}

/// Reads all tensors, compares signs and hands out the others.
#[derive(Debug)]
pub(crate) struct SignsReader {
    all: TensorAssembler,
    others: Vec<TensorInfo>,
    hadamard: Hadamard,
}

impl SignsReader {
    pub(crate) fn new(tensors: Vec<TensorInfo>, hadamard: Hadamard) -> Self {
        let others = tensors.iter().filter(|info| !is_signs(info)).cloned().collect();
        Self { all: TensorAssembler::new(tensors), others, hadamard }
    }

    fn check(&self, tensor: &Tensor) -> Result<(), CheckpointError> {
        let found = dense::numbers(tensor)?;
        let expected = self.hadamard.signs.get(&found.len());
        let is_sign = |(place, sign): (usize, &f32)| {
            expected.map_or(*sign == 1.0, |signs| signs.get(place) == Some(sign))
        };
        match found.iter().enumerate().position(|entry| !is_sign(entry)) {
            None => Ok(()),
            Some(place) => {
                let (file, field) = (tensor.info.file.to_string(), tensor.info.name.clone());
                let expected = "the signs of the rotation".to_owned();
                let found = format!("{} at {place}", found[place]);
                Err(CheckpointError::Field { file, field, expected, found })
            }
        }
    }
}

impl DataReader for SignsReader {
    fn next_read(&self) -> Option<ReadRequest> {
        self.all.next_read()
    }

    fn append(&mut self, bytes: &[u8], ready: &mut Vec<Tensor>) -> Result<(), CheckpointError> {
        let mut arrived = vec![];
        self.all.append(bytes, &mut arrived)?;
        for tensor in arrived {
            if is_signs(&tensor.info) {
                self.check(&tensor)?;
            } else {
                ready.push(tensor);
            }
        }
        Ok(())
    }

    fn tensors(&self) -> &[TensorInfo] {
        &self.others
    }

    /// Signs are wanted where their matrix is.
    fn select(&mut self, keep: &mut dyn FnMut(&TensorInfo) -> bool) {
        let mut kept = std::collections::BTreeSet::new();
        for info in &self.others {
            if keep(info) {
                kept.insert(info.name.clone());
            }
        }
        self.all.select(&mut |info| match info.name.strip_suffix(END) {
            None => kept.contains(&info.name),
            Some(matrix) => kept.contains(&format!("{matrix}.weight")),
        });
    }

    fn sort(&mut self, key: &mut dyn FnMut(&TensorInfo) -> usize) {
        self.all.sort(key);
        self.others = self.all.tensors().iter().filter(|info| !is_signs(info)).cloned().collect();
    }
}
