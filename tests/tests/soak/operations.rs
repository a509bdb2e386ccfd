//! Random requests: texts, searches, scores, sessions, forms, and what goes wrong with them.

use std::time::Duration;

use futures::executor::block_on;
use serde_json::json;
use setun::{
    BeamOptions, Engine, EngineError, ErrorCode, Event, GenerateOptions, GenerationStream,
    GrammarSpec, Pooling, Pressure, ops::random::Random,
};

/// Prompts, some of which begin alike.
const PROMPTS: [&str; 4] =
    ["Once upon a time", "Once upon a time, there was a dog. The dog", "The", "Lily and Tom went"];

/// Greedy texts have as many tokens.
const TOKENS: usize = 12;

/// A thread's way through the engine.
pub(crate) struct Caller<'a> {
    engine: &'a Engine,
    random: Random,
}

impl<'a> Caller<'a> {
    pub(crate) fn new(engine: &'a Engine, seed: u64) -> Self {
        Self { engine, random: Random::new(seed) }
    }

    /// Does one thing.
    ///
    /// # Panics
    ///
    /// If it fails in a way that it cannot, or a text is another than its request gives alone.
    pub(crate) fn operate(&mut self) {
        match self.random.below(14) {
            0..3 => self.greedy(),
            3 => self.drop_or_cancel(),
            4 => self.samples(),
            5 => self.form(),
            6 => self.refused_form(),
            7 | 8 => self.session(),
            9 => self.search(),
            10 => self.prompts_alone(),
            11 => self.deadline(),
            12 => self.bad_requests(),
            _ => self.maintenance(),
        }
    }

