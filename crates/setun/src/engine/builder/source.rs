//! What an engine starts from, once it is on its device.

use std::sync::Arc;

use setun_text::{ChatTemplate, SamplerOptions, Tokenizer};

use super::devices::{Failed, load};
use crate::{
    device::{Again, Device, DeviceOptions, Loaded, LoadedModel},
    error::Error,
    input::ModelInput,
    own_model::OwnModel,
    reader::Sketch,
};

/// A checkpoint, or a model of one's own.
pub(super) enum Source {
    Files(ModelInput),
    Own(Box<OwnModel>),
}

/// What is known of a model but for its weights.
pub(super) struct Facts {
    pub(super) name: String,
    pub(super) tokenizer: Option<Arc<dyn Tokenizer>>,
    pub(super) template: Option<Arc<ChatTemplate>>,
    pub(super) defaults: SamplerOptions,
    pub(super) eos_tokens: Vec<u32>,
    /// That a model counts itself which was read before.
    pub(super) load_seconds: f64,
    pub(super) sketch: Option<Sketch>,
}

/// A model on a device, and how to load it once more.
pub(super) type Placed = (LoadedModel, Option<Again>);

type Sources = (Facts, Vec<Placed>, DeviceOptions, Vec<Failed>);

impl Source {
    /// Loads it onto its devices; the options with those, and the devices that failed before.
    pub(super) async fn load(
        self,
        options: DeviceOptions,
        fallbacks: Vec<Device>,
    ) -> Result<Sources, Error> {
        match self {
            Self::Files(model) => {
                let (loaded, options, failed) = load(model, options, fallbacks).await?;
                let facts = loaded.first().map(Facts::of);
                let facts = facts.ok_or_else(|| Error::BadOption {
                    option: "device",
                    found: "none".into(),
                    expected: "a device or more".into(),
                })?;
                let placed = loaded.into_iter().map(|loaded| (loaded.placed, loaded.again));
                Ok((facts, placed.collect(), options, failed))
            }
            Self::Own(own) => {
                let OwnModel { model, name, tokenizer, template, eos_tokens, sampling } = *own;
                let facts = Facts {
                    name,
                    tokenizer,
                    template,
                    defaults: sampling,
                    eos_tokens,
                    load_seconds: 0.0,
                    sketch: None,
                };
                Ok((facts, vec![(OwnModel::placed(model), None)], options, vec![]))
            }
        }
    }
}

impl Facts {
    fn of(Loaded { about, sketch, .. }: &Loaded) -> Self {
        Self {
            name: about.name.clone(),
            tokenizer: about.tokenizer.clone(),
            template: about.template.clone(),
            defaults: about.defaults.clone(),
            eos_tokens: about.config.eos_tokens.clone(),
            load_seconds: about.load_seconds,
            sketch: Some(sketch.clone()),
        }
    }
}
