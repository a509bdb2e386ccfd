//! A smaller model beside the engine's own, which guesses what that one will say.

use setun_engine::{Error as EngineError, Replica, ReplicaDraft};

use super::EngineBuilder;
use crate::{
    custom_model::CustomModel,
    device::DeviceOptions,
    error::Error,
    load::{EngineSource, ModelInput},
};

impl EngineBuilder {
    /// A smaller model of the same vocabulary, which guesses tokens for generations with a
    /// [`lookahead`](crate::GenerateOptions::lookahead), in place of their own texts. It changes no
    /// text, sampled or not, and is on each of the engine's devices, with a cache of its own of as
    /// many positions. Where it fails, or memory is short, texts go on without it. Default: none.
    #[must_use]
    pub fn draft(mut self, model: impl Into<ModelInput>) -> Self {
        self.draft = Some(EngineSource::Checkpoint(Box::new(model.into())));
        self
    }

    /// [`draft`](Self::draft) with a custom model, for an engine on one device.
    #[must_use]
    pub fn custom_draft(mut self, model: CustomModel) -> Self {
        self.draft = Some(EngineSource::Custom(Box::new(model)));
        self
    }
}

/// Loads a draft for each of the models of an engine, if there is to be one.
pub(super) async fn load(
    draft: Option<EngineSource>,
    options: &DeviceOptions,
    replicas: &mut [Replica],
) -> Result<(), Error> {
    let Some(draft) = draft else { return Ok(()) };
    // These are the model's own.
    let options = DeviceOptions { weight_image: None, activation_group: None, ..options.clone() };
    let drafts = draft.load_draft(&options).await?;
    if drafts.len() != replicas.len() {
        let (found, expected) = (drafts.len().to_string(), replicas.len().to_string());
        return Err(EngineError::BadOption { option: "draft", found, expected }.into());
    }
    for (replica, Replica { model, reload, .. }) in replicas.iter_mut().zip(drafts) {
        replica.draft = Some(ReplicaDraft { model, reload });
    }
    Ok(())
}
