//! Log-probabilities of given texts, and classification by them.

use futures::{StreamExt, stream};
use setun_clock::Instant;

use super::{Engine, chat_prompt::Reading, generate::RequestInput};
use crate::{
    error::Error,
    event::TextDelta,
    options::{GenerateOptions, Prompt},
    sequence::{PromptRange, TaskRequest},
    stream::GenerationStream,
};

/// How likely a continuation is after its prompt.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Score {
    /// Its tokens, each with its log-probability after all before it.
    pub tokens: Vec<TextDelta>,
    /// The natural logarithm of the probability that the model continues the prompt so: the sum
    /// of those of the tokens.
    pub logprob: f64,
}

impl Score {
    /// The mean of its tokens' log-probabilities, which does not prefer short texts.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a count of tokens")]
    pub fn mean_logprob(&self) -> f64 {
        self.logprob / self.tokens.len().max(1) as f64
    }
}

/// Which of several texts comes next, where it is one of them.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Classification {
    /// The place of the likeliest; of equals, the first.
    pub best: usize,
    /// The probability of each, which together are 1.
    pub probabilities: Vec<f64>,
    /// What they follow from.
    pub scores: Vec<Score>,
}

impl Engine {
    /// How likely the model finds each of these continuations of a prompt, which is computed
    /// once. A text is scored in the tokens that it has together with its prompt: where a token
    /// reaches over the border, from that token on.
    ///
    /// # Errors
    ///
    /// If a continuation is empty or does not fit, the model lacks what the prompt needs, or a
    /// step fails.
    pub async fn score(
        &self,
        prompt: impl Into<Prompt>,
        continuations: &[impl AsRef<str>],
    ) -> Result<Vec<Score>, Error> {
        let prompt = prompt.into();
        let tokens = self.tokens(prompt.clone(), true)?;
        let joined = continuations.iter().map(|text| self.join(&prompt, &tokens, text.as_ref()));
        let joined = joined.collect::<Result<Vec<_>, Error>>()?;
        let shared = joined.iter().map(|&(_, from)| from).min().unwrap_or(0);
        if joined.len() > 1 && shared > 1 {
            self.run(tokens[..shared].to_vec(), None).await?;
        }
        let scores = joined.into_iter().map(|(tokens, from)| self.run(tokens, Some(from)));
        let scores = stream::iter(scores).buffered(self.max_concurrent());
        let scores: Vec<Result<_, Error>> = scores.collect().await;
        scores.into_iter().map(|tokens| tokens.map(Score::of)).collect()
    }

    /// Which of these labels the model continues a prompt with, and how surely.
    ///
    /// # Errors
    ///
    /// As [`score`](Self::score); also if there are no labels.
    pub async fn classify(
        &self,
        prompt: impl Into<Prompt>,
        labels: &[impl AsRef<str>],
    ) -> Result<Classification, Error> {
        if labels.is_empty() {
            let (found, expected) = ("none".into(), "one or more".into());
            return Err(Error::BadOption { option: "labels", found, expected });
        }
        Ok(Classification::of(self.score(prompt, labels).await?))
    }

    /// The tokens of a prompt with its continuation, and where those begin that are not the
    /// prompt's own.
    fn join(
        &self,
        prompt: &Prompt,
        tokens: &[u32],
        more: &str,
    ) -> Result<(Vec<u32>, usize), Error> {
        let fits = Some(self.shared.context_length);
        let joined = match prompt {
            Prompt::Text(text) => self.encode(&format!("{text}{more}"), true, fits)?,
            Prompt::Tokens(_) | Prompt::Chat(_) => {
                [tokens, &self.encode(more, false, fits)?].concat()
            }
        };
        let from = tokens.iter().zip(&joined).take_while(|(one, other)| one == other).count();
        if more.is_empty() || from == joined.len() {
            let (found, expected) = ("no tokens".into(), "one or more".into());
            return Err(Error::BadOption { option: "continuation", found, expected });
        }
        let context = self.context_length();
        if joined.len() > context {
            return Err(Error::ContextFull { tokens: joined.len(), context });
        }
        Ok((joined, from))
    }

    /// Computes a prompt and generates no token. The events are those of
    /// [`generate`](Self::generate) without texts: with `prompt_logprobs` the prompt, then the end.
    /// Of the options those of the prompt and of scheduling count, and `top_logprobs`.
    ///
    /// # Errors
    ///
    /// As [`generate`](Self::generate), but a prompt may fill the context.
    pub fn prefill(
        &self,
        prompt: impl Into<Prompt>,
        options: GenerateOptions,
    ) -> Result<GenerationStream, Error> {
        let (prompt, arrival_time) = (prompt.into(), self.shared.clock.now());
        let options = self.with_defaults(&prompt, options);
        options.check()?;
        let prompt = self.read_prompt(prompt, Reading::of(&options, arrival_time))?;
        let (tokens, context) = (prompt.len(), self.context_length());
        if tokens > context {
            return Err(Error::ContextFull { tokens, context });
        }
        let from = (options.prompt_logprobs == Some(true)).then_some(0);
        let input = scored(prompt, from, arrival_time);
        let given = GenerateOptions {
            top_logprobs: options.top_logprobs,
            prompt_progress: options.prompt_progress,
            timeout: options.timeout,
            queue_timeout: options.queue_timeout,
            priority: options.priority,
            cache_salt: options.cache_salt,
            ..self.prompt_only()
        };
        self.submit_one(input, given)
    }

    /// Runs tokens and chooses none; what the model thought of them from one on.
    async fn run(&self, prompt: Vec<u32>, from: Option<usize>) -> Result<Vec<TextDelta>, Error> {
        let input = scored(prompt, from, self.shared.clock.now());
        let stream = self.submit_one(input, self.prompt_only())?;
        Ok(stream.finish().await?.prompt)
    }
}

/// A prompt that is computed, with log-probabilities from one of its tokens on.
fn scored(prompt: Vec<u32>, from: Option<usize>, arrival_time: Instant) -> RequestInput {
    let range = from.map(|from| PromptRange { from, decoder: None });
    let (task, shortened, tool_use) = (TaskRequest::Score(range), None, None);
    RequestInput { arrival_time, prompt, shortened, max_tokens: 0, task, tool_use, thinking: None }
}

impl Score {
    fn of(tokens: Vec<TextDelta>) -> Self {
        let logprob = tokens.iter().filter_map(|token| token.logprob).sum();
        Self { tokens, logprob }
    }
}

impl Classification {
    /// Of one score or more.
    fn of(scores: Vec<Score>) -> Self {
        let likelier = |best: usize, place: usize| {
            if scores[place].logprob > scores[best].logprob { place } else { best }
        };
        let best = (0..scores.len()).fold(0, likelier);
        let weight = |score: &Score| libm::exp(score.logprob - scores[best].logprob);
        let total: f64 = scores.iter().map(weight).sum();
        let probabilities = scores.iter().map(|score| weight(score) / total).collect();
        Self { best, probabilities, scores }
    }
}
