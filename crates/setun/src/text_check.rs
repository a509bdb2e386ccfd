//! A trial of a model's tokenizer and chat template on a fixed text.

use setun_engine::Error as EngineError;
use setun_text::{CivilTime, Message, RenderOptions, TextError, Tokenizer};

use crate::{error::Error, header::ModelHeader};

/// Letters, spaces, digits, signs and characters of two to four bytes.
const TEXT: &str =
    "Once upon a time, 2 frogs\n\tsat by the pond: \u{e9} \u{65e5}\u{672c} \u{1f600}!";

impl ModelHeader {
    /// Runs the tokenizer and the chat template on a fixed text, as a prompt and a message would.
    ///
    /// Returns warnings: a template may refuse a conversation of one message, which a model that
    /// wants a system message does.
    ///
    /// # Errors
    ///
    /// Those of a generation: if the tokenizer cannot be used or fails, gives no tokens or tokens
    /// that the model does not have, or if the template fails.
    pub fn try_texts(&self) -> Result<Vec<String>, Error> {
        let Some(tokenizer) = self.tokenizer()? else { return Ok(vec![]) };
        self.try_text(&**tokenizer, TEXT, true)?;
        let Some(template) = self.chat_template() else { return Ok(vec![]) };
        let options = RenderOptions {
            add_generation_prompt: true,
            now: Some(CivilTime::from_unix_seconds(0)),
            ..RenderOptions::default()
        };
        match template.render(&[Message::user(TEXT)], &options) {
            Ok(text) => self.try_text(&**tokenizer, &text, false).map(|()| vec![]),
            Err(error @ TextError::TemplateRefused { .. }) => Ok(vec![error.to_string()]),
            Err(error) => Err(error.into()),
        }
    }

    fn try_text(
        &self,
        tokenizer: &dyn Tokenizer,
        text: &str,
        add_special: bool,
    ) -> Result<(), Error> {
        let tokens = tokenizer.encode(text, add_special)?;
        let vocab = self.config().vocab_size;
        let beyond = tokens.iter().find(|&&token| token as usize >= vocab);
        let found = match (beyond, tokens.is_empty()) {
            (Some(token), _) => format!("token {token} of a text"),
            (None, true) => "no tokens of a text".to_owned(),
            (None, false) => return Ok(tokenizer.decode(&tokens, false).map(drop)?),
        };
        let expected = format!("one token or more, each below {vocab}");
        let field = "model.vocab".to_owned();
        let error = TextError::TokenizerField { field, expected, found };
        Err(Error::Engine(EngineError::Text(error)))
    }
}
