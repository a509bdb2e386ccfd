//! Starting beam searches.

use futures::channel::oneshot;

use super::{BeamGeneration, Engine, chat_prompt::Reading, generate::RequestInput};
use crate::{
    beams::BeamOptions,
    error::Error,
    options::{GenerateOptions, Prompt},
    sequence::{SearchRequest, TaskRequest},
};

impl Engine {
    /// The likeliest texts after a prompt, by beam search; see [`BeamOptions`]. All beams run in the
    /// steps of other generations, and what is found depends on neither.
    ///
    /// Of the options of sampling those count that act on single tokens: penalties, biases, bans,
    /// `min_tokens` and custom processors. The prompt, stop strings, `max_tokens`, `priority` and
    /// `timeout` are as for [`generate`](Self::generate). A search that is over its time or
    /// cancelled gives the best of what it has.
    ///
    /// # Errors
    ///
    /// As [`generate`](Self::generate); also if an option of the beams is out of its range, there
    /// are more of them than the engine has streams, or an option is given that a search does not
    /// take, such as a temperature, a seed, a constraint or a filter. One that is 0 or false is none.
    /// What goes wrong later comes from the future.
    pub fn beams(
        &self,
        prompt: impl Into<Prompt>,
        beams: BeamOptions,
        options: GenerateOptions,
    ) -> Result<BeamGeneration, Error> {
        let arrival_time = self.shared.clock.now();
        options.check()?;
        beams.check()?;
        let bad =
            |option, found: String, expected| Err(Error::BadOption { option, found, expected });
        let most = self.shared.max_concurrent;
        if beams.num_beams > most {
            let expected = format!("1 to {most}, `max_concurrent` of the engine");
            return bad("num_beams", beams.num_beams.to_string(), expected);
        }
        if let Some(option) = not_in_beams(&options) {
            return bad(option, "given".into(), "not with beams".into());
        }
        let options = self.beam_defaults(options);
        options.check()?;
        let prompt = self.read_prompt(prompt.into(), Reading::of(&options, arrival_time))?;
        let max_tokens = self.room(&prompt)?.min(options.max_tokens.unwrap_or(usize::MAX));
        let (reply, texts) = oneshot::channel();
        let task = TaskRequest::Beam(SearchRequest { options: beams, reply });
        let input = RequestInput {
            arrival_time,
            prompt,
            shortened: None,
            max_tokens,
            task,
            tool_use: None,
            thinking: None,
        };
        let stream = self.submit_one(input, options.lookahead(0))?;
        Ok(BeamGeneration::new(stream, texts))
    }

    /// Fills in the engine's defaults, without those that a search does not know.
    fn beam_defaults(&self, options: GenerateOptions) -> GenerateOptions {
        GenerateOptions {
            constraint: None,
            logprobs: None,
            top_logprobs: None,
            prompt_logprobs: None,
            prompt_progress: None,
            context_overflow: None,
            filter: None,
            generated_tokens: vec![],
            tools: vec![],
            tool_choice: None,
            parallel_tool_calls: None,
            enable_thinking: None,
            reasoning_effort: None,
            max_thinking_tokens: None,
            preserve_thinking: None,
            ..options.or(&self.shared.defaults)
        }
    }
}

/// The first option given that a search does not take.
fn not_in_beams(options: &GenerateOptions) -> Option<&'static str> {
    let structured = [
        ("constraint", options.constraint.is_some()),
        ("context_overflow", options.context_overflow.is_some()),
        ("filter", options.filter.is_some()),
        ("tools", !options.tools.is_empty()),
        ("logprobs", options.logprobs == Some(true)),
        ("top_logprobs", options.top_logprobs > Some(0)),
        ("prompt_logprobs", options.prompt_logprobs == Some(true)),
        ("prompt_progress", options.prompt_progress == Some(true)),
    ];
    let structured = structured.into_iter().find(|&(_, is_given)| is_given);
    structured.map(|(option, _)| option).or_else(|| not_in_table(options))
}

/// The same of the options whose value the table can read.
#[cfg(not(target_family = "wasm"))]
fn not_in_table(options: &GenerateOptions) -> Option<&'static str> {
    use setun_text::OptionValue;

    let is_used = |value: OptionValue| match value {
        OptionValue::Flag(is_on) => is_on,
        value => value.double() != Some(0.0),
    };
    let refused = GenerateOptions::SPECS.iter().filter(|spec| !spec.in_beams);
    refused.map(|spec| spec.name).find(|name| options.get(name).is_some_and(is_used))
}

/// JavaScript refuses them by the same table before.
#[cfg(target_family = "wasm")]
fn not_in_table(_: &GenerateOptions) -> Option<&'static str> {
    None
}
