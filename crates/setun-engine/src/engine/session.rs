//! Texts that are continued: kept, forked, saved and restored.

use std::sync::Arc;

use setun_text::Message;

use super::Engine;
use crate::{
    command::{Command, MaintenanceTask},
    error::{Error, ErrorCode},
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
    /// Messages that the chat template takes only with one of the user, which is still to come.
    waiting: Vec<Message>,
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
    /// Some templates refuse messages without one of the user, such as a lone system prompt. Those
    /// wait, and become tokens together with the next messages.
    ///
    /// # Errors
    ///
    /// If the model lacks what it needs for them, or a token is not in its vocabulary.
    /// [`Error::WaitingMessages`] for text and tokens while messages wait.
    pub fn push(&mut self, more: impl Into<Prompt>) -> Result<(), Error> {
        let messages = match more.into() {
            Prompt::Chat(messages) => [&self.waiting[..], &messages].concat(),
            more => {
                self.check_complete()?;
                return self.push_complete(more);
            }
        };
        match self.push_complete(messages.clone()) {
            Ok(()) => self.waiting.clear(),
            Err(refusal) if self.may_wait(&messages, &refusal) => self.waiting = messages,
            Err(refusal) => return Err(refusal),
        }
        Ok(())
    }

    /// The same, where messages never wait: those that the template refuses are an error.
    ///
    /// # Errors
    ///
    /// As [`push`](Self::push), and if the template refuses messages.
    pub fn push_complete(&mut self, more: impl Into<Prompt>) -> Result<(), Error> {
        let more = match more.into() {
            Prompt::Text(text) if !self.tokens.is_empty() => {
                self.engine.encode(&text, false, None)?
            }
            more => self.engine.tokens(more, false)?,
        };
        self.tokens.extend(more);
        Ok(())
    }

    /// Drops the tokens from `len` on, and messages that wait, to go on from there otherwise. A
    /// `len` of all tokens or more changes nothing.
    pub fn truncate(&mut self, len: usize) {
        if len < self.tokens.len() {
            self.tokens.truncate(len);
            self.waiting.clear();
        }
    }

    /// Goes on from its tokens, which may end inside the model's reasoning. What comes of it is the session's once it is
    /// [pushed](Self::push).
    ///
    /// # Errors
    ///
    /// As [`Engine::generate`]; [`Error::WaitingMessages`].
    pub fn generate(&self, options: GenerateOptions) -> Result<GenerationStream, Error> {
        self.check_complete()?;
        self.engine.continue_session(self.tokens.clone(), options)
    }

    /// Everything that [`Engine::restore`] needs: the tokens, and what of them is in the cache in
    /// full blocks. Waits for the step under way.
    ///
    /// # Errors
    ///
    /// If the engine has ended, or the device cannot read its cache. [`Error::WaitingMessages`] if messages wait.
    pub async fn save(&self) -> Result<Vec<u8>, Error> {
        self.check_complete()?;
        let tokens = self.tokens.clone();
        let salt = self.engine.salt.clone();
        let save = |reply| Command::Maintenance(MaintenanceTask::Save { salt, tokens, reply });
        self.engine.least_loaded()?.ask(save).await??.to_bytes()
    }

    /// Whether a message of the user would mend what the template refuses.
    fn may_wait(&self, messages: &[Message], refusal: &Error) -> bool {
        if refusal.code() != ErrorCode::BadOption || messages.iter().any(|m| m.role == "user") {
            return false;
        }
        let next = [messages, &[Message::user("")]].concat();
        self.engine.tokens(next.into(), false).is_ok()
    }

    fn check_complete(&self) -> Result<(), Error> {
        if self.waiting.is_empty() { Ok(()) } else { Err(Error::WaitingMessages) }
    }
}

impl Engine {
    /// A session without tokens.
    #[must_use]
    pub fn session(&self) -> Session {
        Session { engine: self.clone(), tokens: vec![], waiting: vec![] }
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
        Ok(Session { engine: self.clone(), tokens, waiting: vec![] })
    }
}
