//! Release of an engine's memory.

use futures::channel::oneshot;

use super::{Engine, Handle};
use crate::{
    command::{Command, MaintenanceTask, ReleasedReply},
    error::Error,
    memory_pressure::Pressure,
};

impl Engine {
    /// Gives memory back, after the step under way; the future returns how many bytes of the cache.
    /// It is done even if the future is dropped. Texts do not change: what is needed again
    /// is computed again, to the same bits.
    ///
    /// [`Pressure::Moderate`] forgets what is kept for prompts that begin as others did and for
    /// tools that come again, and gives back all memory of the cache but what generations under way
    /// hold, and the buffers of steps.
    /// [`Pressure::Critical`] also has generations that nobody reads give up what they hold, and a
    /// draft all of its cache, which rests until what is under way has ended. A
    /// cache grows again as it is used; [`limit_cache`](Self::limit_cache) holds it to less.
    ///
    /// WebAssembly never returns memory to its host; there it becomes free for other use in the
    /// same instance. A GPU's goes back to the device.
    ///
    /// # Errors
    ///
    /// If the engine has ended, or the device fails.
    pub fn release_memory(
        &self,
        pressure: Pressure,
    ) -> impl Future<Output = Result<usize, Error>> + use<> {
        #[cfg(feature = "grammar")]
        self.shared.tool_grammars.clear();
        sum(self.tell(|reply| MaintenanceTask::ReleaseMemory { pressure, reply }))
    }

    /// Holds the cache of each device to this many bytes from now on, though never to less than one
    /// context; `usize::MAX` gives it what it was built with again. What is kept for prompts goes
    /// first, then the generations with the least claim wait until there is room for them. A
    /// draft's cache of as many positions is part of it. The future returns how many bytes were
    /// given back.
    ///
    /// # Errors
    ///
    /// As [`release_memory`](Self::release_memory).
    pub fn limit_cache(&self, bytes: usize) -> impl Future<Output = Result<usize, Error>> + use<> {
        sum(self.tell(|reply| MaintenanceTask::LimitCache { bytes, reply }))
    }

    /// Sends a task to each scheduler at once, and returns where each answers.
    fn tell(&self, task: impl Fn(ReleasedReply) -> MaintenanceTask) -> Vec<Result<Answer, Error>> {
        let tell = |scheduler: &Handle| {
            let (reply, answer) = oneshot::channel();
            scheduler.send(Command::Maintenance(task(reply))).map(|()| answer)
        };
        self.schedulers.iter().map(tell).collect()
    }
}

type Answer = oneshot::Receiver<Result<usize, Error>>;

async fn sum(reported: Vec<Result<Answer, Error>>) -> Result<usize, Error> {
    let mut bytes = 0;
    for answer in reported {
        bytes += answer?.await.map_err(|_| Error::Disposed)??;
    }
    Ok(bytes)
}
