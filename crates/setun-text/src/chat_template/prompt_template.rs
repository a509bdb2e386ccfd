//! A prompt with variables.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use minijinja::machinery::{Token, tokenize};
use minijinja::{Environment, UndefinedBehavior, context, syntax::SyntaxConfig};
use serde_json::{Map, Value};

use super::budget::{self, Limits};
use super::{bounds, dialect, generation_tags, program::Program, to_value};
use crate::TextError;

/// What a template is called that was given no name.
const NAME: &str = "prompt";

/// A prompt that is written once and filled with values.
///
/// It is Jinja in the dialect of a [`ChatTemplate`](crate::ChatTemplate) and within the same bounds,
/// but it knows no model and no clock, and what is not given is an error.
///
/// ```
/// use setun_text::PromptTemplate;
///
/// let source = "{% for name in names %}Dear {{ name }},\n{% endfor %}Hello!";
/// let template = PromptTemplate::parse(source)?;
/// assert_eq!(template.variables(), ["names"]);
/// let values = [("names".to_owned(), ["Ada", "Alan"].into())].into_iter().collect();
/// assert_eq!(template.render(&values)?, "Dear Ada,\nDear Alan,\nHello!");
/// # Ok::<(), setun_text::TextError>(())
/// ```
#[derive(Clone, Debug)]
pub struct PromptTemplate {
    name: String,
    environment: Environment<'static>,
    program: Program,
    variables: Vec<String>,
    /// Where each name stands first.
    lines: BTreeMap<String, usize>,
}

impl PromptTemplate {
    /// Parses a template, whose name in errors is `prompt`.
    ///
    /// # Errors
    ///
    /// [`TextError::PromptTemplate`] if it is not valid, or has a tag that is too long.
    pub fn parse(text: &str) -> Result<Self, TextError> {
        Self::named(NAME, text)
    }

    /// Parses a template, such as a file, that has a name in errors.
    ///
    /// # Errors
    ///
    /// As [`parse`](Self::parse).
    pub fn named(name: &str, text: &str) -> Result<Self, TextError> {
        let mut environment = dialect::environment();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        let text = &generation_tags::replace(&bounds::line_ends(text));
        let source = bounds::guard(name, text).map_err(of_a_prompt)?;
        let invalid = |error| of_a_prompt(dialect::syntax_error(name, &error));
        let program = Program::new(&environment, &source).map_err(invalid)?;
        let Names { lines, optional } = Names::read(text);
        let mut needed = program.variables(&environment).map_err(invalid)?;
        for (function, _) in environment.globals() {
            needed.remove(function);
        }
        let needed: BTreeSet<_> = needed.difference(&optional).cloned().collect();
        let variables = needed.into_iter().collect();
        Ok(Self { name: name.to_owned(), environment, program, variables, lines })
    }

    /// The names that it needs, sorted. It can do without a variable that it requests with
    /// `is defined` or gives a `default` somewhere, and without those that it sets itself.
    #[must_use]
    pub fn variables(&self) -> &[String] {
        &self.variables
    }

    /// The prompt with these values. Others than it needs may be among them.
    ///
    /// # Errors
    ///
    /// [`TextError::MissingVariable`] by the name of what is not given;
    /// [`TextError::PromptTemplate`] if it fails while it runs, or looks for an entry that a value
    /// does not have; [`TextError::TemplateLimit`] if it requests too much, as a chat template.
    pub fn render(&self, values: &Map<String, Value>) -> Result<String, TextError> {
        if let Some(variable) = self.variables.iter().find(|name| !values.contains_key(*name)) {
            let line = self.lines.get(variable).copied().unwrap_or(0);
            let (name, variable) = (self.name.clone(), variable.clone());
            return Err(TextError::MissingVariable { name, line, variable });
        }
        let start = budget::start(Limits::default(), None);
        let variables = context! { ..start, ..to_value::map(values) };
        let rendered = self.program.render(&self.environment, variables);
        rendered.map_err(|error| self.failed(&error))
    }

    /// What a template that fails while it runs is reported as.
    fn failed(&self, error: &minijinja::Error) -> TextError {
        match dialect::render_error(&self.name, error) {
            TextError::TemplateRefused { message } => TextError::PromptTemplate {
                name: self.name.clone(),
                line: error.line().unwrap_or(0),
                reason: format!("it refuses these values: {message}"),
            },
            error => of_a_prompt(error),
        }
    }
}

/// The names in a template's tags.
#[derive(Default)]
struct Names {
    /// Where each stands first.
    lines: BTreeMap<String, usize>,
    /// Those that the template can do without.
    optional: HashSet<String>,
}

impl Names {
    fn read(text: &str) -> Self {
        let mut names = Self::default();
        let tokens = tokenize(text, false, SyntaxConfig::default()).map_while(Result::ok);
        let tokens: Vec<_> = tokens.collect();
        for (index, (token, span)) in tokens.iter().enumerate() {
            let Token::Ident(name) = token else { continue };
            names.lines.entry((*name).to_owned()).or_insert(usize::from(span.start_line));
            let after = tokens.iter().skip(index + 1).map(|(token, _)| token);
            let words = after.map_while(|token| match token {
                Token::Ident(word) => Some(*word),
                Token::Pipe => Some("|"),
                _ => None,
            });
            let is_optional = match words.take(3).collect::<Vec<_>>()[..] {
                ["is", "not", test] | ["is", test, ..] => matches!(test, "defined" | "undefined"),
                ["|", filter, ..] => matches!(filter, "default" | "d"),
                _ => false,
            };
            if is_optional {
                names.optional.insert((*name).to_owned());
            }
        }
        names
    }
}

