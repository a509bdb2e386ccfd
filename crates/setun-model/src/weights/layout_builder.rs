//! Numbers of a model's weights, and the tensors that each one is made of.

use std::collections::BTreeMap;

use setun_checkpoint::{
    ModelConfig,
    config::{Hadamard, LinearClass, Mixer, QuantizationMode},
    dtype,
};
use setun_ops::{
    HAS_RECURRENT, OpsError, WeightId, WeightSpec,
    delta_net::DeltaNetShape,
    op::{Bias, DeltaNetWeights, HeadShape, Norm},
    weight::ScaleKind,
};

use super::{
    infos::{StorageFormat, TensorInfos},
    orders::{gates_last, grouped_blocks},
    targets::Targets,
    vectors::VectorForm,
};
use crate::{
    cache_spec::canonical,
    error::ModelError,
    families::Family,
    layout::{
        AttentionLayout, DeltaNetLayout, GatesLayout, HeadNorms, LayerLayout, Layout, LinearLayout,
        MixerLayout, Rotation,
    },
};

/// Numbers the weights, and records which tensor goes where.
pub(super) struct LayoutBuilder<'a> {
    config: &'a ModelConfig,
    family: &'a Family,
    infos: &'a TensorInfos<'a>,
    specs: Vec<WeightSpec>,
    signs: BTreeMap<usize, WeightId>, // by width
    pub(super) targets: Targets,
}

