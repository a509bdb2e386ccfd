//! `model.safetensors.index.json`: which shard holds which tensor.

use serde::Deserialize;

use crate::{
    error::CheckpointError,
    json::{self, Pairs},
    tensor::TensorInfo,
};

/// Ending of every shard's name.
const EXTENSION: &str = ".safetensors";

/// An index, checked: names of shards are plain.
#[derive(Debug)]
pub(crate) struct Index {
    file: String,
    weights: Vec<(String, String)>, // tensor, shard
}

#[derive(Deserialize)]
struct RawIndex {
    weight_map: Pairs<String>,
}

impl Index {
    pub(crate) fn parse(file: &str, bytes: &[u8]) -> Result<Self, CheckpointError> {
        let index: RawIndex = json::read(file, bytes)?;
        let weights = index.weight_map.0;
        for (_, shard) in &weights {
            let parts = [':', '/', '\\', '\0'];
            if !shard.ends_with(EXTENSION) || shard.starts_with('.') || shard.contains(parts) {
                let (file, found) = (file.to_owned(), shard.clone());
                return Err(CheckpointError::ShardName { file, found });
            }
        }
        Ok(Self { file: file.to_owned(), weights })
    }

    /// Names of the shards, in order.
    pub(crate) fn shards(&self) -> Vec<String> {
        let mut shards: Vec<_> = self.weights.iter().map(|(_, shard)| shard.clone()).collect();
        shards.sort_unstable();
        shards.dedup();
        shards
    }

    /// Every tensor must be where the index says.
    pub(crate) fn check(&self, tensors: &[TensorInfo]) -> Result<(), CheckpointError> {
        let mut found: Vec<_> = tensors.iter().map(|info| (&*info.name, &*info.file)).collect();
        found.sort_unstable();
        for (tensor, shard) in &self.weights {
            if found.binary_search(&(tensor.as_str(), shard.as_str())).is_err() {
                let (index, tensor, file) = (self.file.clone(), tensor.clone(), shard.clone());
                return Err(CheckpointError::NotInShard { index, tensor, file });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(shard: &str) -> Result<Index, CheckpointError> {
        let text = serde_json::json!({ "weight_map": { "a": shard } }).to_string();
        Index::parse("model.safetensors.index.json", text.as_bytes())
    }

    #[test]
    fn shards_lie_beside_the_index() {
        assert_eq!(parse("model-1.safetensors").unwrap().shards(), ["model-1.safetensors"]);
        for bad in [
            "../a.safetensors",
            "/etc/a.safetensors",
            "a/b.safetensors",
            "c:a.safetensors",
            "a\\b.safetensors",
            "..safetensors",
            ".safetensors",
            "a\0.safetensors",
            "https://a.b/c.safetensors",
            "model.bin",
            "",
        ] {
            let error = parse(bad).err().unwrap();
            assert!(matches!(error, CheckpointError::ShardName { .. }), "{bad}: {error}");
        }
    }
}
