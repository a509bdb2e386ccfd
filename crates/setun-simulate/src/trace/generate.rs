//! Made-up traces: conversations, single prompts with shared beginnings, bursts of these.

use super::Request;
use crate::{
    error::SimulateError,
    random::{Random, Zipf},
};

/// Mean time between a reply and the next message of a conversation, in milliseconds.
const THINK_MS: f64 = 15_000.0;

/// Mean number of requests of a burst, and the time that it takes.
const BURST_REQUESTS: f64 = 20.0;
const BURST_MS: f64 = 1000.0;

/// Most requests a second: conversations of many seconds overlap.
const MAX_RATE: f64 = 100_000.0;

/// What a trace is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceKind {
    /// Conversations of several turns, each after one of the system prompts.
    Conversations,
    /// Single messages, each after one of the system prompts.
    Prompts,
    /// The same, in groups with one system prompt.
    Bursts,
}

/// How many requests a trace has, and how long they are.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceOptions {
    /// Requests; at least 1.
    pub requests: u32,
    /// Requests a second on average, if none has to wait.
    pub rate: f64,
    /// System prompts, which have Zipf's law; at least 1.
    pub system_prompts: u32,
    /// Mean tokens of a system prompt.
    pub system_tokens: u32,
    /// Mean turns of a conversation.
    pub turns: u32,
    /// Mean tokens of a message.
    pub message_tokens: u32,
    /// Mean tokens of a reply.
    pub output: u32,
    /// The same seed gives the same trace.
    pub seed: u64,
}

impl Default for TraceOptions {
    fn default() -> Self {
        Self {
            requests: 1000,
            rate: 1.0,
            system_prompts: 50,
            system_tokens: 400,
            turns: 5,
            message_tokens: 60,
            output: 40,
            seed: 0,
        }
    }
}

impl TraceOptions {
    fn check(&self) -> Result<(), SimulateError> {
        let wrong = |option, found: String, expected: &str| {
            Err(SimulateError::Option { option, found, expected: expected.to_owned() })
        };
        if !(self.rate > 0.0 && self.rate.is_finite()) {
            return wrong("rate", self.rate.to_string(), "a number above 0");
        }
        if self.rate > MAX_RATE {
            return wrong("rate", self.rate.to_string(), "at most 100,000 requests a second");
        }
        let counts = [
            ("requests", self.requests),
            ("system_prompts", self.system_prompts),
            ("system_tokens", self.system_tokens),
            ("turns", self.turns),
            ("message_tokens", self.message_tokens),
            ("output", self.output),
        ];
        match counts.into_iter().find(|(_, count)| *count == 0) {
            Some((option, _)) => wrong(option, "0".to_owned(), "at least 1"),
            None => Ok(()),
        }
    }
}

/// Makes a trace.
///
/// # Errors
///
/// If an option is 0, or the rate is not a number above it.
pub fn generate(kind: TraceKind, options: &TraceOptions) -> Result<Vec<Request>, SimulateError> {
    options.check()?;
    let mut random = Random::new(options.seed);
    let tokens = (0..options.system_prompts).map(|_| random.around(options.system_tokens));
    let mut source = Source {
        systems: tokens.collect(),
        zipf: Zipf::new(options.system_prompts),
        random,
        options,
        requests: vec![],
    };
    match kind {
        TraceKind::Conversations => source.conversations(),
        TraceKind::Prompts => source.prompts(),
        TraceKind::Bursts => source.bursts(),
    }
    let mut requests = source.requests;
    requests.sort_by_key(|request| request.at_ms); // stable, so that turns stay in their order
    requests.truncate(options.requests as usize);
    Ok(requests)
}

struct Source<'a> {
    systems: Vec<u32>, // tokens of each system prompt
    zipf: Zipf,
    random: Random,
    options: &'a TraceOptions,
    requests: Vec<Request>,
}

impl Source<'_> {
    /// Conversations begin at random times; each message comes some time after the last reply.
    fn conversations(&mut self) {
        let mean = f64::from(self.options.turns) * 1000.0 / self.options.rate;
        // Those that are under way at the begin of the trace have begun before it.
        let mut begin = -THINK_MS * f64::from(self.options.turns);
        let wanted = self.options.requests as usize;
        let mut end = None; // those that begin later change none of the wanted requests
        for number in 0.. {
            begin += self.random.exponential(mean);
            let has_many = self.requests.len() >= wanted.saturating_mul(2);
            if has_many || (end.is_none() && self.requests.len() >= wanted) {
                end = Some(self.drop_unwanted());
            }
            if end.is_some_and(|end| begin > end) {
                return;
            }
            self.conversation(number, begin);
        }
    }

    /// Drops requests after the last that the trace will have, and returns its time.
    fn drop_unwanted(&mut self) -> f64 {
        let end = self.last_of_wanted();
        self.requests.retain(|request| to_f64(request.at_ms) <= end);
        end
    }

    /// Milliseconds of the last request that the trace will have.
    fn last_of_wanted(&self) -> f64 {
        let mut times: Vec<_> = self.requests.iter().map(|request| request.at_ms).collect();
        let index = self.options.requests as usize - 1;
        let (_, &mut time, _) = times.select_nth_unstable(index);
        to_f64(time)
    }

    fn conversation(&mut self, number: u32, begin: f64) {
        let Self { options, random, .. } = self;
        let key = format!("conversation-{number}");
        let turns = random.around(options.turns);
        let system = self.zipf.draw(random);
        let mut prompt = vec![(format!("system-{system}"), self.systems[system])];
        let mut time = begin;
        for turn in 0..turns {
            let message = (format!("{key}/{}", 2 * turn), random.around(options.message_tokens));
            prompt.push(message);
            let output = random.around(options.output);
            if time >= 0.0 {
                let prompt = prompt.clone();
                let request = Request { at_ms: to_ms(time), key: key.clone(), prompt, output };
                self.requests.push(request);
            }
            prompt.push((format!("{key}/{}", 2 * turn + 1), output));
            time += random.exponential(THINK_MS);
        }
    }

    fn prompts(&mut self) {
        let mut time = 0.0;
        for number in 0..self.options.requests {
            time += self.random.exponential(1000.0 / self.options.rate);
            let system = self.zipf.draw(&mut self.random);
            self.prompt(number, system, time);
        }
    }

    fn bursts(&mut self) {
        let (mut begin, mut number) = (0.0, 0);
        while number < self.options.requests {
            begin += self.random.exponential(BURST_REQUESTS * 1000.0 / self.options.rate);
            let system = self.zipf.draw(&mut self.random);
            let count = self.random.exponential(BURST_REQUESTS);
            let end = number.saturating_add(1 + to_count(count)).min(self.options.requests);
            for number in number..end {
                let time = begin + self.random.unit() * BURST_MS;
                self.prompt(number, system, time);
            }
            number = end;
        }
    }

    /// A single message after a system prompt, whose name is the key.
    fn prompt(&mut self, number: u32, system: usize, time: f64) {
        let name = format!("system-{system}");
        let message =
            (format!("message-{number}"), self.random.around(self.options.message_tokens));
        let prompt = vec![(name.clone(), self.systems[system]), message];
        let output = self.random.around(self.options.output);
        self.requests.push(Request { at_ms: to_ms(time), key: name, prompt, output });
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it saturates")]
fn to_ms(time: f64) -> u64 {
    time as u64
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it saturates")]
fn to_count(number: f64) -> u32 {
    number as u32
}

#[expect(clippy::cast_precision_loss, reason = "milliseconds of a trace")]
fn to_f64(time: u64) -> f64 {
    time as f64
}
