//! Fields of requests that ask for events, and fields that all chunks of an answer share.

use crate::{error::ApiError, fields::Fields, request_id::new_id, unix_time::unix_seconds};

use super::usage::ChunkUsage;

/// How an answer comes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Streaming {
    pub(super) is_streamed: bool,
    pub(super) includes_usage: bool,
}

/// What an answer and each of its chunks begin with.
#[derive(Clone, Debug)]
pub(crate) struct Head {
    pub(crate) id: String,
    pub(crate) created: u64,
    pub(crate) model: String,
}

impl Streaming {
    pub(super) fn read(fields: &mut Fields) -> Result<Self, ApiError> {
        let is_streamed = fields.flag("stream")?.unwrap_or_default();
        let includes_usage = match fields.object("stream_options")? {
            Some(mut options) => options.flag("include_usage")?.unwrap_or_default(),
            None => false,
        };
        Ok(Self { is_streamed, includes_usage })
    }

    /// The usage of a chunk that is not the last.
    pub(super) fn pending(self) -> Option<ChunkUsage> {
        self.includes_usage.then_some(ChunkUsage::Pending(()))
    }
}

impl Head {
    pub(crate) fn new(prefix: &str, model: String) -> Self {
        Self { id: new_id(prefix), created: unix_seconds(), model }
    }
}