/// Names and output counts of matrices that share an input and become one.
type Stack<'a> = &'a [(&'a str, usize)];

impl<'a> LayoutBuilder<'a> {
    pub(super) fn new(
        config: &'a ModelConfig,
        family: &'a Family,
        infos: &'a TensorInfos<'a>,
    ) -> Self {
        let (specs, signs, targets) = (vec![], BTreeMap::new(), Targets::default());
        Self { config, family, infos, specs, signs, targets }
    }

    /// The layout, the tensors' targets, and the weights that are signs of inputs of a width.
    pub(super) fn build(
        mut self,
        positions: usize,
    ) -> Result<(Layout, Targets, BTreeMap<usize, WeightId>), ModelError> {
        let (config, family) = (self.config, self.family);
        let embedding = self.table(family.embedding)?;
        let rope = self.add(WeightSpec::Rope { positions, head_dim: config.rope.dimensions });
        let layers =
            (0..config.layers.len()).map(|layer| self.layer(layer)).collect::<Result<_, _>>()?;
        let final_norm = self.norm(family.final_norm, config.hidden_size, config.norm_eps)?;
        let head = if config.tied_head { embedding } else { self.table(family.head)? };
        let is_rotated = config.hadamard.as_ref().is_some_and(|rotation| rotation.embedding);
        let embedding_rotation = self.rotation_of_width(config.hidden_size);
        let layout = Layout {
            embedding,
            rope,
            layers,
            final_norm,
            head,
            heads: HeadShape {
                heads: config.heads,
                kv_heads: config.kv_heads,
                head_dim: config.head_dim,
            },
            attention_gate: config.attention_gate,
            embedding_rotation: embedding_rotation.filter(|_| is_rotated),
            head_rotation: self.rotation(HEAD, config.hidden_size),
            activation_group: config.quantization.activation_group,
            specs: self.specs,
        };
        Ok((layout, self.targets, self.signs))
    }

    fn layer(&mut self, layer: usize) -> Result<LayerLayout, ModelError> {
        let (config, family, mixer) = (self.config, self.family, self.config.layers[layer]);
        let name = |pattern: &str| pattern.replace("{}", &layer.to_string());
        let (hidden, ffn, eps) = (config.hidden_size, config.ffn_size, config.norm_eps);
        self.targets.begin_layer(u8::from(mixer != Mixer::Attention));
        let input_norm = self.norm(&name(family.input_norm), hidden, eps)?;
        let (mixer, output) = match mixer {
            Mixer::Attention => self.attention(layer)?,
            Mixer::DeltaNet(shape) => self.delta_net(layer, shape)?,
        };
        let mlp_bias = config.mlp_bias;
        let post_attention_norm = self.norm(&name(family.post_attention_norm), hidden, eps)?;
        let gate = self.linear(&[(&name(family.gate), ffn)], hidden, mlp_bias)?;
        let up = self.linear(&[(&name(family.up), ffn)], hidden, mlp_bias)?;
        let ffn_sub_norm = self.sub_norm(layer, |f| f.ffn_sub_norm, ffn)?;
        let down = self.linear(&[(&name(family.down), hidden)], ffn, mlp_bias)?;
        Ok(LayerLayout {
            input_norm,
            mixer,
            output,
            post_attention_norm,
            gate,
            up,
            ffn_sub_norm,
            down,
        })
    }

    fn attention(&mut self, layer: usize) -> Result<(MixerLayout, LinearLayout), ModelError> {
        let (config, family) = (self.config, self.family);
        let name = |pattern: &str| pattern.replace("{}", &layer.to_string());
        let (hidden, eps, has_bias) = (config.hidden_size, config.norm_eps, config.attention_bias);
        let (queries, kv) = (config.query_width(), config.kv_width());
        let gated = if config.attention_gate { 2 * queries } else { queries };
        let (q, k, v) = (name(family.query), name(family.key), name(family.value));
        let parts = [(q.as_str(), gated), (k.as_str(), kv), (v.as_str(), kv)];
        let own_norms = config.quantization.linear_norm_eps.is_some();
        let alike = self.is_alike(&parts.map(|part| part.0), hidden);
        if config.attention_gate && (own_norms || !alike) {
            return Err(ModelError::Unsupported {
                what: "attention with gates",
                found: format!("`{q}` apart from `{k}` and `{v}`"),
                supported: "queries, keys and values with one norm and one rotation",
            });
        }
        let mut qkv = if own_norms || !alike {
            let separate =
                parts.iter().map(|part| self.linear(std::slice::from_ref(part), hidden, has_bias));
            separate.collect::<Result<Vec<_>, _>>()?
        } else {
            vec![self.linear(&parts, hidden, has_bias)?]
        };
        in_columns(&mut qkv);
        if config.attention_gate {
            let order = gates_last(config.heads, config.head_dim, kv);
            self.targets.set_order(order);
        }
        let head_norms = if config.head_norms {
            let query = self.norm(&name(family.query_norm), config.head_dim, eps)?;
            Some(HeadNorms { query, key: self.norm(&name(family.key_norm), config.head_dim, eps)? })
        } else {
            None
        };
        let sub_norm = self.sub_norm(layer, |f| f.attention_sub_norm, queries)?;
        let output = self.linear(&[(&name(family.output), hidden)], queries, has_bias)?;
        Ok((MixerLayout::Attention(AttentionLayout { qkv, head_norms, sub_norm }), output))
    }

    fn delta_net(
        &mut self,
        layer: usize,
        shape: DeltaNetShape,
    ) -> Result<(MixerLayout, LinearLayout), ModelError> {
        if !HAS_RECURRENT {
            return Err(OpsError::NoStates.into());
        }
        let (hidden, family) = (self.config.hidden_size, self.family);
        let name = |pattern: &str| pattern.replace("{}", &layer.to_string());
        let (qkv, z) = (name(family.net_input), name(family.net_z));
        let parts = [(qkv.as_str(), shape.channels()), (z.as_str(), shape.value_width())];
        let mut input = if self.is_alike(&[&qkv, &z], hidden) {
            vec![self.linear(&parts, hidden, false)?]
        } else {
            vec![self.linear(&parts[..1], hidden, false)?, self.linear(&parts[1..], hidden, false)?]
        };
        in_columns(&mut input);
        let gates = self.gates(layer, shape)?;
        let (decay, decay_form) = match self.infos.get(&name(family.net_decay)) {
            Some(_) => (name(family.net_decay), VectorForm::Plain),
            None => (name(family.net_log_decay), VectorForm::NegatedLogarithm),
        };
        let taps = (shape.kernel * shape.channels(), VectorForm::Taps(shape.kernel));
        let conv = self.vector(&name(family.net_conv), taps)?;
        let decay = self.vector(&decay, (shape.value_heads, decay_form))?;
        let dt_bias = (shape.value_heads, VectorForm::Plain);
        let dt_bias = self.vector(&name(family.net_dt_bias), dt_bias)?;
        let gain = self.vector(&name(family.net_norm), (shape.value_dim, VectorForm::Plain))?;
        let norm = Norm { gain, eps: self.config.norm_eps };
        let output =
            self.linear(&[(&name(family.net_output), hidden)], shape.value_width(), false)?;
        let weights = DeltaNetWeights { conv, decay, dt_bias, norm };
        let stored = shape;
        let shape = canonical(stored);
        if shape.output_order != stored.output_order {
            self.targets.set_column_blocks(grouped_blocks(stored), stored.value_dim);
        }
        Ok((MixerLayout::DeltaNet(DeltaNetLayout { shape, input, gates, weights }), output))
    }

    /// The matrices of `b` and `a`: where they are stored as floats, only these show of which form.
    fn gates(&mut self, layer: usize, shape: DeltaNetShape) -> Result<GatesLayout, ModelError> {
        let (hidden, family, heads) = (self.config.hidden_size, self.family, shape.value_heads);
        let names = [family.net_b, family.net_a].map(|gate| gate.replace("{}", &layer.to_string()));
        let tensors = names.each_ref().map(|name| format!("{name}{}", family.weight));
        let is_float = |name: &String| {
            self.infos.get(name).is_some_and(|info| dtype::FLOATS.contains(&info.dtype))
        };
        let column = shape.channels() + shape.value_width();
        let [b, a] = &names;
        if !tensors.iter().any(is_float) {
            let mut ternary = self.linear(&[(b, heads), (a, heads)], hidden, false)?;
            ternary.column = column;
            return Ok(GatesLayout { ternary, dense: None });
        }
        let (rows, grouped) = (2 * heads, false);
        let weight = self.add(WeightSpec::Ternary { rows, columns: hidden, grouped });
        let dense = [0; 2].map(|_| self.add(WeightSpec::Dense { rows: heads, columns: hidden }));
        self.targets.add_gates(weight, dense, &tensors, (heads, hidden), self.infos)?;
        let (norm, rotation, bias, names) = (None, None, None, names.to_vec());
        let ternary = LinearLayout { names, norm, rotation, weight, bias, outputs: rows, column };
        Ok(GatesLayout { ternary, dense: Some(dense) })
    }

    /// Whether the inputs of some linear layers are rotated alike.
    fn is_alike(&mut self, names: &[&str], columns: usize) -> bool {
        if !HAS_RECURRENT {
            return true; // without rotations
        }
        let mut rotations = names.iter().map(|name| self.rotation(name, columns));
        let first = rotations.next();
        rotations.all(|rotation| Some(rotation) == first)
    }

    /// The rotation of a linear layer's input.
    fn rotation(&mut self, name: &str, columns: usize) -> Option<Rotation> {
        let is_rotated = |rotation: &Hadamard| rotation.layers.contains(name);
        self.config.hadamard.as_ref().filter(|it| HAS_RECURRENT && is_rotated(it))?;
        self.rotation_of_width(columns)
    }

    fn rotation_of_width(&mut self, columns: usize) -> Option<Rotation> {
        let rotation = self.config.hadamard.as_ref().filter(|_| HAS_RECURRENT)?;
        let known = self.signs.get(&columns).copied();
        let signs = rotation.signs.contains_key(&columns).then(|| {
            known.unwrap_or_else(|| {
                let id = self.add(WeightSpec::Vector { len: columns });
                self.signs.insert(columns, id);
                id
            })
        });
        Some(Rotation { signs, block: rotation.block })
    }

    fn linear(
        &mut self,
        stack: Stack<'_>,
        columns: usize,
        has_bias: bool,
    ) -> Result<LinearLayout, ModelError> {
        let family = self.family;
        let norm = match self.config.quantization.linear_norm_eps {
            Some(eps) => {
                Some(self.norm(&format!("{}{}", stack[0].0, family.linear_norm), columns, eps)?)
            }
            None => None,
        };
        let outputs = stack.iter().map(|part| part.1).sum();
        let rotation = self.rotation(stack[0].0, columns);
        if norm.is_some() && rotation.is_some() {
            return Err(ModelError::Unsupported {
                what: "a linear layer",
                found: format!("`{}` with a norm of its own and a rotated input", stack[0].0),
                supported: "one of both",
            });
        }
        let weight = self.add(WeightSpec::Ternary { rows: outputs, columns, grouped: false });
        let form = self.form(stack)?;
        let bias = has_bias.then(|| Bias {
            weight: self.add(WeightSpec::Vector { len: outputs }),
            before_scale: form.has_scale_beside()
                && self.config.quantization.linear_class == LinearClass::AutoBitLinear,
        });
        let scales = self.targets.add_linear(
            weight,
            bias.map(|bias| bias.weight),
            stack,
            columns,
            family,
            &self.config.quantization,
            self.infos,
        )?;
        let grouped = matches!(scales, ScaleKind::ColumnGroups(_));
        self.specs[weight.0 as usize] = WeightSpec::Ternary { rows: outputs, columns, grouped };
        let names = stack.iter().map(|part| part.0.to_owned()).collect();
        Ok(LinearLayout { names, norm, rotation, weight, bias, outputs, column: 0 })
    }

    /// How the matrices of a stack are stored: all in one way. An `autobitlinear` with a stored
    /// scale adds its bias before it multiplies by it; one whose weights are quantized at load,
    /// and `bitlinear`, add it after.
    fn form(&self, stack: Stack<'_>) -> Result<StorageFormat, ModelError> {
        let mode = self.config.quantization.mode;
        let form = self.infos.form(stack[0].0, self.family, mode)?;
        self.refuse_unexplained(stack[0].0, form)?;
        for (name, _) in &stack[1..] {
            if self.infos.form(name, self.family, mode)? != form {
                return Err(ModelError::Unsupported {
                    what: "weights that share an input",
                    found: format!("`{}` and `{name}` stored in different ways", stack[0].0),
                    supported: "all packed, or all floats with or without a weight_scale",
                });
            }
        }
        Ok(form)
    }

    /// Refuses a scale of which nothing says what it does.
    fn refuse_unexplained(&self, name: &str, form: StorageFormat) -> Result<(), ModelError> {
        let mode = self.config.quantization.mode;
        if mode != QuantizationMode::FakeQuantized || !form.has_scale_beside() {
            return Ok(());
        }
        let found = "a weight_scale, but no quantization_config that says what it does";
        Err(ModelError::Unsupported {
            what: "a weight",
            found: format!("`{name}`: {found}"),
            supported: "a quantization_config of quant_method bitnet",
        })
    }

    /// A missing one is looked for by the names that it has in all families of the architecture.
    fn sub_norm(
        &mut self,
        layer: usize,
        pattern: impl Fn(&Family) -> &'static str,
        width: usize,
    ) -> Result<Option<Norm>, ModelError> {
        if !self.config.sub_norms {
            return Ok(None);
        }
        let name = |family: &Family| pattern(family).replace("{}", &layer.to_string());
        let own = name(self.family);
        let norm = self.norm(&own, width, self.config.norm_eps);
        if self.infos.find(&own).is_err() {
            let names: Vec<_> = [own].into_iter().chain(self.family.others().map(name)).collect();
            return Err(self.infos.missing(&names.join("` or `")).into());
        }
        norm.map(Some)
    }

    fn norm(&mut self, name: &str, width: usize, eps: f32) -> Result<Norm, ModelError> {
        let form = if self.config.unit_norms { VectorForm::UnitGain } else { VectorForm::Plain };
        Ok(Norm { gain: self.vector(name, (width, form))?, eps })
    }

    fn vector(
        &mut self,
        name: &str,
        (len, form): (usize, VectorForm),
    ) -> Result<WeightId, ModelError> {
        let id = self.add(WeightSpec::Vector { len });
        self.targets.add_vector(name, id, (len, form), self.infos)?;
        Ok(id)
    }

    fn table(&mut self, name: &str) -> Result<WeightId, ModelError> {
        self.matrix(name, (self.config.vocab_size, self.config.hidden_size))
    }

    /// A matrix whose products are those of floats.
    fn matrix(
        &mut self,
        name: &str,
        (rows, columns): (usize, usize),
    ) -> Result<WeightId, ModelError> {
        let id = self.add(WeightSpec::Dense { rows, columns });
        let mode = self.config.quantization.mode;
        self.targets.add_table(name, id, (rows, columns), mode, self.infos)?;
        Ok(id)
    }

    fn add(&mut self, spec: WeightSpec) -> WeightId {
        self.specs.push(spec);
        WeightId(u32::try_from(self.specs.len() - 1).expect("fewer than 2^32 weights"))
    }
}

/// The name of the head in a rotation.
const HEAD: &str = "lm_head";

/// Lets each layer write after the columns of the one before.
fn in_columns(linears: &mut [LinearLayout]) {
    let mut column = 0;
    for linear in linears {
        linear.column = column;
        column += linear.outputs;
    }
}
