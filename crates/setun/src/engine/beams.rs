//! Starting beam searches.

use futures::channel::oneshot;

use super::Engine;
use crate::{
    beams::{BeamGeneration, BeamOptions},
    error::Error,
    options::{GenerateOptions, Prompt},
    owner::Command,
    sequence::SearchRequest,
    stream::GenerationStream,
};

impl Engine {
    /// The likeliest texts after a prompt, by beam search; see [`BeamOptions`]. All beams run in the
    /// steps of other generations, and what is found depends on neither.
    ///
    /// Of the options of sampling those count that act on single tokens: penalties, biases, bans,
    /// `min_tokens` and one's own processors. The prompt, stop strings, `max_tokens`, `priority` and
    /// `deadline` are as for [`generate`](Self::generate). A search that is over its deadline or
    /// cancelled gives the best of what it has.
    ///
    /// # Errors
    ///
    /// As [`generate`](Self::generate); also if an option of the beams is out of its range, there
    /// are more of them than the engine has streams, or a form, a filter, a context strategy or
    /// log-probabilities are asked for.
    /// What goes wrong later comes from the future.
    pub fn beams(
        &self,
        prompt: impl Into<Prompt>,
        beams: BeamOptions,
        options: GenerateOptions,
    ) -> Result<BeamGeneration, Error> {
        let options = self.shared.unless.apply(options);
        options.check()?;
        beams.check()?;
        let bad =
            |option, found: String, expected| Err(Error::BadOption { option, found, expected });
        let most = self.shared.streams;
        if beams.beams > most {
            let expected = format!("1 to {most}, the streams of the engine");
            return bad("beams", beams.beams.to_string(), expected);
        }
        if options.form.is_some() {
            return bad("form", "given".into(), "none with beams".into());
        }
        if options.logprobs || options.top_logprobs > 0 || options.echo {
            return bad("logprobs", "true".into(), "false with beams, which have scores".into());
        }
        if options.context.is_some() {
            return bad("context", "given".into(), "none with beams".into());
        }
        if options.filter.is_some() {
            return bad("filter", "given".into(), "none with beams".into());
        }
        let plan = self.plan(prompt.into(), &options)?;
        let (mut requests, owner) = self.requests(plan, options, 1)?;
        let mut request = requests.pop().ok_or(Error::Disposed)?;
        let (reply, texts) = oneshot::channel();
        (request.search, request.lookahead) = (Some(SearchRequest { options: beams, reply }), 0);
        let stream = GenerationStream::new(request.queue.clone(), owner.commands.clone());
        owner.send(Command::Generate(Box::new(request)))?;
        Ok(BeamGeneration::new(stream, texts))
    }
}
