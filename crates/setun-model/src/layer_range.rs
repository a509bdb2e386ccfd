//! Which layers of a model are together on a backend.

use setun_ops::{WeightId, WeightSpec};

use crate::{
    error::ModelError,
    layout::{DeltaNetLayout, HeadNorms, LayerLayout, Layout, LinearLayout, MixerLayout, Rotation},
};

/// What a weight that a part does not need is in its layout: nothing that an operation could
/// name, and of no size to speak of.
pub(crate) const ABSENT: WeightSpec = WeightSpec::Vector { len: 1 };

/// Consecutive layers of a model. The first of several parts embeds, the last has the head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LayerRange {
    pub(crate) first: usize,
    pub(crate) layers: usize,
    pub(crate) of: usize, // layers of the model
}

impl LayerRange {
    /// All layers of a model.
    #[must_use]
    pub fn whole(layers: usize) -> Self {
        Self { first: 0, layers, of: layers }
    }

    /// The parts of a model of `of` layers, with this many layers each, in order.
    ///
    /// # Errors
    ///
    /// If a part is empty, or they have more or fewer layers together.
    pub fn cut(layers: &[usize], of: usize) -> Result<Vec<Self>, ModelError> {
        let mut first = 0;
        let part = |&layers: &usize| {
            if layers == 0 {
                let what = "layers of a stage, at least";
                return Err(ModelError::Stages { what, expected: 1, found: 0 });
            }
            let part = Self { first, layers, of };
            first = usize::saturating_add(first, layers);
            Ok(part)
        };
        let parts = layers.iter().map(part).collect::<Result<Vec<_>, _>>()?;
        check_sum(first, of)?;
        Ok(parts)
    }

    /// Checks that parts follow each other and are a whole model.
    ///
    /// # Errors
    ///
    /// If layers are missing or there twice.
    pub(crate) fn check(parts: &[Self]) -> Result<(), ModelError> {
        let mut next = 0;
        let of = parts.first().map_or(1, |part| part.of);
        for part in parts {
            for (what, expected, found) in [
                ("first layer of a stage", next, part.first),
                ("layers of the model that a stage is of", of, part.of),
            ] {
                if expected != found {
                    return Err(ModelError::Stages { what, expected, found });
                }
            }
            next += part.layers;
        }
        check_sum(next, of)
    }

    /// Number of layers.
    #[must_use]
    pub fn layers(&self) -> usize {
        self.layers
    }

    /// Whether it begins with tokens, which it embeds, and not with another part's hidden states.
    #[must_use]
    pub fn embeds(&self) -> bool {
        self.first == 0
    }

    /// Whether it ends with the head, and not with hidden states for another part.
    #[must_use]
    pub fn has_head(&self) -> bool {
        self.first + self.layers == self.of
    }

    /// Of each weight of the model, whether the part has use for it.
    #[must_use]
    pub fn needs(&self, whole: &Layout) -> Vec<bool> {
        self.layout(whole).needs
    }

    /// The layout of the part: its layers alone, and weights under the numbers that they have in
    /// the whole; those that it does not need are left out.
    pub(crate) fn layout(&self, whole: &Layout) -> RangeLayout {
        let mut layout = whole.clone();
        layout.layers.truncate(self.first + self.layers);
        layout.layers.drain(..self.first.min(layout.layers.len()));
        let mut needs = vec![false; whole.specs.len()];
        let mut need = |id: WeightId| needs[id.0 as usize] = true;
        need(layout.rope);
        let signs = |rotation: Option<Rotation>| rotation.and_then(|rotation| rotation.signs);
        if self.embeds() {
            need(layout.embedding);
            signs(layout.embedding_rotation).into_iter().for_each(&mut need);
        }
        if self.has_head() {
            need(layout.final_norm.gain);
            need(layout.head);
            signs(layout.head_rotation).into_iter().for_each(&mut need);
        }
        layout.layers.iter().flat_map(layer_weights).for_each(need);
        for (spec, needed) in layout.specs.iter_mut().zip(&needs) {
            if !needed {
                *spec = ABSENT;
            }
        }
        RangeLayout { layout, needs }
    }
}

/// The layout of a part.
pub(crate) struct RangeLayout {
    pub(crate) layout: Layout,
    /// By weight.
    pub(crate) needs: Vec<bool>,
}

fn check_sum(found: usize, expected: usize) -> Result<(), ModelError> {
    let what = "layers of all stages";
    if found == expected { Ok(()) } else { Err(ModelError::Stages { what, expected, found }) }
}

fn layer_weights(layer: &LayerLayout) -> Vec<WeightId> {
    let LayerLayout { input_norm, mixer, post_attention_norm, ffn_sub_norm, .. } = layer;
    let of_mixer = match mixer {
        MixerLayout::Attention(attention) => {
            let of_heads = attention.head_norms;
            let of_heads =
                of_heads.iter().flat_map(|HeadNorms { query, key }| [query.gain, key.gain]);
            of_heads.chain(attention.sub_norm.map(|norm| norm.gain)).collect::<Vec<_>>()
        }
        MixerLayout::DeltaNet(DeltaNetLayout { gates, weights, .. }) => {
            let of_net = [weights.conv, weights.decay, weights.dt_bias, weights.norm.gain];
            let of_gates = gates.dense.into_iter().flatten().chain([gates.ternary.weight]);
            of_gates.chain(of_net).collect()
        }
    };
    let norms = [Some(input_norm), Some(post_attention_norm), ffn_sub_norm.as_ref()];
    let norms = norms.into_iter().flatten().map(|norm| norm.gain);
    let linears = layer.linears().flat_map(|linear| {
        let LinearLayout { norm, rotation, weight, bias, .. } = linear;
        let gain = norm.map(|norm| norm.gain);
        let signs = rotation.and_then(|rotation| rotation.signs);
        [Some(*weight), gain, signs, bias.map(|bias| bias.weight)].into_iter().flatten()
    });
    norms.chain(of_mixer).chain(linears).collect()
}
