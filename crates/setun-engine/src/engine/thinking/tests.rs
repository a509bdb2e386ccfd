use std::sync::Arc;

use setun_text::{
    Candidates, ChatTemplate, ChatTemplateFiles, FilterAction, FilterPattern, FilterRule,
    HfTokenizer, LogitsProcessor, Message, PatternFilter, SharedFilter, SharedProcessor, Step,
    TextError, TokenMask,
};

use super::{
    super::{
        Engine,
        test_support::{VOCABULARY, parts},
    },
    *,
};
use crate::{
    constraint::{Constraint, ConstraintState, SharedConstraint},
    event::FinishReason,
    options::{EngineOptions, Prompt, ReasoningEffort},
    stream::Completion,
};

const END: u32 = 200;
const OPEN: u32 = 201;
const CLOSE: u32 = 202;

/// A template like Qwen3's: the model opens its reasoning itself.
const PLAIN: &str = "{% for m in messages %}{{ m.role[0] }}{% if m.reasoning_content %}\
    <think>{{ m.reasoning_content }}</think>{% endif %}{{ m.content }}<end>{% endfor %}\
    {% if add_generation_prompt %}a{% if enable_thinking is defined and not enable_thinking %}\
    <think>\n\n</think>\n\n{% endif %}{% endif %}";
/// A template like those of later models: the prompt opens the reasoning. Effort is written where it is given.
const OPENED: &str = "{{ reasoning_effort or '' }}{% for m in messages %}{{ m.content.split('</think>')[-1] }}<end>\
    {% endfor %}{% if add_generation_prompt %}a<think>\n{% endif %}";

