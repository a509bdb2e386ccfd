//! A conversation as the prompt its model was trained on.

mod dialect;
mod generation_tags;
mod python_float;
mod source;
mod to_json;
mod to_value;

use minijinja::{Environment, Value, context};
use serde_json::Map;

use crate::{CivilTime, Message, TextError};

/// The templates of a model, in Hugging Face's dialect of Jinja.
///
/// A rendered prompt has its special tokens in it: tokenize it without adding any.
#[derive(Clone, Debug)]
pub struct ChatTemplate {
    environment: Environment<'static>,
    names: Vec<String>,
    /// `bos_token` and its like, which templates use as variables.
    special_tokens: Map<String, serde_json::Value>,
}

/// The files that may hold templates, as bytes; `None` where a model has no such file.
#[derive(Clone, Copy, Debug, Default)]
pub struct ChatTemplateFiles<'a> {
    /// `tokenizer_config.json`: special tokens, and often the template or a list of them.
    pub tokenizer_config: Option<&'a [u8]>,
    /// `chat_template.jinja`: the template itself; goes before the other two.
    pub chat_template_jinja: Option<&'a [u8]>,
    /// `chat_template.json`: the template as a JSON string; read if the others have none.
    pub chat_template_json: Option<&'a [u8]>,
}

/// What a template is told besides the messages.
#[derive(Clone, Debug, Default)]
pub struct RenderOptions {
    /// Whether the prompt ends where the model's answer begins.
    pub add_generation_prompt: bool,
    /// Descriptions of the functions the model may call, as JSON Schema. With any the
    /// template named `tool_use` is taken if there is one.
    pub tools: Option<Vec<serde_json::Value>>,
    /// Documents the model may quote.
    pub documents: Option<Vec<serde_json::Value>>,
    /// What `strftime_now` shows. Without it templates do not see that function; those that
    /// can do without the date do so.
    pub now: Option<CivilTime>,
    /// More variables, such as `enable_thinking`. They go before all others.
    pub variables: Map<String, serde_json::Value>,
}

impl ChatTemplate {
    /// Reads and parses the templates; `None` if the files hold none.
    pub fn from_files(files: ChatTemplateFiles<'_>) -> Result<Option<Self>, TextError> {
        let source::Sources { templates, special_tokens } = source::Sources::read(files)?;
        if templates.is_empty() {
            return Ok(None);
        }
        let mut environment = dialect::environment();
        let mut names = Vec::new();
        for (name, text) in templates {
            let text = generation_tags::replace(&text);
            environment
                .add_template_owned(name.clone(), text)
                .map_err(|error| dialect::syntax_error(&name, &error))?;
            names.push(name);
        }
        Ok(Some(Self { environment, names, special_tokens }))
    }

    /// The prompt for a conversation.
    pub fn render(
        &self,
        messages: &[Message],
        options: &RenderOptions,
    ) -> Result<String, TextError> {
        let name = self.choose(options.tools.as_ref().is_some_and(|tools| !tools.is_empty()))?;
        let failed = |error| dialect::render_error(name, &error);
        let template = self.environment.get_template(name).map_err(failed)?;
        template.render(self.variables(messages, options)).map_err(failed)
    }

    /// Which template serves a conversation.
    fn choose(&self, with_tools: bool) -> Result<&str, TextError> {
        let has = |wanted: &str| self.names.iter().any(|name| name == wanted);
        if with_tools && has("tool_use") {
            Ok("tool_use")
        } else if has("default") {
            Ok("default")
        } else {
            Err(TextError::TemplateMissing { wanted: "default", found: self.names.clone() })
        }
    }

    /// The variables of a template; a later part hides an earlier one.
    fn variables(&self, messages: &[Message], options: &RenderOptions) -> Value {
        let own = context! {
            messages => messages.iter().map(to_value::message).collect::<Value>(),
            tools => options.tools.as_deref().map(to_value::list),
            documents => options.documents.as_deref().map(to_value::list),
            add_generation_prompt => options.add_generation_prompt,
        };
        let clock = match options.now {
            Some(now) => context! { strftime_now => dialect::strftime_now(now) },
            None => context! {},
        };
        context! {
            ..to_value::map(&options.variables),
            ..own,
            ..clock,
            ..to_value::map(&self.special_tokens)
        }
    }
}
