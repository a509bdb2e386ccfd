//! Memory that an engine gives back.

use futures::channel::oneshot;

use super::{Engine, Handle};
use crate::{
    command::{Chore, Command, Relieved},
    error::Error,
    pressure::Pressure,
};

impl Engine {
    /// Gives memory back, after the step under way; the future tells how many bytes of the cache.
    /// What is told is done even if nobody waits for it. Texts do not change: what is needed again
    /// is computed again, to the same bits.
    ///
    /// [`Pressure::Moderate`] forgets what is kept for prompts that begin as others did, and gives
    /// back all memory of the cache but what generations under way hold, and the buffers of steps.
    /// [`Pressure::Critical`] also has generations that nobody reads give up what they hold, and a
    /// [draft](crate::EngineBuilder::draft) all of its cache, which rests until what is under way has ended. A
    /// cache grows again as it is used; [`limit_cache`](Self::limit_cache) holds it to less.
    ///
    /// WebAssembly never returns memory to its host; there it becomes free for other use in the
    /// same instance. A GPU's goes back to the device.
    ///
    /// # Errors
    ///
    /// If the engine has ended, or the device fails.
    pub fn relieve(
        &self,
        pressure: Pressure,
    ) -> impl Future<Output = Result<usize, Error>> + use<> {
        sum(self.tell(|reply| Chore::Relieve { pressure, reply }))
    }

    /// Holds the cache of each device to so many bytes from now on, though never to less than one
    /// context; `usize::MAX` gives it what it was built with again. What is kept for prompts goes
    /// first, then the generations with the least claim wait until there is room for them. A
    /// draft's cache of as many positions is part of it. The future tells how many bytes were given
    /// back.
    ///
    /// # Errors
    ///
    /// As [`relieve`](Self::relieve).
    pub fn limit_cache(&self, bytes: usize) -> impl Future<Output = Result<usize, Error>> + use<> {
        sum(self.tell(|reply| Chore::LimitCache { bytes, reply }))
    }

    /// Tells each owner at once; where each answers.
    fn tell(&self, chore: impl Fn(Relieved) -> Chore) -> Vec<Result<Answer, Error>> {
        let tell = |owner: &Handle| {
            let (reply, answer) = oneshot::channel();
            owner.send(Command::Chore(chore(reply))).map(|()| answer)
        };
        self.owners.iter().map(tell).collect()
    }
}

type Answer = oneshot::Receiver<Result<usize, Error>>;

async fn sum(told: Vec<Result<Answer, Error>>) -> Result<usize, Error> {
    let mut bytes = 0;
    for answer in told {
        bytes += answer?.await.map_err(|_| Error::Disposed)??;
    }
    Ok(bytes)
}