    fn prompt(&mut self) -> &'static str {
        self.random.pick(&PROMPTS)
    }

    /// Warm, of a random length and with a random step of sampling.
    fn options(&mut self) -> GenerateOptions {
        let tokens = 1 + self.random.below(40);
        let options = GenerateOptions::new().max_tokens(tokens).seed(self.random.bits());
        let options = options.temperature(0.9).priority(self.random.pick(&[-1, 0, 1]));
        match self.random.below(4) {
            0 => options.top_k(20),
            1 => options.logprobs(true).top_logprobs(2),
            2 => options.repetition_penalty(1.2).lookahead(0),
            _ => options.mirostat_tau(3.0),
        }
    }

    /// The same text as alone, however it is drafted, batched and preempted.
    fn greedy(&mut self) {
        let text = |lookahead| {
            let options = GenerateOptions::new().temperature(0.0).max_tokens(TOKENS);
            self.engine.complete(PROMPTS[1], options.lookahead(lookahead))
        };
        let [drafted, plain] = [7, 0].map(|n| settle(text(n)).map(|text| text.tokens));
        if let (Some(drafted), Some(plain)) = (drafted, plain) {
            assert_eq!(drafted, plain);
        }
    }

    fn drop_or_cancel(&mut self) {
        let (prompt, options) = (self.prompt(), self.options());
        let Some(mut stream) = settle(self.engine.generate(prompt, options)) else { return };
        let (handle, is_cancelled) = (stream.cancel_handle(), self.random.below(2) == 0);
        let mut has_ended = false;
        for _ in 0..self.random.below(6) {
            has_ended |= stream.take_ready().iter().any(is_end);
            std::thread::yield_now();
        }
        if is_cancelled && !has_ended {
            handle.cancel();
            read(stream);
        }
    }

    fn samples(&mut self) {
        let (prompt, options) = (self.prompt(), self.options());
        let count = 1 + self.random.below(4);
        let streams = settle(self.engine.generate_many(prompt, options, count));
        streams.into_iter().flatten().for_each(read);
    }

    fn form(&mut self) {
        let spec = match self.random.below(3) {
            0 => GrammarSpec::Regex("[a-z ]{3,9}(\\.|!)".into()),
            1 => GrammarSpec::Choice(vec!["yes".into(), "no".into(), "perhaps".into()]),
            _ => GrammarSpec::JsonSchema(json!({
                "type": "object",
                "properties": {"a": {"type": "string", "maxLength": 6}, "b": {"enum": [1, 2]}},
                "required": ["a", "b"],
                "additionalProperties": false,
            })),
        };
        let Some(form) = settle(self.engine.grammar(&spec)) else { return };
        let options = self.options().constraint(form);
        settle(self.engine.generate(self.prompt(), options)).into_iter().for_each(read);
    }

    fn refused_form(&mut self) {
        let nested = (0..200).fold(json!(true), |inner, _| json!({"items": inner}));
        let specs = [
            GrammarSpec::JsonSchema(nested),
            GrammarSpec::Lark("start: a".into()),
            GrammarSpec::Regex("(".repeat(300)),
        ];
        let error = self.engine.grammar(&specs[self.random.below(specs.len())]).map(drop);
        assert_eq!(error.expect_err("no form").code(), ErrorCode::BadOption);
    }

    fn session(&mut self) {
        let mut session = self.engine.session();
        session.push(PROMPTS[1].repeat(1 + self.random.below(4))).expect("a text");
        let options = self.options();
        settle(session.generate(options)).into_iter().for_each(read);
        let Some(mut saved) = settle(block_on(session.save())) else { return };
        let restored =
            settle(block_on(self.engine.restore(saved.clone()))).expect("what was saved");
        assert_eq!(restored.tokens(), session.tokens());
        let place = self.random.below(saved.len());
        saved[place] ^= 1;
        assert!(block_on(self.engine.restore(saved)).is_err(), "a damaged session");
    }

    fn search(&mut self) {
        let beams = 1 + self.random.below(4);
        let beams = BeamOptions { num_return_sequences: beams, ..BeamOptions::new(beams) };
        let options = GenerateOptions::new().max_tokens(1 + self.random.below(12));
        let Some(search) = settle(self.engine.beams(self.prompt(), beams, options)) else { return };
        if self.random.below(3) > 0 {
            settle(search.wait());
        }
    }

    fn prompts_alone(&mut self) {
        let prompt = self.prompt();
        if self.random.below(2) == 0 {
            settle(block_on(self.engine.score(prompt, &[" a", " the dog ran"])));
        } else {
            let found = block_on(self.engine.embed([prompt, "x"], Pooling::Mean, true));
            for embedding in found {
                settle(embedding);
            }
        }
    }

    fn deadline(&mut self) {
        let time = Duration::from_micros(self.random.below(3000) as u64 + 1);
        let options = self.options().timeout(time);
        settle(self.engine.generate(self.prompt(), options)).into_iter().for_each(read);
    }

    fn bad_requests(&mut self) {
        let far = u32::try_from(self.engine.vocab_size()).expect("a vocabulary");
        let long = vec![5; self.engine.context_length() + 1];
        for (prompt, code) in [
            (vec![far], ErrorCode::BadOption),
            (vec![], ErrorCode::BadOption),
            (long, ErrorCode::ContextFull),
        ] {
            let error = self.engine.generate(prompt, GenerateOptions::new()).map(drop);
            assert_eq!(error.expect_err("a bad prompt").code(), code);
        }
    }

    fn maintenance(&mut self) {
        match self.random.below(4) {
            0 => drop(settle(block_on(self.engine.release_memory(Pressure::Moderate)))),
            1 => drop(settle(block_on(self.engine.release_memory(Pressure::Critical)))),
            2 => self.engine.reset_prefix_cache().expect("an engine"),
            _ => {
                block_on(self.engine.start_profile()).expect("an engine");
                block_on(self.engine.end_profile()).expect("an engine");
            }
        }
    }
}

/// Reads to the end.
fn read(stream: GenerationStream) {
    let mut has_ended = false;
    for event in stream.blocking() {
        has_ended |= is_end(&event);
        settle(event);
    }
    assert!(has_ended, "a stream without an end");
}

fn is_end(event: &Result<Event, EngineError>) -> bool {
    matches!(event, Ok(Event::Done(_)) | Err(_))
}

/// What was asked for, unless others left no room for it.
fn settle<T>(result: Result<T, EngineError>) -> Option<T> {
    match result {
        Ok(result) => Some(result),
        Err(error) => {
            let code = error.code();
            assert!(matches!(code, ErrorCode::Busy | ErrorCode::OutOfMemory), "{error}");
            None
        }
    }
}
