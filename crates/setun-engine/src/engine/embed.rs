//! Embeddings of texts.

use futures::{StreamExt, channel::oneshot, stream};

use super::{Engine, generate::RequestInput};
use crate::{
    error::Error,
    options::Prompt,
    pooling::Pooling,
    sequence::{Pool, TaskRequest},
};

/// A text as a vector.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Embedding {
    /// `[hidden]`; of length 1 if that was requested, unless all are 0.
    pub values: Vec<f32>,
    /// Tokens of the text.
    pub tokens: usize,
    /// Those of them that were found in the prefix cache.
    pub cached_tokens: usize,
}

impl Engine {
    /// What the model makes of each of these texts, in their order; one that fails spoils no
    /// other. With `normalised` the vectors have the length 1, so that their products are
    /// cosines. The prefixes of texts that are in the cache are used for [`Pooling::Last`].
    pub async fn embed<P: Into<Prompt>>(
        &self,
        texts: impl IntoIterator<Item = P>,
        pooling: Pooling,
        normalised: bool,
    ) -> Vec<Result<Embedding, Error>> {
        let embed = |text: P| self.embed_one(text.into(), pooling, normalised);
        stream::iter(texts).map(embed).buffered(self.max_concurrent()).collect().await
    }

    async fn embed_one(
        &self,
        text: Prompt,
        pooling: Pooling,
        normalised: bool,
    ) -> Result<Embedding, Error> {
        let prompt = self.tokens(text, true)?;
        let (tokens, context) = (prompt.len(), self.context_length());
        if tokens > context {
            return Err(Error::ContextFull { tokens, context });
        }
        let (reply, pooled) = oneshot::channel();
        let task = TaskRequest::Embed(Pool::new(pooling, reply));
        let arrival_time = self.shared.clock.now();
        let input = RequestInput {
            arrival_time,
            prompt,
            shortened: None,
            max_tokens: 0,
            task,
            tool_use: None,
            thinking: None,
        };
        let done = self.submit_one(input, self.prompt_only())?.finish().await?.done;
        let cached_tokens = done.usage.cached_tokens;
        let (sums, count) = pooled.await.map_err(|_| Error::Disposed)?;
        Ok(Embedding { values: finished(sums, count, normalised), tokens, cached_tokens })
    }
}

#[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "a mean, rounded")]
fn finished(mut sums: Vec<f64>, count: usize, normalised: bool) -> Vec<f32> {
    let squares: f64 = sums.iter().map(|sum| sum * sum).sum();
    let divisor = if normalised { libm::sqrt(squares) } else { count as f64 };
    if divisor > 0.0 {
        for sum in &mut sums {
            *sum /= divisor;
        }
    }
    sums.into_iter().map(|value| value as f32).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_and_directions() {
        assert_eq!(finished(vec![6.0, -8.0], 2, false), [3.0, -4.0]);
        assert_eq!(finished(vec![6.0, -8.0], 2, true), [0.6, -0.8]);
        assert_eq!(finished(vec![0.0, 0.0], 2, true), [0.0, 0.0]);
    }
}
