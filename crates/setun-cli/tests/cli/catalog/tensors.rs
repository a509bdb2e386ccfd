//! Tensors of a catalog entry's configuration, with bytes that repeat.

use serde_json::{Value, json};

/// Codes of 2 bits from 0 to 2, four a byte.
const CODES: [u8; 3] = [0b00_01_10_01, 0b10_00_01_01, 0b01_10_10_00];

/// How an entry's weights are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Storage {
    /// Codes, and a scale of each matrix.
    Packed,
    /// Floats of this type that are rounded at load.
    Master(&'static str),
    /// Floats of this type, each a code times a scale.
    Ternary(&'static str),
}

impl Storage {
    /// What a configuration says.
    pub(super) fn of(config: &Value) -> Self {
        let quantization = &config["quantization_config"];
        if quantization["quantization_mode"] == "online" {
            Self::Master("BF16")
        } else if quantization["quant_method"] == "bitnet" {
            Self::Packed
        } else if config["weight_bits"] == 1 {
            Self::Master("F32")
        } else {
            Self::Ternary("F16")
        }
    }

    /// The type of what is no matrix of a layer.
    fn floats(self) -> &'static str {
        match self {
            Self::Packed => "BF16",
            Self::Master(dtype) | Self::Ternary(dtype) => dtype,
        }
    }
}

/// A tensor whose bytes are a pattern, again and again.
#[derive(Clone, Debug)]
pub(super) struct Tensor {
    pub(super) name: String,
    pub(super) dtype: &'static str,
    pub(super) shape: Vec<u64>,
    pub(super) pattern: Vec<u8>,
}

impl Tensor {
    pub(super) fn elements(&self) -> u64 {
        self.shape.iter().product()
    }

    /// Its numbers as `f32`.
    pub(super) fn f32_pattern(&self) -> Vec<u8> {
        if self.dtype == "F32" { self.pattern.clone() } else { floats("F32", &[1.0]) }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.elements() * width(self.dtype)
    }
}

/// Bytes of an element.
fn width(dtype: &str) -> u64 {
    match dtype {
        "U8" => 1,
        "F32" => 4,
        _ => 2,
    }
}

/// Numbers as floats of a type.
fn floats(dtype: &str, numbers: &[f32]) -> Vec<u8> {
    let bytes = |number: &f32| match dtype {
        "F32" => number.to_le_bytes().to_vec(),
        "BF16" => half::bf16::from_f32(*number).to_le_bytes().to_vec(),
        _ => half::f16::from_f32(*number).to_le_bytes().to_vec(),
    };
    numbers.iter().flat_map(bytes).collect()
}

/// Sizes in a configuration.
pub(super) struct Sizes {
    pub(super) hidden: u64,
    pub(super) ffn: u64,
    pub(super) layers: u64,
    pub(super) heads: u64,
    pub(super) kv_heads: u64,
    pub(super) head_dim: u64,
    pub(super) vocab: u64,
    /// Of a hybrid model.
    pub(super) net: Option<NetSizes>,
}

/// Heads of the delta nets of a configuration.
#[derive(Clone, Copy)]
pub(super) struct NetSizes {
    pub(super) key_heads: u64,
    pub(super) value_heads: u64,
    /// Width of a head.
    pub(super) head: u64,
    pub(super) kernel: u64,
    /// Every layer of this number attends.
    pub(super) interval: u64,
}

impl NetSizes {
    fn of(config: &Value) -> Option<Self> {
        let size = |name: &str| config[name].as_u64();
        Some(Self {
            key_heads: size("linear_num_key_heads")?,
            value_heads: size("linear_num_value_heads")?,
            head: size("linear_value_head_dim")?,
            kernel: size("linear_conv_kernel_dim")?,
            interval: size("full_attention_interval")?,
        })
    }

    pub(super) fn value_width(&self) -> u64 {
        self.value_heads * self.head
    }

    fn is_net(&self, layer: u64) -> bool {
        !(layer + 1).is_multiple_of(self.interval)
    }
}

impl Sizes {
    pub(super) fn of(config: &Value) -> Self {
        let size = |name: &str| config[name].as_u64().expect("a size");
        let (hidden, heads) = (size("hidden_size"), size("num_attention_heads"));
        Self {
            hidden,
            ffn: size("intermediate_size"),
            layers: size("num_hidden_layers"),
            heads,
            kv_heads: size("num_key_value_heads"),
            head_dim: config["head_dim"].as_u64().unwrap_or(hidden / heads),
            vocab: size("vocab_size"),
            net: NetSizes::of(config),
        }
    }
}

/// All tensors of a configuration in Hugging Face's layout.
pub(super) fn tensors(config: &Value) -> Vec<Tensor> {
    let (sizes, storage) = (Sizes::of(config), Storage::of(config));
    let mut list = List { storage, tensors: vec![] };
    let Sizes { hidden, ffn, heads, kv_heads, head_dim, vocab, .. } = sizes;
    let (wide, narrow) = (heads * head_dim, kv_heads * head_dim);
    let gated = if sizes.net.is_some() { 2 * wide } else { wide };
    list.table("model.embed_tokens.weight", vocab, hidden);
    for layer in 0..sizes.layers {
        let name = |part: &str| format!("model.layers.{layer}.{part}");
        let net = sizes.net.filter(|net| net.is_net(layer));
        let norms = norms(config, hidden, ffn, head_dim);
        for (part, width) in norms.into_iter().take(if net.is_some() { 2 } else { usize::MAX }) {
            list.norm(&name(part), width);
        }
        let attention = [
            ("self_attn.q_proj", gated, hidden),
            ("self_attn.k_proj", narrow, hidden),
            ("self_attn.v_proj", narrow, hidden),
            ("self_attn.o_proj", hidden, wide),
        ];
        match net {
            Some(net) => list.delta_net(layer, hidden, net),
            None => list.matrices(layer, &attention),
        }
        let feed_forward = [
            ("mlp.gate_proj", ffn, hidden),
            ("mlp.up_proj", ffn, hidden),
            ("mlp.down_proj", hidden, ffn),
        ];
        list.matrices(layer, &feed_forward);
    }
    list.norm("model.norm.weight", hidden);
    if config["tie_word_embeddings"] == false {
        list.table("lm_head.weight", vocab, hidden);
    }
    list.tensors
}

