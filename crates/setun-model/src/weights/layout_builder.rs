//! Numbers of a model's weights, and the tensors that each one is made of.

use setun_checkpoint::{
    ModelConfig,
    config::{LinearClass, QuantizationMode},
};
use setun_ops::{
    WeightId, WeightSpec,
    op::{Bias, HeadShape, Norm},
    weight::ScaleKind,
};

use super::{
    infos::{StorageFormat, TensorInfos},
    targets::Targets,
};
use crate::{
    error::ModelError,
    families::Family,
    layout::{HeadNorms, LayerLayout, Layout, LinearLayout},
};

/// Numbers the weights, and records which tensor goes where.
pub(super) struct LayoutBuilder<'a> {
    config: &'a ModelConfig,
    family: &'a Family,
    infos: &'a TensorInfos<'a>,
    specs: Vec<WeightSpec>,
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
        Self { config, family, infos, specs: vec![], targets: Targets::default() }
    }

    pub(super) fn build(mut self, positions: usize) -> Result<(Layout, Targets), ModelError> {
        let (config, family) = (self.config, self.family);
        let embedding = self.table(family.embedding)?;
        let rope = self.add(WeightSpec::Rope { positions, head_dim: config.head_dim });
        let layers =
            (0..config.layers.len()).map(|layer| self.layer(layer)).collect::<Result<_, _>>()?;
        let final_norm = self.norm(family.final_norm, config.hidden_size, config.norm_eps)?;
        let head = if config.tied_head { embedding } else { self.table(family.head)? };
        let heads =
            HeadShape { heads: config.heads, kv_heads: config.kv_heads, head_dim: config.head_dim };
        let layout = Layout {
            specs: self.specs,
            embedding,
            rope,
            layers,
            final_norm,
            head,
            heads,
            activation_group: config.quantization.activation_group,
        };
        Ok((layout, self.targets))
    }

    fn layer(&mut self, layer: usize) -> Result<LayerLayout, ModelError> {
        let (config, family) = (self.config, self.family);
        let name = |pattern: &str| pattern.replace("{}", &layer.to_string());
        let (hidden, ffn, eps) = (config.hidden_size, config.ffn_size, config.norm_eps);
        let (queries, kv) = (config.query_width(), config.kv_width());
        let (attention_bias, mlp_bias) = (config.attention_bias, config.mlp_bias);
        let (q, k, v) = (name(family.query), name(family.key), name(family.value));
        let parts = [(q.as_str(), queries), (k.as_str(), kv), (v.as_str(), kv)];

        let input_norm = self.norm(&name(family.input_norm), hidden, eps)?;
        let qkv = if config.quantization.linear_norm_eps.is_some() {
            let separate = parts
                .iter()
                .map(|part| self.linear(std::slice::from_ref(part), hidden, attention_bias));
            separate.collect::<Result<_, _>>()?
        } else {
            vec![self.linear(&parts, hidden, attention_bias)?]
        };
        let head_norms = if config.head_norms {
            let query = self.norm(&name(family.query_norm), config.head_dim, eps)?;
            Some(HeadNorms { query, key: self.norm(&name(family.key_norm), config.head_dim, eps)? })
        } else {
            None
        };
        let attention_sub_norm = self.sub_norm(layer, |f| f.attention_sub_norm, queries)?;
        let output = self.linear(&[(&name(family.output), hidden)], queries, attention_bias)?;
        let post_attention_norm = self.norm(&name(family.post_attention_norm), hidden, eps)?;
        let gate = self.linear(&[(&name(family.gate), ffn)], hidden, mlp_bias)?;
        let up = self.linear(&[(&name(family.up), ffn)], hidden, mlp_bias)?;
        let ffn_sub_norm = self.sub_norm(layer, |f| f.ffn_sub_norm, ffn)?;
        let down = self.linear(&[(&name(family.down), hidden)], ffn, mlp_bias)?;
        Ok(LayerLayout {
            input_norm,
            qkv,
            head_norms,
            attention_sub_norm,
            output,
            post_attention_norm,
            gate,
            up,
            ffn_sub_norm,
            down,
        })
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
        Ok(LinearLayout { names, norm, weight, bias, outputs })
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
        let gain = self.add(WeightSpec::Vector { len: width });
        self.targets.add_vector(name, gain, width, self.infos)?;
        Ok(Norm { gain, eps })
    }

    fn table(&mut self, name: &str) -> Result<WeightId, ModelError> {
        let (rows, columns) = (self.config.vocab_size, self.config.hidden_size);
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
