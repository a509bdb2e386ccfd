//! A smaller model beside the engine's own, which guesses what that one will say.

use setun_model::Model as Forward;

use super::{
    EngineBuilder, Limits, Owner,
    source::{Placed, Source},
};
use crate::{
    device::DeviceOptions, error::Error, input::ModelInput, own_model::OwnModel, owner::Drafter,
};

/// A draft on its device.
pub(super) type Draft = Placed;

impl EngineBuilder {
    /// A smaller model of the same vocabulary, which guesses tokens for generations with a
    /// [`lookahead`](crate::GenerateOptions::lookahead), in place of their own texts. It changes no
    /// text, sampled or not, and is on each of the engine's devices, with a cache of its own of as
    /// many positions. Where it fails, or memory is short, texts go on without it. Default: none.
    pub fn draft(mut self, model: impl Into<ModelInput>) -> Self {
        self.draft = Some(Source::Files(model.into()));
        self
    }

    /// [`draft`](Self::draft) with a model of one's own, for an engine on one device.
    pub fn own_draft(mut self, model: OwnModel) -> Self {
        self.draft = Some(Source::Own(Box::new(model)));
        self
    }
}

/// Loads a draft for each of the models of an engine, or none.
pub(super) async fn load(
    draft: Option<Source>,
    options: &DeviceOptions,
    models: &[Placed],
) -> Result<Vec<Option<Draft>>, Error> {
    let Some(draft) = draft else { return Ok(models.iter().map(|_| None).collect()) };
    let (_, drafts, ..) = draft.load(options.clone(), vec![]).await?;
    if drafts.len() != models.len() {
        let (found, expected) = (drafts.len().to_string(), format!("{}", models.len()));
        return Err(Error::BadOption { option: "draft", found, expected });
    }
    for ((model, _), (draft, _)) in models.iter().zip(&drafts) {
        let (expected, found) = (model.model.vocab_size(), draft.model.vocab_size());
        if expected != found {
            let what = "the vocabulary of a draft";
            return Err(Error::BatchShape { what, expected, found });
        }
    }
    Ok(drafts.into_iter().map(Some).collect())
}

/// Gives a draft to an owner, with a cache of as many positions as the owner's within its limits.
pub(super) fn attach(
    owner: Owner,
    (placed, again): Draft,
    limits: &Limits,
    block_positions: usize,
) -> Result<Owner, Error> {
    let of_draft = placed.model.block_positions().max(1);
    let blocks = |blocks: usize| blocks.saturating_mul(block_positions).div_ceil(of_draft);
    let revival = again.map(|again| Box::new(again) as _);
    let (blocks, prefix_blocks) = (blocks(limits.blocks), blocks(limits.prefix_blocks));
    Ok(owner.with_drafter(Drafter::new(placed.model, blocks, prefix_blocks, revival)?))
}

/// Bytes of a draft's weights, and of its cache for a position.
pub(super) fn bytes(draft: Option<&Draft>) -> (usize, usize) {
    let of_cache =
        |model: &dyn Forward| model.block_bytes().div_ceil(model.block_positions().max(1));
    draft.map_or((0, 0), |(placed, _)| (placed.model.memory().weights(), of_cache(&*placed.model)))
}
