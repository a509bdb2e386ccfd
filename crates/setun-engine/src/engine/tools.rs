//! Requests with tools.

use setun_text::{ArgumentForm, Tool, ToolCallReader, ToolChoice, ToolFormat};

use super::Engine;
use crate::{
    error::Error,
    options::{GenerateOptions, Prompt},
};

/// How the answer to a request calls tools.
#[derive(Clone, Debug)]
pub(crate) struct ToolUse {
    format: ToolFormat,
    begins_with_call: bool,
    /// Names of the functions, where the answer has a response format.
    beside_format: Option<Vec<String>>,
    /// The functions, where their schemas say how arguments are read.
    functions: Vec<Tool>,
    /// The special tokens of the format, which have no text otherwise.
    tags: Vec<(u32, &'static str)>,
}

impl ToolUse {
    /// What takes the calls out of an answer.
    pub(super) fn reader(&self, prompt: &[u32], seeds: [u64; 2]) -> ToolCallReader {
        let reader = ToolCallReader::new(self.format, self.begins_with_call, prompt, seeds)
            .with_functions(&self.functions)
            .with_tags(self.tags.clone());
        match &self.beside_format {
            Some(names) => reader.beside_format(names.iter().map(String::as_str)),
            None => reader,
        }
    }
}

impl Engine {
    /// How the model writes calls of tools: as its chat template does, or in the generic format.
    #[must_use]
    pub fn tool_format(&self) -> ToolFormat {
        let template = self.shared.template.as_ref();
        template.and_then(|template| template.tool_format()).unwrap_or(ToolFormat::HERMES)
    }

    /// The options of a request with the engine's defaults. Default tools are offered in
    /// conversations alone: a text has none, unless the request itself gives or chooses some.
    pub(super) fn with_defaults(
        &self,
        prompt: &Prompt,
        options: GenerateOptions,
    ) -> GenerateOptions {
        let chooses = options.tool_choice.as_ref().is_some_and(ToolChoice::begins_with_call);
        let has_own = chooses || !options.tools.is_empty();
        let options = options.or(&self.shared.defaults);
        if has_own || matches!(prompt, Prompt::Chat(_)) {
            return options;
        }
        GenerateOptions { tools: vec![], tool_choice: None, ..options }
    }

    /// Compiles the grammar of a request's calls ahead. A generation that begins soon after with
    /// the same tools does not compile it again.
    ///
    /// # Errors
    ///
    /// As [`generate`](Self::generate), of the tools.
    pub fn compile_tools(&self, prompt: &Prompt, options: &GenerateOptions) -> Result<(), Error> {
        self.prepare_tools(prompt, &mut self.with_defaults(prompt, options.clone())).map(drop)
    }

    /// Checks the tools of a request, and adds the constraint on its calls. The options are left
    /// with those that the model is offered.
    pub(super) fn prepare_tools(
        &self,
        prompt: &Prompt,
        options: &mut GenerateOptions,
    ) -> Result<Option<ToolUse>, Error> {
        let choice = options.tool_choice.clone().unwrap_or_default();
        if choice.offered(&options.tools)?.is_empty() {
            options.tools.clear();
            return Ok(None);
        }
        if !matches!(prompt, Prompt::Chat(_)) {
            let (found, expected) = ("given with a text".into(), "messages as the prompt".into());
            return Err(Error::BadOption { option: "tools", found, expected });
        }
        Tool::check_all(&options.tools)?;
        let format = self.tool_format();
        let has_format = self.constrain_calls(format, &choice, options)?;
        let names = || options.tools.iter().map(|tool| tool.name.clone()).collect();
        let begins_with_call = choice.begins_with_call();
        let beside_format = (has_format && !begins_with_call).then(names);
        let tokenizer = self.tokenizer()?;
        let special = tokenizer.special_tokens();
        let tags =
            ToolFormat::tags().into_iter().filter(|tag| special.iter().any(|one| one == tag));
        let tags = tags.filter_map(|tag| Some((tokenizer.token_to_id(tag)?, tag))).collect();
        let functions = match format.arguments {
            ArgumentForm::Xml => options.tools.clone(),
            _ => vec![],
        };
        Ok(Some(ToolUse { format, begins_with_call, beside_format, functions, tags }))
    }

    /// Adds the constraint on calls, and on answers without calls if there is one. Whether there is.
    #[cfg(feature = "grammar")]
    fn constrain_calls(
        &self,
        format: ToolFormat,
        choice: &ToolChoice,
        options: &mut GenerateOptions,
    ) -> Result<bool, Error> {
        use setun_grammar::{Interrupt, ToolGrammar};

        let text = match &options.constraint {
            None => None,
            Some(constraint) => Some(constraint.grammar().ok_or_else(|| {
                let expected = "a grammar of `Engine::grammar`, or none beside tools".into();
                Error::BadOption { option: "constraint", found: "another".into(), expected }
            })?),
        };
        let has_text = text.is_some();
        // A choice that begins with a call leaves no answer to have the format.
        let text = text.filter(|_| !choice.begins_with_call()).cloned().map(Box::new);
        let tools = ToolGrammar {
            text,
            tools: options.tools.clone(),
            format,
            choice: choice.clone(),
            parallel: options.parallel_tool_calls != Some(false),
        };
        let interrupt = Interrupt::new();
        let interrupt = match options.timeout {
            Some(time) => interrupt.within(time),
            None => interrupt,
        };
        let compile = |spec: &_| self.compile_grammar(spec, &interrupt);
        options.constraint = Some(self.shared.tool_grammars.grammar(tools, compile)?);
        Ok(has_text)
    }

    /// Whoever has no grammars compiles the constraint elsewhere.
    #[cfg(not(feature = "grammar"))]
    #[expect(clippy::unused_self, reason = "as with grammars")]
    fn constrain_calls(
        &self,
        _: ToolFormat,
        _: &ToolChoice,
        options: &mut GenerateOptions,
    ) -> Result<bool, Error> {
        if let Some(constraint) = &options.constraint {
            return Ok(constraint.is_beside_tools());
        }
        let (found, expected) = ("absent".into(), "that of the tools' calls".into());
        Err(Error::BadOption { option: "constraint", found, expected })
    }
}