/// Norms of a layer and their widths, by architecture.
fn norms(config: &Value, hidden: u64, ffn: u64, head_dim: u64) -> Vec<(&'static str, u64)> {
    let mut norms =
        vec![("input_layernorm.weight", hidden), ("post_attention_layernorm.weight", hidden)];
    norms.extend(match config["architectures"][0].as_str().expect("an architecture") {
        "BitNetForCausalLM" => {
            vec![("self_attn.attn_sub_norm.weight", hidden), ("mlp.ffn_sub_norm.weight", ffn)]
        }
        "BitnetForCausalLM" => {
            vec![("self_attn.inner_attn_ln.weight", hidden), ("mlp.ffn_layernorm.weight", ffn)]
        }
        "Qwen3ForCausalLM" | "Qwen3_5ForCausalLM" => {
            vec![("self_attn.q_norm.weight", head_dim), ("self_attn.k_norm.weight", head_dim)]
        }
        _ => vec![],
    });
    norms
}

struct List {
    storage: Storage,
    tensors: Vec<Tensor>,
}

impl List {
    fn push(&mut self, name: &str, dtype: &'static str, shape: &[u64], pattern: Vec<u8>) {
        self.tensors.push(Tensor { name: name.into(), dtype, shape: shape.to_vec(), pattern });
    }

    fn table(&mut self, name: &str, rows: u64, columns: u64) {
        let dtype = self.storage.floats();
        let numbers = floats(dtype, &[0.5, -0.25, 0.125, 0.75, -0.5, 0.0, -1.0]);
        self.push(name, dtype, &[rows, columns], numbers);
    }

    fn norm(&mut self, name: &str, width: u64) {
        let dtype = self.storage.floats();
        self.push(name, dtype, &[width], floats(dtype, &[1.0]));
    }

    fn delta_net(&mut self, layer: u64, hidden: u64, net: NetSizes) {
        let (values, channels) =
            (net.value_width(), net.value_width() + 2 * net.key_heads * net.head);
        self.matrices(
            layer,
            &[
                ("linear_attn.in_proj_qkv", channels, hidden),
                ("linear_attn.in_proj_z", values, hidden),
                ("linear_attn.in_proj_b", net.value_heads, hidden),
                ("linear_attn.in_proj_a", net.value_heads, hidden),
                ("linear_attn.out_proj", hidden, values),
            ],
        );
        let name = |part: &str| format!("model.layers.{layer}.linear_attn.{part}");
        let taps = floats("F32", &[0.25, 0.5]);
        self.push(&name("conv1d.weight"), "F32", &[channels, net.kernel], taps);
        self.push(&name("dt_bias"), "F32", &[net.value_heads], floats("F32", &[-4.0]));
        self.push(&name("A_log"), "F32", &[net.value_heads], floats("F32", &[-1.0]));
        self.norm(&name("norm.weight"), net.head);
    }

    fn matrices(&mut self, layer: u64, matrices: &[(&str, u64, u64)]) {
        for (part, rows, columns) in matrices {
            self.matrix(&format!("model.layers.{layer}.{part}"), *rows, *columns);
        }
    }

    fn matrix(&mut self, name: &str, rows: u64, columns: u64) {
        let weight = format!("{name}.weight");
        match self.storage {
            Storage::Packed => {
                self.push(&weight, "U8", &[rows / 4, columns], CODES.to_vec());
                self.push(&format!("{weight}_scale"), "BF16", &[1], floats("BF16", &[2.0]));
            }
            Storage::Master(dtype) => {
                let numbers = floats(dtype, &[0.06, -0.04, 0.001, 0.05, -0.07]);
                self.push(&weight, dtype, &[rows, columns], numbers);
            }
            Storage::Ternary(dtype) => {
                let numbers = floats(dtype, &[0.05, 0.0, -0.05]);
                self.push(&weight, dtype, &[rows, columns], numbers);
            }
        }
    }
}

/// Parameters of a model: scales count as none, packed codes as four a byte.
pub(super) fn parameters(tensors: &[Tensor]) -> u64 {
    let of = |tensor: &Tensor| match tensor.dtype {
        _ if tensor.name.ends_with("_scale") => 0,
        "U8" => 4 * tensor.elements(),
        _ => tensor.elements(),
    };
    tensors.iter().map(of).sum()
}

/// The header of a safetensors file.
pub(super) fn safetensors_header(tensors: &[Tensor]) -> Vec<u8> {
    let mut offset = 0;
    let mut fields = serde_json::Map::new();
    fields.insert("__metadata__".into(), json!({"format": "pt"}));
    for tensor in tensors {
        let end = offset + tensor.bytes();
        let entry = json!({
            "dtype": tensor.dtype,
            "shape": tensor.shape,
            "data_offsets": [offset, end],
        });
        fields.insert(tensor.name.clone(), entry);
        offset = end;
    }
    let mut text = Value::Object(fields).to_string();
    text.push_str(&" ".repeat(text.len().next_multiple_of(8) - text.len()));
    let mut header = (text.len() as u64).to_le_bytes().to_vec();
    header.extend_from_slice(text.as_bytes());
    header
}
