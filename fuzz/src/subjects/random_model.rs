//! A checkpoint of a random shape with random weights, as Hugging Face's files.

use std::{collections::BTreeMap, fmt::Write};

use setun::ops::random::Random;

use super::input::Input;

const CONFIG: &str = "config.json";
const WEIGHTS: &str = "model.safetensors";

/// Sizes of a model.
pub struct Shape {
    /// Width of the hidden state.
    pub hidden: usize,
    /// Width of the feed-forward part.
    pub ffn: usize,
    /// Heads of queries.
    pub heads: usize,
    /// Heads of keys and values.
    pub kv_heads: usize,
    /// Width of a head.
    pub head: usize,
    /// Layers.
    pub layers: usize,
    /// Tokens.
    pub vocabulary: usize,
    /// Whether the embedding is the head, too.
    pub tied: bool,
    /// Activation of the feed-forward part, as configurations name it.
    pub activation: &'static str,
}

/// Files of a model by name; their weights follow from the seed.
#[must_use]
pub fn files(shape: &Shape, seed: u64) -> BTreeMap<&'static str, Vec<u8>> {
    let weights = safetensors(&shape.tensors(), &mut Random::new(seed));
    BTreeMap::from([(CONFIG, shape.config().into_bytes()), (WEIGHTS, weights)])
}

impl Shape {
    /// Small sizes that an input chooses.
    #[must_use]
    pub fn choose(input: &mut Input<'_>) -> Self {
        let kv_heads = input.pick(&[1, 2]);
        let heads = kv_heads * input.pick(&[1, 2, 3]);
        let head = input.pick(&[8, 10, 16, 32, 48, 50, 64]);
        Self {
            hidden: heads * head,
            ffn: input.pick(&[12, 48, 130, 256, 320]),
            heads,
            kv_heads,
            head,
            layers: input.between(1, 2),
            vocabulary: input.between(2, 300),
            tied: input.pick(&[true, false]),
            activation: input.pick(&["relu2", "silu"]),
        }
    }

    fn config(&self) -> String {
        let Self { hidden, ffn, heads, kv_heads, head, layers, vocabulary, tied, activation } =
            self;
        format!(
            r#"{{"model_type":"bitnet","hidden_size":{hidden},"intermediate_size":{ffn},
            "num_attention_heads":{heads},"num_key_value_heads":{kv_heads},"head_dim":{head},
            "num_hidden_layers":{layers},"vocab_size":{vocabulary},"hidden_act":"{activation}",
            "max_position_embeddings":128,"tie_word_embeddings":{tied},"quantization_config":
            {{"quant_method":"bitnet","linear_class":"autobitlinear","quantization_mode":"online"}}}}"#
        )
    }

    /// Names and shapes of all tensors.
    fn tensors(&self) -> Vec<(String, Vec<usize>)> {
        let (query, key) = (self.heads * self.head, self.kv_heads * self.head);
        let mut tensors = vec![
            ("model.embed_tokens".to_owned(), vec![self.vocabulary, self.hidden]),
            ("model.norm".to_owned(), vec![self.hidden]),
        ];
        if !self.tied {
            tensors.push(("lm_head".to_owned(), vec![self.vocabulary, self.hidden]));
        }
        for layer in 0..self.layers {
            let parts = [
                ("input_layernorm", vec![self.hidden]),
                ("post_attention_layernorm", vec![self.hidden]),
                ("self_attn.attn_sub_norm", vec![query]),
                ("mlp.ffn_sub_norm", vec![self.ffn]),
                ("self_attn.q_proj", vec![query, self.hidden]),
                ("self_attn.k_proj", vec![key, self.hidden]),
                ("self_attn.v_proj", vec![key, self.hidden]),
                ("self_attn.o_proj", vec![self.hidden, query]),
                ("mlp.gate_proj", vec![self.ffn, self.hidden]),
                ("mlp.up_proj", vec![self.ffn, self.hidden]),
                ("mlp.down_proj", vec![self.hidden, self.ffn]),
            ];
            tensors
                .extend(parts.map(|(name, shape)| (format!("model.layers.{layer}.{name}"), shape)));
        }
        tensors
    }
}

/// A file of these tensors in bfloat16: values of one magnitude each, some of them zero.
fn safetensors(tensors: &[(String, Vec<usize>)], random: &mut Random) -> Vec<u8> {
    let (mut header, mut data) = (String::new(), vec![]);
    for (name, shape) in tensors {
        let start = data.len();
        let values = random.floats(shape.iter().product());
        data.extend(values.iter().flat_map(|value| value.to_le_bytes()[2..].to_owned()));
        let separator = if header.is_empty() { '{' } else { ',' };
        let end = data.len();
        let _ = write!(
            header,
            r#"{separator}"{name}.weight":{{"dtype":"BF16","shape":{shape:?},"data_offsets":[{start},{end}]}}"#
        );
    }
    header.push('}');
    let length = (header.len() as u64).to_le_bytes();
    [&length[..], header.as_bytes(), &data].concat()
}