/// A mistake in a prompt's template is its writer's, not the model's.
fn of_a_prompt(error: TextError) -> TextError {
    match error {
        TextError::TemplateSyntax { name, line, reason }
        | TextError::TemplateFailed { name, line, reason } => {
            TextError::PromptTemplate { name, line, reason }
        }
        error => error,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn render(source: &str, values: &Value) -> Result<String, TextError> {
        PromptTemplate::parse(source)?.render(values.as_object().expect("an object"))
    }

    fn variables(source: &str) -> Vec<String> {
        PromptTemplate::parse(source).expect("a good template").variables().to_vec()
    }

    #[test]
    fn loops_conditions_and_methods_are_those_of_chat_templates() {
        let source = "{% for item in items %}\n  {% if loop.index0 == 2 %}\n{% break %}\n  {% endif %}\n- {{ item.name|upper }} {{ item['tags'][::-1]|join(',') }}\n{% endfor %}\n{{ text.strip() }}{{ 1.0 }}\n";
        let item = |name: &str| json!({ "name": name, "tags": ["a", "b"] });
        let values = json!({ "items": [item("x"), item("y"), item("z")], "text": " t " });
        assert_eq!(render(source, &values).expect("it renders"), "- X b,a\n- Y b,a\nt1.0");
    }

    #[test]
    fn the_names_are_those_that_are_not_set_inside() {
        let source = "{% set a = b %}{% for c in range(d) %}{{ a }}{{ c }}{{ e.f[g] }}{{ loop.index }}{% endfor %}";
        assert_eq!(variables(source), ["b", "d", "e", "g"]);
        let source = "{% macro m(x, y=z) %}{{ x }}{{ y }}{% endmacro %}{{ m(1) }}{% set ns = namespace(n=k) %}{{ ns.n }}";
        assert_eq!(variables(source), ["k", "z"]);
        let source = "{{ a|default('x') }}{% if b is defined %}{{ b }}{% endif %}{% if c is not defined %}{% endif %}{{ d is string }}{{ x.a|d(1) }}";
        assert_eq!(variables(source), ["d", "x"]);
        assert_eq!(variables("no tags, {not: this}"), [""; 0]);
        assert_eq!(variables("{# {{ a }} #}{% raw %}{{ b }}{% endraw %}"), [""; 0]);
    }

    #[test]
    fn what_is_not_given_is_an_error_by_its_name_and_line() {
        let source =
            "Dear {{ name }},\n{% if is_late %}\nlate\n{% endif %}\n{{ note|default('-') }}";
        let error = render(source, &json!({ "name": "Ada" })).expect_err("no is_late");
        assert_eq!(error.to_string(), "template `prompt` needs the variable `is_late` at line 2");
        let values = json!({ "name": "Ada", "is_late": false, "more": 1 });
        assert_eq!(render(source, &values).expect("it renders"), "Dear Ada,\n-");
        // It may do without `a`, but only where it asks.
        let error = render("{{ a is defined }}\n{{ a }}", &json!({})).expect_err("no a");
        assert!(matches!(error, TextError::PromptTemplate { line: 2, .. }), "{error}");
        let error = render("\n\n{{ a.b }}", &json!({ "a": {} })).expect_err("no entry b");
        assert_eq!(error.to_string(), "template `prompt` at line 3: undefined value");
        assert_eq!(render("[{{ a }}]", &json!({ "a": null })).expect("it renders"), "[None]");
    }

    #[test]
    fn line_ends_and_macros_are_those_of_chat_templates() {
        let source = "{% macro f(a) %}\r\n{{ a }}{{ varargs|join }}\r\n{% endmacro %}\r\n{{ f(x, y, z) }}\r\n";
        assert_eq!(variables(source), ["x", "y", "z"]);
        let values = json!({ "x": 1, "y": 2, "z": 3 });
        assert_eq!(render(source, &values).expect("it renders"), "123\n");
        let error = render("{{ joiner(a)() }}\r\n{{ b }}", &json!({ "a": 1 })).expect_err("no b");
        assert_eq!(error.to_string(), "template `prompt` needs the variable `b` at line 2");
    }

    #[test]
    fn mistakes_have_the_name_and_the_line() {
        let error = PromptTemplate::named("a.jinja", "a\n{% if %}").expect_err("no condition");
        assert!(error.to_string().starts_with("template `a.jinja` at line 2: "), "{error}");
        let error = render("\n{{ raise_exception('not ' ~ a) }}", &json!({ "a": 1 }));
        let error = error.expect_err("it refuses").to_string();
        assert!(
            error.starts_with("template `prompt` at line 2: ") && error.contains("not 1"),
            "{error}"
        );
        let error = render("{{ strftime_now('%d') }}", &json!({})).expect_err("there is no clock");
        assert!(error.to_string().contains("`strftime_now`"), "{error}");
    }

    #[test]
    fn a_template_that_asks_for_too_much_is_stopped() {
        for source in [
            "{{ 'a' * 999999999 }}",
            "{% set ns = namespace(x='aa') %}{% for i in range(99) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}",
            "{% set ns = namespace(x=[]) %}{% for i in range(99) %}{% set ns.x = [ns.x] %}{% endfor %}",
        ] {
            let error = render(source, &json!({})).expect_err("too much");
            assert!(matches!(error, TextError::TemplateLimit { line: 1, .. }), "{error}");
        }
        let long = format!("\n{{{{ 1{} }}}}", "+1".repeat(40_000));
        let error = PromptTemplate::parse(&long).expect_err("a tag without end");
        assert!(matches!(error, TextError::PromptTemplate { line: 2, .. }), "{error}");
    }
}