/// An engine whose tokenizer has a token for each letter, and for the markers unless they are spelt.
fn engine(template: &str, is_spelt: bool) -> Engine {
    let letters = (32..127_u8).chain([10]).filter(|letter| !b"\"\\".contains(letter));
    let mut vocab: Vec<_> = letters
        .map(|letter| match letter {
            b'\n' => format!(r#""\n": {letter}"#),
            _ => format!(r#""{}": {letter}"#, char::from(letter)),
        })
        .collect();
    let mut added = vec![("<end>", END, true)];
    if !is_spelt {
        added.extend([("<think>", OPEN, false), ("</think>", CLOSE, false)]);
    }
    vocab.extend(added.iter().map(|(text, id, _)| format!(r#""{text}": {id}"#)));
    let added = added.iter().map(|(text, id, special)| {
        format!(
            r#"{{"id": {id}, "content": "{text}", "special": {special}, "normalized": false,
            "single_word": false, "lstrip": false, "rstrip": false}}"#
        )
    });
    let (vocab, added) = (vocab.join(", "), added.collect::<Vec<_>>().join(", "));
    let tokenizer = format!(
        r#"{{"version": "1.0", "added_tokens": [{added}], "decoder": {{"type": "Fuse"}},
        "model": {{"type": "BPE", "vocab": {{{vocab}}}, "merges": []}}}}"#
    );
    let tokenizer = HfTokenizer::from_bytes(tokenizer.as_bytes()).expect("a tokenizer");
    let template = ChatTemplate::from_files(ChatTemplateFiles {
        chat_template_jinja: Some(template.as_bytes()),
        ..ChatTemplateFiles::default()
    });
    let mut parts = parts(1);
    parts.tokenizer = Some(Arc::new(tokenizer));
    parts.template = template.expect("a template").map(Arc::new);
    parts.eos_tokens = vec![END];
    Engine::start(parts, &EngineOptions::default()).expect("an engine")
}

/// Makes the model write a text, whatever stands before it.
struct Script(Vec<u32>);

impl LogitsProcessor for Script {
    fn process(&self, candidates: &mut Candidates, step: &Step<'_>) -> Result<(), TextError> {
        let index = step.history.len() - step.prompt_tokens;
        let token = self.0.get(index).copied().unwrap_or(END);
        candidates.retain(|candidate, _| candidate == token);
        Ok(())
    }
}

/// The tokens that the model is made to write.
fn script(engine: &Engine, text: &str) -> Vec<u32> {
    engine.tokenize(text).expect("tokens")
}

/// Options by which the model writes a text and ends.
fn says(engine: &Engine, text: &str) -> GenerateOptions {
    let processor = SharedProcessor::new(Script(script(engine, text)));
    GenerateOptions::new().logits_processors([processor])
}

fn ask(engine: &Engine, options: GenerateOptions) -> Completion {
    engine.complete(Prompt::Chat(vec![Message::user("hi")]), options).expect("an answer")
}

#[test]
fn reasoning_is_apart_from_the_answer() {
    for is_spelt in [false, true] {
        let (plain, opened) = (engine(PLAIN, is_spelt), engine(OPENED, is_spelt));
        for (engine, text, thought) in [
            (&plain, "<think>\nwhy\n</think>\n\nso <think>", 5),
            (&opened, "why</think> so <think>", 3),
        ] {
            let found = ask(engine, says(engine, text));
            assert_eq!((&*found.reasoning, &*found.text), ("why", "so <think>"));
            assert_eq!(found.done.usage.reasoning_tokens, thought);
            let joined: String =
                found.deltas.iter().filter_map(|delta| delta.reasoning.clone()).collect();
            assert_eq!(joined, "why");
            assert_eq!(found.tokens.len(), found.done.usage.completion_tokens);
        }
        let found = ask(&plain, says(&plain, "so why"));
        assert_eq!((&*found.reasoning, &*found.text), ("", "so why"));
        assert!(found.deltas.iter().all(|delta| delta.reasoning.is_none()));
        assert_eq!(found.done.usage.reasoning_tokens, 0);
        let found = ask(&opened, says(&opened, "why"));
        assert_eq!((&*found.reasoning, &*found.text), ("why", ""), "it never came to an answer");
        assert_eq!(found.done.usage.reasoning_tokens, 3, "an end token is none");
    }
}

#[test]
fn texts_and_models_without_markers_are_not_taken_apart() {
    let engine = engine(PLAIN, false);
    let text = "<think>a</think>b";
    let found = engine.complete("hi", says(&engine, text)).expect("a text");
    assert_eq!((&*found.reasoning, &*found.text), ("", text), "a text is continued as it is");
    let engine = self::engine("{{ messages[0].content }}", false);
    assert_eq!(ask(&engine, says(&engine, text)).text, text);
}

/// A conversation's last answer may be continued inside its reasoning; what a user writes is none.
#[test]
fn prompts_open_reasoning_where_they_end() {
    let engine = engine(PLAIN, false);
    let continued = |content: &str| {
        let messages = vec![Message::user("<think>"), Message::assistant(content)];
        let options = says(&engine, "b</think>c").continue_final_message(true);
        let found = engine.complete(Prompt::Chat(messages), options).expect("an answer");
        (found.reasoning, found.text)
    };
    assert_eq!(continued("<think>a"), ("b".to_owned(), "c".to_owned()));
    assert_eq!(continued("<think>a</think>d"), (String::new(), "b</think>c".to_owned()));
    assert_eq!(continued("d"), (String::new(), "b</think>c".to_owned()));

    let mut session = engine.session();
    session.push(vec![Message::user("<think>")]).expect("tokens");
    let stream = session.generate(says(&engine, "<think>a"));
    let found = stream.expect("a stream").wait().expect("a text");
    assert_eq!(found.reasoning, "a");
    session.push(found.tokens[..2].to_vec()).expect("tokens");
    let stream = session.generate(says(&engine, "b</think>c"));
    let found = stream.expect("a stream").wait().expect("a text");
    assert_eq!((&*found.reasoning, &*found.text), ("b", "c"), "it is known by its tokens");
}

#[test]
fn stop_strings_apply_to_the_answer_and_filters_to_both() {
    let engine = engine(OPENED, false);
    let text = "a stop b</think>c stop d";
    let found = ask(&engine, says(&engine, text).stop(["stop"]));
    assert_eq!((&*found.reasoning, &*found.text), ("a stop b", "c "));
    assert_eq!(found.done.stop.as_deref(), Some("stop"));
    let word = || FilterPattern::Word { text: "stop".to_owned(), whole: true, ignore_case: false };
    let filter = |action| {
        let rule = FilterRule { pattern: word(), action };
        SharedFilter::new(PatternFilter::new(vec![rule]).expect("a filter"))
    };
    let replaced = filter(FilterAction::Replace("-".to_owned()));
    let found = ask(&engine, says(&engine, text).filter(replaced));
    assert_eq!((&*found.reasoning, &*found.text), ("a - b", "c - d"));
    let found = ask(&engine, says(&engine, text).filter(filter(FilterAction::Stop)));
    assert_eq!((&*found.reasoning, &*found.text), ("a ", ""));
    assert_eq!(found.done.finish_reason, FinishReason::ContentFilter);
}

/// The tokens after a prompt by the definition: those without a budget, the closing marker,
/// and what follows these tokens.
fn expected(engine: &Engine, budget: usize, options: &GenerateOptions) -> Vec<u32> {
    let prompt = engine.tokenize_chat(&[Message::user("hi")], options).expect("tokens");
    let plain = engine.complete(prompt.clone(), options.clone()).expect("a text").tokens;
    let closed = plain.iter().position(|&token| token == CLOSE || token == END);
    if closed.is_some_and(|closed| closed <= budget) || budget >= plain.len() {
        return plain;
    }
    let mut begin = [&plain[..budget], &[CLOSE]].concat();
    let more = options.clone().generated_tokens(begin.clone());
    begin.extend(engine.complete(prompt, more).expect("a text").tokens);
    begin
}

#[test]
fn a_budget_forces_the_closing_marker_and_nothing_else() {
    let engine = engine(OPENED, false);
    let mut forced = 0;
    for (seed, budget) in [(1, 0), (2, 1), (3, 50), (4, 7), (5, 1), (6, 0)] {
        let sampled = GenerateOptions::new().temperature(1.0).seed(seed).max_tokens(60);
        let greedy = GenerateOptions::new().temperature(0.0).max_tokens(60);
        for options in [sampled, greedy] {
            let expected = expected(&engine, budget, &options);
            let limited = options.max_thinking_tokens(budget);
            let closed = expected.iter().position(|&token| token == CLOSE);
            for options in [limited.clone(), limited.clone().lookahead(3), limited.top_logprobs(1)]
            {
                let found = ask(&engine, options);
                assert_eq!(found.tokens, expected, "{budget}");
                let thought = closed.unwrap_or(found.tokens.len());
                assert_eq!(found.done.usage.reasoning_tokens, thought.min(budget));
            }
            forced += usize::from(closed == Some(budget));
        }
    }
    assert!(forced >= 8, "{forced} were cut");
}

#[test]
fn budgets_are_kept_in_batches() {
    let engine = engine(OPENED, false);
    let options = |seed: u64| {
        let budget = match seed % 4 {
            0 => 0,
            1 => 1,
            2 => 50,
            _ => 9,
        };
        let options = GenerateOptions::new().temperature(1.0).seed(seed).max_tokens(60);
        options.max_thinking_tokens(budget)
    };
    let alone: Vec<_> = (0..12).map(|seed| ask(&engine, options(seed)).tokens).collect();
    let messages = || vec![Message::user("hi")];
    let streams: Vec<_> =
        (0..12).map(|seed| engine.chat(messages(), options(seed)).expect("a stream")).collect();
    let together = streams.into_iter().map(|stream| stream.wait().expect("a text").tokens);
    assert_eq!(together.collect::<Vec<_>>(), alone);
    let samples = engine.generate_many(messages(), options(1), 3).expect("streams");
    for sample in samples {
        assert_eq!(sample.wait().expect("a text").tokens[1], CLOSE, "each has its own");
    }
}

#[test]
fn a_marker_of_several_tokens_is_forced_as_a_whole() {
    let engine = engine(OPENED, true);
    let text = "abcdef</think>g";
    let close = script(&engine, "</think>");
    for budget in [0, 1, 5] {
        let found = ask(&engine, says(&engine, text).max_thinking_tokens(budget));
        // The script goes on where it is, behind the tokens that were forced.
        assert_eq!(found.tokens[budget..budget + close.len()], close);
        assert_eq!(found.reasoning, "abcdef"[..budget]);
        assert_eq!(found.done.usage.reasoning_tokens, budget);
        let limited = says(&engine, text).max_thinking_tokens(budget);
        for cut in [budget, budget + 2, budget + close.len()] {
            let resumed = limited.clone().generated_tokens(found.tokens[..cut].to_vec());
            assert_eq!(ask(&engine, resumed).tokens, found.tokens[cut..]);
        }
    }
    let found = ask(&engine, says(&engine, text).max_thinking_tokens(6));
    assert_eq!((&*found.reasoning, &*found.text), ("abcdef", "g"));
}

/// Allows some tokens, each at its place, and then an end.
#[derive(Clone)]
struct Exactly(Vec<u32>, Option<TokenMask>);

impl Constraint for Exactly {
    fn begin(&self) -> Box<dyn ConstraintState> {
        Box::new(self.clone())
    }
}

impl ConstraintState for Exactly {
    fn mask(&mut self) -> Result<&TokenMask, Error> {
        let mut mask = TokenMask::none(VOCABULARY);
        mask.insert(*self.0.first().unwrap_or(&END));
        Ok(self.1.insert(mask))
    }

    fn accept(&mut self, token: u32) -> Result<(), Error> {
        assert_eq!(token, *self.0.first().unwrap_or(&END));
        self.0.drain(..self.0.len().min(1));
        Ok(())
    }
}

fn only(engine: &Engine, text: &str) -> SharedConstraint {
    SharedConstraint::new(Exactly(script(engine, text), None))
}

#[test]
fn constraints_apply_behind_the_closing_marker() {
    let (plain, opened) = (engine(PLAIN, false), engine(OPENED, false));
    let form = |engine: &Engine, options: GenerateOptions| {
        let found = ask(engine, options.constraint(only(engine, "yes")).max_tokens(70));
        (found.reasoning, found.text)
    };
    let answer = |reasoning: &str| (reasoning.to_owned(), "yes".to_owned());
    // The processor agrees with the constraint.
    assert_eq!(form(&plain, says(&plain, "<think>no</think>yes")), answer("no"));
    assert_eq!(form(&opened, says(&opened, "no</think>yes")), answer("no"));
    assert_eq!(form(&plain, says(&plain, "yes")), answer(""), "it may answer at once");
    // An end inside the reasoning closes it.
    let ends = [script(&opened, "no"), vec![END], script(&opened, "yes")].concat();
    let ends = GenerateOptions::new().logits_processors([SharedProcessor::new(Script(ends))]);
    assert_eq!(form(&opened, ends), answer("no"));
}

#[test]
fn budgets_hold_before_constraints() {
    let (plain, opened) = (engine(PLAIN, false), engine(OPENED, false));
    for (engine, budget, seed) in
        [(&opened, 0, 1), (&opened, 5, 2), (&plain, 3, 3), (&opened, 50, 4)]
    {
        let options = GenerateOptions::new().temperature(1.0).seed(seed).max_tokens(80);
        let options = options.max_thinking_tokens(budget).constraint(only(engine, "yes"));
        for options in [options.clone(), options.lookahead(4)] {
            let found = ask(engine, options);
            assert_eq!(found.text, "yes", "whatever was thought");
            assert!(found.done.usage.reasoning_tokens <= budget);
            assert_eq!(found.done.finish_reason, FinishReason::Stop);
        }
    }
    // Continued in the reasoning, behind it and in the answer.
    let options = || {
        let options = GenerateOptions::new().temperature(1.0).seed(9).max_tokens(80);
        options.max_thinking_tokens(4).constraint(only(&opened, "yes"))
    };
    let whole = ask(&opened, options()).tokens;
    for cut in 1..whole.len() {
        let resumed = options().generated_tokens(whole[..cut].to_vec());
        assert_eq!(ask(&opened, resumed).tokens, whole[cut..], "{cut}");
    }
}

#[test]
fn templates_know_whether_to_think_and_how_much() {
    let (plain, opened) = (engine(PLAIN, false), engine(OPENED, false));
    let read = |engine: &Engine, options: GenerateOptions| {
        let tokens = engine.tokenize_chat(&[Message::user("hi")], &options).expect("tokens");
        engine.shared.tokenizer.as_ref().expect("one").decode(&tokens, false).expect("a text")
    };
    let off = "uhi<end>a<think>\n\n</think>\n\n";
    let new = GenerateOptions::new;
    assert_eq!(read(&plain, new()), "uhi<end>a");
    assert_eq!(read(&plain, new().enable_thinking(false)), off);
    assert_eq!(read(&plain, new().max_thinking_tokens(0)), off);
    assert_eq!(read(&plain, new().reasoning_effort(ReasoningEffort::None)), off);
    assert_eq!(read(&plain, new().reasoning_effort(ReasoningEffort::Low)), "uhi<end>a");
    let both = new().enable_thinking(true).reasoning_effort(ReasoningEffort::None);
    assert_eq!(read(&plain, both), "uhi<end>a", "the plainest word decides");
    let variables = [("enable_thinking".to_owned(), true.into())].into_iter().collect();
    let given = new().enable_thinking(false).chat_template_kwargs(variables);
    assert_eq!(read(&plain, given), "uhi<end>a", "variables go before");
    let low = new().reasoning_effort(ReasoningEffort::Low);
    assert_eq!(read(&opened, low), "lowhi<end>a<think>\n");
    let none = || new().reasoning_effort(ReasoningEffort::None);
    assert_eq!(read(&opened, none()), "nonehi<end>a<think>\n", "it has no other word for it");
    let told = engine(&format!("{OPENED}{{# enable_thinking #}}"), false);
    assert_eq!(read(&told, none()), "hi<end>a<think>\n");
    let kept = engine("{{ preserve_thinking }}{{ enable_thinking }}", false);
    assert_eq!(read(&kept, new()), "");
    assert_eq!(read(&kept, new().preserve_thinking(true)), "True", "it says nothing of the answer");
    assert_eq!(read(&kept, new().preserve_thinking(false)), "False");
    assert_eq!(read(&plain, new().preserve_thinking(true)), "uhi<end>a", "it does not know it");

    // A template that opens it nevertheless is answered at once.
    let found = ask(&opened, new().enable_thinking(false).temperature(0.0).max_tokens(5));
    assert_eq!(found.tokens[0], CLOSE);
    let found = ask(&plain, says(&plain, "<think>a").enable_thinking(false));
    assert_eq!((&*found.reasoning, &*found.text), ("", "<think>a"), "the prompt has closed it");
}

#[test]
fn histories_have_their_reasoning_by_any_name() {
    let engine = engine(PLAIN, false);
    for name in ["reasoning_content", "reasoning", "thinking"] {
        let mut answer = Message::assistant("b");
        answer.fields.insert(name.to_owned(), "why".into());
        let messages = [answer, Message::user("c")];
        let tokens = engine.tokenize_chat(&messages, &GenerateOptions::new()).expect("tokens");
        assert_eq!(tokens, script(&engine, "a<think>why</think>b<end>uc<end>a"), "{name}");
    }
    let answer = Message::assistant("b").with_reasoning("why");
    assert_eq!(answer.fields["reasoning_content"], "why");
}
