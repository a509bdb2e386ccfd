//! A trial of a model's tokenizer and chat template on fixed texts.

use setun_engine::Error as EngineError;
use setun_text::{
    ChatTemplate, CivilTime, Message, RenderOptions, TemplateVariables, TextError, Tokenizer, Tool,
    ToolCall,
};

use crate::{error::Error, header::ModelHeader};

/// Letters, spaces, digits, signs and characters of two to four bytes.
const TEXT: &str =
    "Once upon a time, 2 frogs\n\tsat by the pond: \u{e9} \u{65e5}\u{672c} \u{1f600}!";

impl ModelHeader {
    /// Runs the tokenizer and the chat template on fixed texts, as prompts and conversations would:
    /// one message, three, and a call of a function with its result.
    ///
    /// Returns warnings: a template may refuse a conversation, as one that wants a system message
    /// does, or fail with tools alone.
    ///
    /// # Errors
    ///
    /// Those of a generation: if the tokenizer cannot be used or fails, gives no tokens or tokens
    /// that the model does not have, or if the template fails without tools.
    pub fn try_texts(&self) -> Result<Vec<String>, Error> {
        let Some(tokenizer) = self.tokenizer()? else { return Ok(vec![]) };
        self.try_text(&**tokenizer, TEXT, true)?;
        let Some(template) = self.chat_template() else { return Ok(vec![]) };
        let mut warnings: Vec<String> = vec![];
        for (messages, tools) in conversations() {
            match render(template, &messages, &tools) {
                Ok(text) => self.try_text(&**tokenizer, &text, false)?,
                Err(error) if warnings.contains(&error.to_string()) => {}
                Err(error @ TextError::TemplateRefused { .. }) if tools.is_empty() => {
                    warnings.push(error.to_string());
                }
                Err(error) if tools.is_empty() => return Err(error.into()),
                Err(error) => warnings.push(format!("a conversation with tools: {error}")),
            }
        }
        Ok(warnings)
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

/// The conversations, each with its tools.
fn conversations() -> [(Vec<Message>, Vec<Tool>); 3] {
    let message = Message::user(TEXT);
    let more = [message.clone(), Message::assistant(TEXT), Message::user(TEXT)];
    let place = object([("type", "string".into()), ("description", "a place".into())]);
    let properties = object([("place", place.into())]);
    let schema = object([("type", "object".into()), ("properties", properties.into())]);
    let tool = Tool::new("count_frogs").description("Counts frogs.").parameters(schema);
    let call = ToolCall {
        id: "abcdefghi".to_owned(),
        name: tool.name.clone(),
        arguments: r#"{"place": "pond"}"#.to_owned(),
    };
    let result = Message::tool(&call, "2");
    let called = vec![message.clone(), Message::calls("", &[call]), result];
    [(vec![message], vec![]), (more.to_vec(), vec![]), (called, vec![tool])]
}

fn object<T, const N: usize>(entries: [(&str, T); N]) -> TemplateVariables
where
    TemplateVariables: FromIterator<(String, T)>,
{
    entries.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn render(
    template: &ChatTemplate,
    messages: &[Message],
    tools: &[Tool],
) -> Result<String, TextError> {
    let prepared = template.prepare_tools(messages, tools)?;
    let options = RenderOptions {
        add_generation_prompt: true,
        tools: prepared.tools,
        now: Some(CivilTime::from_unix_seconds(0)),
        ..RenderOptions::default()
    };
    template.render(&prepared.messages, &options)
}
