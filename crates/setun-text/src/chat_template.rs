//! A conversation as the prompt its model was trained on.

mod bounds;
mod dialect;
mod generation_tags;
mod prompt_template;
mod python_float;
mod slices;
mod source;
mod to_json;
mod to_value;

pub use prompt_template::PromptTemplate;

use minijinja::{Environment, Value, context};
use serde_json::Map;

use crate::{CivilTime, Message, TextError, ToolFormat};

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

/// What a template gets besides the messages.
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
            let text = slices::replace(&bounds::guard(&name, &generation_tags::replace(&text))?);
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

    /// How the model writes calls of functions, as far as its template shows; `None` if it does
    /// not, or in no way that a [`ToolCallParser`](crate::ToolCallParser) knows.
    #[must_use]
    pub fn tool_format(&self) -> Option<ToolFormat> {
        let template = self.environment.get_template(self.choose(true).ok()?).ok()?;
        ToolFormat::of_template(template.source())
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
            ..bounds::work(),
            ..to_value::map(&options.variables),
            ..own,
            ..clock,
            ..to_value::map(&self.special_tokens)
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn template(chat_template: &serde_json::Value) -> Result<ChatTemplate, TextError> {
        let config = json!({ "chat_template": chat_template, "bos_token": "<s>" }).to_string();
        let files = ChatTemplateFiles {
            tokenizer_config: Some(config.as_bytes()),
            ..ChatTemplateFiles::default()
        };
        ChatTemplate::from_files(files).map(|found| found.expect("there is a template"))
    }

    fn render(source: &str, options: &RenderOptions) -> Result<String, TextError> {
        template(&json!(source))?
            .render(&[Message::user("hello"), Message::assistant("hi")], options)
    }

    fn plain(source: &str) -> Result<String, TextError> {
        render(source, &RenderOptions::default())
    }

    #[test]
    fn blocks_swallow_their_line_and_loops_can_be_left() {
        let source = "{% for m in messages %}\n  {% if loop.index0 == 1 %}\n{% break %}\n  {% endif %}\n{{ m.role }}\n{% endfor %}\nend\n";
        assert_eq!(plain(source).expect("it renders"), "user\nend");
    }

    #[test]
    fn generation_tags_only_open_a_scope() {
        let source = "{% set x = 1 %}{% generation %}{% set x = 2 %}{{ bos_token }}{% endgeneration %}{{ x }}";
        assert_eq!(plain(source).expect("it renders"), "<s>1");
    }

    #[test]
    fn the_date_comes_from_the_caller() {
        let source = "{% if strftime_now is defined %}{{ strftime_now('%d %b %Y') }}{% else %}no date{% endif %}";
        assert_eq!(plain(source).expect("it renders"), "no date");
        let now = Some(CivilTime::from_unix_seconds(0));
        let options = RenderOptions { now, ..RenderOptions::default() };
        assert_eq!(render(source, &options).expect("it renders"), "01 Jan 1970");
        let error = render("{{ strftime_now('%c') }}", &options).expect_err("not known");
        assert!(error.to_string().contains("strftime_now does not know %c"), "{error}");
    }

    #[test]
    fn tools_choose_their_own_template() {
        let list =
            json!([{"name": "default", "template": "d"}, {"name": "tool_use", "template": "t"}]);
        let templates = template(&list).expect("two good templates");
        let options = RenderOptions { tools: Some(vec![json!({})]), ..RenderOptions::default() };
        assert_eq!(templates.render(&[], &options).expect("it renders"), "t");
        assert_eq!(templates.render(&[], &RenderOptions::default()).expect("it renders"), "d");
        let others = template(&json!([{"name": "rag", "template": "r"}])).expect("a good template");
        let error = others.render(&[], &options).expect_err("none for this");
        assert_eq!(error.to_string(), "the model has no chat template `default`, only [\"rag\"]");
    }

    #[test]
    fn variables_go_before_all_others() {
        let mut options = RenderOptions::default();
        options.variables.insert("bos_token".to_owned(), json!("other"));
        assert_eq!(render("{{ bos_token }}", &options).expect("it renders"), "other");
    }

    /// Each would end the process: values that are nested as deep as a loop is long, that contain
    /// themselves, or double.
    #[test]
    fn values_without_bounds_are_refused() {
        let grow = |start: &str, step: &str| {
            format!(
                "{{% set ns = namespace(x={start}) %}}{{% for i in range(9999) %}}{{% for j in range(20) %}}\
                 {{% set ns.x = {step} %}}{{% endfor %}}{{% endfor %}}{{{{ ns.x|length }}}}"
            )
        };
        for (start, step) in [
            ("[]", "[ns.x]"),
            ("[]", "{'a': ns.x}"),
            ("[]", "[ns.x, ns.x]"),
            ("'a'", "ns.x ~ ns.x"),
            ("[1]", "ns.x + ns.x"),
        ] {
            let error = plain(&grow(start, step)).expect_err(step);
            assert!(error.to_string().contains("too"), "{step}: {error}");
        }
        for value in ["ns", "[ns]", "{'a': [ns]}"] {
            let source =
                format!("{{% set ns = namespace() %}}{{% set ns.x = {value} %}}{{{{ ns }}}}");
            let error = plain(&source).expect_err(value);
            assert!(error.to_string().contains("a namespace is put into"), "{value}: {error}");
        }
        let source = "{% set ns = namespace({'a': 1}) %}{% set other = ns %}{% set other.b = 2 %}{{ ns.a + ns.b }}";
        assert_eq!(plain(source).expect("it renders"), "3");
        assert_eq!(
            plain(&grow("0", "ns.x + 1").replace("|length", "")).expect("a number"),
            "199980"
        );
    }

    #[test]
    fn lists_grow_message_by_message() {
        let source = "{% set ns = namespace(x=[]) %}{% for i in range(3000) %}{% set ns.x = ns.x + [{'a': i}] %}{% endfor %}{{ ns.x|length }} {{ ns.x[-1].a }}";
        assert_eq!(plain(source).expect("it renders"), "3000 2999");
    }

    #[test]
    fn errors_say_where() {
        let error = plain("a\n{% if %}").expect_err("not Jinja");
        assert!(matches!(error, TextError::TemplateSyntax { line: 2, .. }), "{error}");
        let error = plain("\n\n{{ none.x.y }}").expect_err("no such entry");
        assert!(matches!(error, TextError::TemplateFailed { line: 3, .. }), "{error}");
        let macros = "{% macro no() %}{{ raise_exception('not this') }}{% endmacro %}{{ no() }}";
        let error = plain(macros).expect_err("it refuses");
        assert_eq!(error.to_string(), "the chat template refuses this conversation: not this");
    }

    #[test]
    fn a_template_that_does_not_end_is_stopped() {
        let many = "{% for a in range(90000) %}".repeat(3) + &"{% endfor %}".repeat(3);
        let error = plain(&many).expect_err("it takes too long");
        assert!(error.to_string().contains("fuel"), "{error}");
    }
}
