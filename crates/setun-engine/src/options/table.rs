//! The options of a generation, one row an option.

/// Calls `callback! { more… rows… }` with a row, as [`option_table!`](setun_text::option_table) has
/// them, for each option of a generation. An option may be absent; a list is absent where it is
/// empty.
macro_rules! generate_options {
    ($callback:ident! { $($more:tt)* }) => { setun_text::sampling_options! { join! { $callback { $($more)*
        /// Whether a special token that a message spells is read as that token.
        ///
        /// Otherwise it stays text, and the chat template alone writes special tokens. In a text
        /// prompt they are always read.
        parse_special: Option<bool> as Flag = "false", "", Prompt, with_beams;

        /// Whether the last message of a conversation, an assistant's, is continued.
        ///
        /// The prompt then ends where its content ends. The text that is generated follows the
        /// content and does not repeat it.
        continue_final_message: Option<bool> as Flag = "false", "", Prompt, with_beams;

        /// More variables of the chat template, such as `"enable_thinking"`.
        ///
        /// They go before the template's other variables; `messages`, `tools` and
        /// `add_generation_prompt` are none of them.
        chat_template_kwargs: Option<TemplateVariables> as Structured("an object of variables") = "none", "JSON", Prompt,
            with_beams;

        /// Thinking: whether the model thinks before it answers.
        ///
        /// The chat template gets it as `"enable_thinking"`. Where that does not keep the model from
        /// thinking, false closes its reasoning at once.
        enable_thinking: Option<bool> as Choice(&["true", "false"]) = "what the template has", "true|false", Prompt,
            with_flags("--thinking");

        /// Thinking: how much the model thinks before it answers.
        ///
        /// A chat template that knows `"reasoning_effort"` gets it. `"none"` is as `enable_thinking`
        /// false, others as true.
        reasoning_effort: Option<ReasoningEffort> as Choice(ReasoningEffort::NAMES) = "what the template has", "EFFORT", Prompt;

        /// Thinking: whether a prompt keeps the reasoning of all earlier answers.
        ///
        /// A chat template that knows `"preserve_thinking"` gets it, such as Qwen3.6's.
        preserve_thinking: Option<bool> as Choice(&["true", "false"]) = "what the template has", "true|false", Prompt;

        /// Thinking: most tokens of reasoning, after which the closing marker is forced.
        ///
        /// 0 is as `enable_thinking` false. The answer follows in what is left of `max_tokens`.
        max_thinking_tokens: Option<usize> as COUNT = "unlimited", "N", Length;

        /// What the chat template has as now: seconds of Unix time.
        ///
        /// Templates that write the date give another prompt each day without it.
        chat_template_time: Option<u64> as integer(0, 253_402_300_799) = "now", "SECONDS", Prompt,
            with_beams;

        /// Maximum number of tokens to generate.
        max_tokens: Option<usize> as POSITIVE_COUNT = "what fits the context", "N", Length, with_beams;

        /// Time limit from the call on, after which the generation ends with what it has.
        ///
        /// It begins with the call, so waiting in the queue counts.
        timeout: Option<Duration> as TIME = "none", "SECONDS", Length, with_beams;

        /// Seed of the sampler.
        ///
        /// The same seed, prompt, options and model give the same text, whatever else runs. The
        /// result reports it.
        seed: Option<u64> as Seed = "random", "N", Sampling;

        /// Which of several generations with this seed; 0 is the first.
        ///
        /// They differ in their random numbers alone.
        sample_index: Option<usize> as COUNT = 0, "N", Sampling, with_flags("");

        /// Tokens that were generated before, after which the text goes on; events report what is new.
        ///
        /// With equal prompt, options and seed the text is that of a generation without a break.
        /// Not with mirostat or `prompt_logprobs`, whose state is not in the tokens.
        generated_tokens: Vec<u32> as Tokens = "none", "IDS", Prompt, with_flags("");

        /// DRY: strings at which a repetition ends.
        ///
        /// For each it is the token that the string ends in after an "a".
        dry_breakers: Option<Vec<String>> as Strings = "line break, `:`, `\"`, `*`", "TEXT", Penalties, with_beams;

        /// The only tokens that may come.
        allowed_tokens: Option<Vec<u32>> as Tokens = "all", "IDS", Penalties, with_beams;

        /// Whether events carry log-probabilities.
        logprobs: Option<bool> as Flag = "false", "", Output;

        /// How many of the most probable tokens each event names, with their log-probabilities.
        top_logprobs: Option<usize> as COUNT = 0, "N", Output;

        /// Reports the prompt first, with the log-probabilities of its tokens.
        ///
        /// The prompt is computed again, even if it is cached.
        prompt_logprobs: Option<bool> as Flag = "false", "", Output;

        /// Reports how much of the prompt is computed, after each step.
        prompt_progress: Option<bool> as Flag = "false", "", Output, without_key;

        /// Structured output: the constraint that the text follows.
        constraint: Option<SharedConstraint> as Structured("a constraint") = "none", "", Output,
            with_flags("--json-schema, --json-object, --regex, --grammar, --choice"),
            with_key("responseFormat");

        /// Tools: functions that the model may call, for conversations.
        ///
        /// Each call that it writes has arguments that are valid under the function's schema.
        tools: Vec<Tool> as Structured("a list of tools") = "none", "", Output;

        /// Tools: whether the model calls them.
        ///
        /// It decides itself (`"auto"`), is offered none (`"none"`), has to call one (`"required"`)
        /// or the named one.
        tool_choice: Option<ToolChoice> as Structured("a tool choice") = "auto", "", Output;

        /// Tools: whether an answer may have several calls.
        parallel_tool_calls: Option<bool> as Choice(&["true", "false"]) = "true", "", Output,
            with_flags("");

        /// Content filter: replaces words in the text, or ends it before them.
        ///
        /// It sees the text behind the stop strings, and each text has a state of its own. Tokens,
        /// and with them sessions, stay what they are.
        filter: Option<SharedFilter> as Structured("a content filter") = "none", "", Output,
            with_flags("--filter-word, --filter-regex, --filter-anywhere, --filter-action");

        /// What is done where a text fills the context, or a prompt does not fit.
        context_overflow: Option<SharedContextStrategy> as Structured("a context strategy") = "stop", "", Length,
            with_flags("--context-overflow");

        /// Speculative decoding: most tokens to propose at once, by prompt lookup or by a draft
        /// model.
        ///
        /// Prompt lookup proposes what followed the same tokens earlier in the text. One step
        /// verifies all proposals, so the text does not change, sampled or not.
        lookahead: Option<usize> as integer(0, 255) = "12 with a draft model, else 0", "N", Scheduling,
            with_key("speculative.lookahead");

        /// Requests of a higher priority start first, and are preempted last.
        priority: Option<i32> as integer(-2_147_483_648, 2_147_483_647) = 0, "N", Scheduling,
            with_beams, with_flags("");

        /// Time limit from the call until it begins to run, after which it fails with `busy`.
        ///
        /// One that is preempted later has begun.
        queue_timeout: Option<Duration> as TIME = "none", "SECONDS", Scheduling, with_beams, with_flags("");

        /// Salt of the prefix cache: prompts of different salts share nothing in it.
        ///
        /// So nobody learns from the time of an answer how another's prompts begin. The text does not
        /// change. Without a salt prompts share with all others that have none.
        cache_salt: Option<String> as Text = "none", "TEXT", Scheduling, with_beams, with_flags("");

        /// Stop strings: each ends the text and is not part of it.
        stop: Vec<String> as Strings = "none", "TEXT", Length, with_beams;

        /// Tokens that end the text, as the model's end tokens do.
        ///
        /// Such a token is the last of the generation and not part of the text.
        stop_token_ids: Vec<u32> as Tokens = "none", "IDS", Length, with_beams;

        /// Numbers that are added to the logits of tokens.
        logit_bias: BTreeMap<u32, f32> as Biases = "none", "ID=BIAS", Penalties, with_beams;

        /// Tokens that may not come.
        banned_tokens: Vec<u32> as Tokens = "none", "IDS", Penalties, with_beams;

        /// Strings that may not come.
        ///
        /// Each is banned in the tokens that it has at the start of a text and after a space; the
        /// last may not follow the others. A string in other tokens is not found.
        bad_words: Vec<String> as Strings = "none", "TEXT", Penalties, with_beams;

        /// The last sampling steps in order; all others come before them.
        ///
        /// The usual order is that of Hugging Face's `generate`.
        sampling_order: Vec<SamplingStep> as Steps = "the usual order", "STEPS", MoreSampling, with_beams;

        /// Custom logits processors, applied in order.
        logits_processors: Vec<SharedProcessor> as Structured("logits processors") = "none", "", MoreSampling,
            with_beams, with_flags("");
    } } } };
}

/// Puts the rows of sampling behind those of the engine; their fields may be absent.
macro_rules! join {
    ($callback:ident { $($rows:tt)* } $(
        $(#[doc = $doc:literal])*
        $name:ident: $type:ty as $kind:ident = $($rest:tt),*;
    )*) => {
        $callback! { $($rows)* $(
            $(#[doc = $doc])*
            $name: Option<$type> as $kind = $($rest),*;
        )* }
    };
}

pub(super) use {generate_options, join};
