//! A conversation as the prompt its model was trained on.

mod bounds;
mod budget;
mod compiled;
mod continuation;
mod costs;
mod dialect;
mod filters;
mod generation_tags;
mod globals;
mod messages;
mod methods;
mod open_macro;
mod operators;
mod program;
mod prompt_template;
mod python_float;
mod python_text;
mod remainder;
mod slices;
mod source;
mod to_json;
mod to_value;

pub use budget::Interrupt;
pub use prompt_template::PromptTemplate;

use budget::Limits;
use continuation::Continuation;
use minijinja::{Environment, Value, context};
use program::Program;
use serde_json::Map;

use crate::{CivilTime, Message, TextError, ToolFormat};

/// The templates of a model, in Hugging Face's dialect of Jinja.
///
/// A rendered prompt has its special tokens in it: tokenize it without adding any.
#[derive(Clone, Debug)]
pub struct ChatTemplate {
    environment: Environment<'static>,
    /// Each with its name.
    programs: Vec<(String, Program)>,
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

/// Variables of a template by their names.
pub type TemplateVariables = Map<String, serde_json::Value>;

/// What a template gets besides the messages.
#[derive(Clone, Debug, Default)]
pub struct RenderOptions {
    /// Whether the prompt ends where the model's answer begins.
    pub add_generation_prompt: bool,
    /// Whether the prompt ends where the content of the last message ends, which is an
    /// assistant's. Nothing begins an answer then.
    pub continue_final_message: bool,
    /// Descriptions of the functions the model may call, as JSON Schema. With any the
    /// template named `tool_use` is taken if there is one.
    pub tools: Option<Vec<serde_json::Value>>,
    /// Documents the model may quote.
    pub documents: Option<Vec<serde_json::Value>>,
    /// What `strftime_now` shows. Without it templates do not see that function; those that
    /// can do without the date do so.
    pub now: Option<CivilTime>,
    /// More variables, such as `enable_thinking`. They go before all others.
    pub variables: TemplateVariables,
    /// What is asked whether to stop, each time that the template has taken 65,536 steps more.
    pub interrupt: Option<Interrupt>,
}

impl ChatTemplate {
    /// Reads and parses the templates; `None` if the files hold none.
    pub fn from_files(files: ChatTemplateFiles<'_>) -> Result<Option<Self>, TextError> {
        let source::Sources { templates, special_tokens } = source::Sources::read(files)?;
        if templates.is_empty() {
            return Ok(None);
        }
        let environment = dialect::environment();
        let mut programs = Vec::new();
        for (name, text) in templates {
            let text = generation_tags::replace(&bounds::line_ends(&text));
            let text = bounds::guard(&name, &text)?;
            let program = Program::new(&environment, &text);
            let program = program.map_err(|error| dialect::syntax_error(&name, &error))?;
            programs.push((name, program));
        }
        Ok(Some(Self { environment, programs, special_tokens }))
    }

    /// Refuses a conversation of which the template would write nothing, or an unknown role.
    ///
    /// # Errors
    ///
    /// [`TextError::Message`], with the place of the message.
    pub fn check(&self, messages: &[Message], options: &RenderOptions) -> Result<(), TextError> {
        messages::check(self.choose_for(options)?.1.source(), messages)?;
        if options.continue_final_message { continuation::check(messages) } else { Ok(()) }
    }

    /// The prompt for a conversation.
    ///
    /// # Errors
    ///
    /// [`TextError::Message`] as [`check`](Self::check) finds it,
    /// [`TextError::TemplateRefused`] in the template's own words, [`TextError::TemplateLimit`] if it
    /// makes more than 128 MiB of texts and lists or takes more than 50 million steps,
    /// [`TextError::TemplateInterrupted`] if [`RenderOptions::interrupt`] says so, and
    /// [`TextError::TemplateFailed`] for all else.
    pub fn render(
        &self,
        messages: &[Message],
        options: &RenderOptions,
    ) -> Result<String, TextError> {
        self.render_within(Limits::default(), messages, options)
    }

