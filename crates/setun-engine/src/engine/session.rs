//! Texts that are continued: kept, forked, saved and restored.

use std::sync::Arc;

use super::Engine;
use crate::{
    command::{Command, MaintenanceTask},
    error::Error,
    options::{GenerateOptions, Prompt},
    saved_session::SavedBytes,
    stream::GenerationStream,
};

/// The tokens of a text, and the engine that continues with them. A clone is a fork: both have the
/// same beginning, which is computed once and shared in the cache for as long as there is room
/// (`EngineBuilder::prefix_positions`). What has left
/// the cache is computed again, to the same bits.
///
/// With another `cache_salt` than its engine's it has another place in the cache, which
/// [`save`](Self::save) does not look at.
#[derive(Clone, Debug)]
pub struct Session {
    engine: Engine,
    tokens: Vec<u32>,
}

impl Session {
    /// Its tokens.
    #[must_use]
    pub fn tokens(&self) -> &[u32] {
        &self.tokens
    }

    /// Appends text, tokens or a conversation, which is read by the engine's default options. Special
    /// tokens are added to text where the session begins with it.
    ///
    /// # Errors
    ///
    /// If the model lacks what it needs for them, or a token is not in its vocabulary.
    pub fn push(&mut self, more: impl Into<Prompt>) -> Result<(), Error> {
        let more = match more.into() {
            Prompt::Text(text) if !self.tokens.is_empty() => {
                self.engine.encode(&text, false, None)?
            }
            more => self.engine.tokens(more, false)?,
        };
        self.tokens.extend(more);
        Ok(())
    }

    /// Drops the tokens from `len` on, to go on from there otherwise. A longer `len` changes
    /// nothing.
    pub fn truncate(&mut self, len: usize) {
        self.tokens.truncate(len);
    }

    /// Goes on from its tokens, which may end inside the model's reasoning. What comes of it is the session's once it is
    /// [pushed](Self::push).
    ///
    /// # Errors
    ///
    /// As [`Engine::generate`].
    pub fn generate(&self, options: GenerateOptions) -> Result<GenerationStream, Error> {
        self.engine.continue_session(self.tokens.clone(), options)
    }

    /// Everything that [`Engine::restore`] needs: the tokens, and what of them is in the cache in
    /// full blocks. Waits for the step under way.
    ///
    /// # Errors
    ///
    /// If the engine has ended, or a device cannot give what it holds.
    pub async fn save(&self) -> Result<Vec<u8>, Error> {
        let tokens = self.tokens.clone();
        let salt = self.engine.salt.clone();
        let save = |reply| Command::Maintenance(MaintenanceTask::Save { salt, tokens, reply });
        self.engine.least_loaded()?.ask(save).await??.to_bytes()
    }
}

impl Engine {
    /// A session without tokens.
    #[must_use]
    pub fn session(&self) -> Session {
        Session { engine: self.clone(), tokens: vec![] }
    }

    /// The session that [`Session::save`] wrote; a `Vec` is not copied. Its keys and values go to the
    /// cache if they are of this model, computed with the same bits: of the same cache type, on any processor or on
    /// the same kind of GPU. Others are left out, and computed when they are needed.
    ///
    /// # Errors
    ///
    /// If the bytes are damaged or no session, a token is not in the vocabulary, or the engine has
    /// ended.
    pub async fn restore(&self, bytes: impl Into<Vec<u8>>) -> Result<Session, Error> {
        let saved = Arc::new(SavedBytes::parse(bytes.into())?);
        saved.hash_beside();
        let tokens = saved.tokens.clone();
        if !tokens.is_empty() {
            let known = self.tokens(Prompt::Tokens(tokens.clone()), false);
            // Damaged bytes may have any tokens.
            known.map_err(|error| saved.check().err().unwrap_or(error))?;
        }
        for scheduler in self.schedulers.iter() {
            let (salt, saved) = (self.salt.clone(), Arc::clone(&saved));
            let restore =
                |reply| Command::Maintenance(MaintenanceTask::Restore { salt, saved, reply });
            scheduler.ask(restore).await??;
        }
        saved.check()?;
        Ok(Session { engine: self.clone(), tokens })
    }
}
