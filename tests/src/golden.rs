//! Reference outputs of transformers; see `fixtures/README.md`.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use safetensors::SafeTensors;
use serde::Deserialize;

use crate::fixture;

/// The models with reference outputs.
pub const MODELS: [&str; 10] = [
    "bitnet-h320-f432/packed",
    "bitnet-h64/master",
    "bitnet-h64/packed",
    "bitnet-hd128/packed",
    "bitnet-untied-dead/master",
    "bitnet-untied-dead/packed",
    "llama-bitlinear/master",
    "llama-bitlinear/packed",
    "llama-headdim-rope3/packed",
    "llama-rmsnorm-bias/packed",
];

/// The prompts of each model.
pub const PROMPTS: [&str; 6] = ["p1", "p7", "p33", "p130", "z7", "r24"];

/// One model's reference outputs.
pub struct Golden {
    /// The model's folder.
    pub folder: PathBuf,
    /// What is known of each prompt.
    pub prompts: BTreeMap<String, Prompt>,
    tensors: Tensors,
}

/// What `golden.json` says of a prompt.
#[derive(Debug, Deserialize)]
pub struct Prompt {
    /// Least distance of any scaled activation from a rounding tie.
    pub min_tie_distance_f64: f64,
    /// int8 codes in which transformers differs from a float64 evaluation.
    pub int8_differ_hf32_vs_f64: u64,
    /// int8 codes in which transformers differs from another float32 evaluation.
    pub int8_differ_hf32_vs_own_f32: u64,
    /// Greedy continuation.
    pub greedy: Vec<u32>,
    /// Best minus second logit of each step.
    pub greedy_margin: Vec<f32>,
    /// Greedy continuation up to and with an end token; of some prompts.
    pub greedy_with_eos: Option<WithEos>,
    /// Greedy continuation with a repetition penalty of 1.3; of some prompts.
    #[serde(rename = "greedy_repetition_penalty_1.3")]
    pub greedy_penalised: Option<Penalised>,
    /// The same where no three tokens come twice in a row.
    #[serde(rename = "greedy_no_repeat_ngram_3")]
    pub greedy_no_repeat: Option<Penalised>,
    /// How far logits of that continuation are from those of another float32 evaluation.
    pub greedy_one_pass_maxdiff_own_f32: Option<f64>,
    /// Texts of beam searches; of some prompts.
    #[serde(default)]
    pub beam: Vec<Searched>,
}

/// A continuation that ends with the end token.
#[derive(Debug, Deserialize)]
pub struct WithEos {
    /// The end token.
    pub eos: u32,
    /// The tokens, that one included if it came.
    pub tokens: Vec<u32>,
}

/// A continuation under a penalty.
#[derive(Debug, Deserialize)]
pub struct Penalised {
    /// The tokens.
    pub tokens: Vec<u32>,
    /// Best minus second logit of each step, after the penalty.
    pub margin: Vec<f32>,
}

/// The texts that a beam search finds.
#[derive(Debug, Deserialize)]
pub struct Searched {
    /// Beams, and texts.
    pub num_beams: usize,
    /// The power of the length by which scores are divided.
    pub length_penalty: f64,
    /// Whether the search ends once it has as many texts as beams.
    pub early_stopping: bool,
    /// Most tokens.
    pub max_new_tokens: usize,
    /// The end token, if there is one.
    pub eos: Option<u32>,
    /// The tokens of each text, an end token included; the best first.
    pub sequences: Vec<Vec<u32>>,
    /// Their scores.
    pub scores: Vec<f64>,
}

impl Prompt {
    /// Whether every int8 code is far enough from a tie to be decided.
    #[must_use]
    pub fn is_strict(&self) -> bool {
        self.int8_differ_hf32_vs_f64 == 0
            && self.int8_differ_hf32_vs_own_f32 == 0
            && self.min_tie_distance_f64 > 1e-4
    }
}

impl Golden {
    /// Reads a model's reference outputs.
    ///
    /// # Panics
    ///
    /// If they are not there or damaged.
    #[must_use]
    pub fn read(model: &str) -> Self {
        #[derive(Deserialize)]
        struct File {
            prompts: BTreeMap<String, Prompt>,
        }
        let folder = fixture("golden").join(model);
        let json = fs::read(folder.join("golden.json")).expect("golden.json");
        let File { prompts } = serde_json::from_slice(&json).expect("golden.json");
        let tensors = Tensors::read(&folder.join("golden.safetensors"));
        Self { folder, prompts, tensors }
    }

    /// A float tensor, if it is there.
    #[must_use]
    pub fn floats(&self, name: &str) -> Option<Vec<f32>> {
        self.tensors.floats(name)
    }

    /// An int8 tensor, if it is there.
    #[must_use]
    pub fn codes(&self, name: &str) -> Option<Vec<i8>> {
        self.tensors.codes(name)
    }

    /// Tokens or positions.
    ///
    /// # Panics
    ///
    /// If there is no such tensor.
    #[must_use]
    pub fn ids(&self, name: &str) -> Vec<u32> {
        self.tensors.ids(name)
    }
}

/// A safetensors file of reference values.
pub struct Tensors(Vec<u8>);

impl Tensors {
    /// Reads a file of the fixtures.
    ///
    /// # Panics
    ///
    /// If it is not there or damaged.
    #[must_use]
    pub fn read(path: &Path) -> Self {
        Self(fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display())))
    }

    fn tensor(&self, name: &str) -> Option<Vec<u8>> {
        let tensors = SafeTensors::deserialize(&self.0).expect("a safetensors file");
        Some(tensors.tensor(name).ok()?.data().to_vec())
    }

    /// Names of all tensors.
    ///
    /// # Panics
    ///
    /// If the file is damaged.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        let tensors = SafeTensors::deserialize(&self.0).expect("a safetensors file");
        tensors.names().into_iter().map(str::to_owned).collect()
    }

    /// An `F32` tensor, if it is there.
    #[must_use]
    pub fn floats(&self, name: &str) -> Option<Vec<f32>> {
        Some(bytemuck::allocation::pod_collect_to_vec(&self.tensor(name)?))
    }

    /// An `I8` tensor, if it is there.
    #[must_use]
    pub fn codes(&self, name: &str) -> Option<Vec<i8>> {
        Some(bytemuck::allocation::pod_collect_to_vec(&self.tensor(name)?))
    }

    /// An `I32` tensor of ids or positions.
    ///
    /// # Panics
    ///
    /// If there is no such tensor.
    #[must_use]
    pub fn ids(&self, name: &str) -> Vec<u32> {
        let bytes = self.tensor(name).unwrap_or_else(|| panic!("no tensor {name}"));
        let ids: Vec<i32> = bytemuck::allocation::pod_collect_to_vec(&bytes);
        ids.into_iter().map(i32::cast_unsigned).collect()
    }

    /// A `BF16` tensor, widened.
    #[must_use]
    pub fn bf16(&self, name: &str) -> Option<Vec<f32>> {
        let bits: Vec<u16> = bytemuck::allocation::pod_collect_to_vec(&self.tensor(name)?);
        Some(bits.into_iter().map(|bits| f32::from_bits(u32::from(bits) << 16)).collect())
    }
}

/// The largest difference of two rows.
///
/// # Panics
///
/// If they differ in length.
#[must_use]
pub fn max_difference(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len(), "rows of one length");
    a.iter()
        .zip(b)
        .map(|(a, b)| (a - b).abs())
        .fold(0.0, |max, d| if d > max || d.is_nan() { d } else { max })
}