    fn render_within(
        &self,
        limits: Limits,
        messages: &[Message],
        options: &RenderOptions,
    ) -> Result<String, TextError> {
        let (name, program) = self.choose_for(options)?;
        messages::check(program.source(), messages)?;
        let asks = messages::asks_for_none(program.source());
        let absent = if asks { Value::from(()) } else { Value::from("") };
        let render = |messages: &[Message]| {
            let values = messages.iter().map(|message| to_value::message(message, &absent));
            let variables = self.variables(limits, values.collect(), options);
            let rendered = program.render(&self.environment, variables);
            rendered.map_err(|error| dialect::render_error(name, &error))
        };
        if !options.continue_final_message {
            return render(messages);
        }
        let continuation = Continuation::new(messages)?;
        continuation.cut(&render(&continuation.messages)?)
    }

    /// How the model writes calls of functions, as far as its template shows; `None` if it has no
    /// tools, or writes calls in no [`ToolFormat`].
    #[must_use]
    pub fn tool_format(&self) -> Option<ToolFormat> {
        let (_, program) = self.choose(true).ok()?;
        ToolFormat::of_template(program.source())
    }

    /// Whether its models think aloud between [`ReasoningReader::MARKERS`](crate::ReasoningReader::MARKERS):
    /// a template writes the closing one, or looks for it.
    #[must_use]
    pub fn thinks(&self) -> bool {
        self.names(crate::ReasoningReader::MARKERS[1])
    }

    /// Whether a template has this variable.
    #[must_use]
    pub fn names(&self, variable: &str) -> bool {
        self.programs.iter().any(|(_, program)| program.source().contains(variable))
    }

    /// Whether the template for tools joins their descriptions to texts, and so fails without one.
    pub(crate) fn joins_descriptions(&self) -> bool {
        self.choose(true).is_ok_and(|(_, program)| program.source().contains("+ tool.description"))
    }

    /// Whether the template for conversations without tools writes the calls in them.
    pub(crate) fn writes_calls(&self) -> bool {
        self.choose(false).is_ok_and(|(_, program)| program.source().contains("tool_calls"))
    }

    /// The sources of all templates, by their names.
    pub fn sources(&self) -> impl Iterator<Item = (&str, &str)> {
        self.programs.iter().map(|(name, program)| (name.as_str(), program.source()))
    }

    fn choose_for(&self, options: &RenderOptions) -> Result<&(String, Program), TextError> {
        self.choose(options.tools.as_ref().is_some_and(|tools| !tools.is_empty()))
    }

    /// Which template serves a conversation.
    fn choose(&self, with_tools: bool) -> Result<&(String, Program), TextError> {
        let named = |wanted: &str| self.programs.iter().find(|(name, _)| name == wanted);
        let tool_use = if with_tools { named("tool_use") } else { None };
        tool_use.or_else(|| named("default")).ok_or_else(|| {
            let found = self.programs.iter().map(|(name, _)| name.clone()).collect();
            TextError::TemplateMissing { wanted: "default", found }
        })
    }

    /// The variables of a template; a later part hides an earlier one.
    fn variables(&self, limits: Limits, messages: Value, options: &RenderOptions) -> Value {
        let own = context! {
            messages,
            tools => options.tools.as_deref().map(to_value::list),
            documents => options.documents.as_deref().map(to_value::list),
            add_generation_prompt =>
                options.add_generation_prompt && !options.continue_final_message,
        };
        let clock = match options.now {
            Some(now) => context! { strftime_now => dialect::strftime_now(now) },
            None => context! {},
        };
        context! {
            ..budget::start(limits, options.interrupt.clone()),
            ..to_value::map(&options.variables),
            ..own,
            ..clock,
            ..to_value::map(&self.special_tokens)
        }
    }
}

#[cfg(test)]
mod limits_tests;
#[cfg(test)]
mod tests;
