//! Answers from memory in place of a network, for fuzz targets. Not an interface.

use std::{
    cell::RefCell,
    collections::VecDeque,
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex, PoisonError},
};

use ureq::{
    Agent, Error,
    config::Config,
    http::Uri,
    unversioned::{
        resolver::{ResolvedSocketAddrs, Resolver},
        transport::{Buffers, ConnectionDetails, Connector, LazyBuffers, NextTimeout, Transport},
    },
};

thread_local! {
    static ANSWERS: RefCell<Option<Answers>> = const { RefCell::new(None) };
}

/// Runs `work`, whose pulls reach no network: what each connection says is the next of these, and
/// after the last there are no connections.
pub fn with_answers<T>(answers: impl IntoIterator<Item = Vec<u8>>, work: impl FnOnce() -> T) -> T {
    let answers = Answers(Arc::new(Mutex::new(answers.into_iter().collect())));
    ANSWERS.set(Some(answers));
    let result = work();
    ANSWERS.set(None);
    result
}

/// The agent of a configuration, over answers from memory where there are any.
pub(crate) fn agent(config: Config) -> Agent {
    match ANSWERS.with_borrow(Clone::clone) {
        Some(answers) => Agent::with_parts(config, answers, OneAddress),
        None => config.new_agent(),
    }
}

/// What connections say, one after the other.
#[derive(Clone, Debug)]
struct Answers(Arc<Mutex<VecDeque<Vec<u8>>>>);

impl Connector for Answers {
    type Out = Answer;

    fn connect(
        &self,
        details: &ConnectionDetails<'_>,
        _: Option<()>,
    ) -> Result<Option<Answer>, Error> {
        let mut answers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = answers.pop_front().ok_or(Error::ConnectionFailed)?;
        let config = details.config;
        let buffers = LazyBuffers::new(config.input_buffer_size(), config.output_buffer_size());
        Ok(Some(Answer { bytes: bytes.into(), buffers }))
    }
}

/// A connection that says these bytes whatever it is asked, and ends.
#[derive(Debug)]
struct Answer {
    bytes: VecDeque<u8>,
    buffers: LazyBuffers,
}

impl Transport for Answer {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(&mut self, _: usize, _: NextTimeout) -> Result<(), Error> {
        Ok(())
    }

    fn await_input(&mut self, _: NextTimeout) -> Result<bool, Error> {
        let room = self.buffers.input_append_buf();
        let count = room.len().min(self.bytes.len());
        for (place, byte) in room.iter_mut().zip(self.bytes.drain(..count)) {
            *place = byte;
        }
        self.buffers.input_appended(count);
        Ok(count > 0)
    }

    fn is_open(&mut self) -> bool {
        !self.bytes.is_empty()
    }

    fn is_tls(&self) -> bool {
        true // so that addresses of https are reached, too
    }
}

/// No name is looked up.
#[derive(Debug)]
struct OneAddress;

impl Resolver for OneAddress {
    fn resolve(&self, _: &Uri, _: &Config, _: NextTimeout) -> Result<ResolvedSocketAddrs, Error> {
        let mut addresses = self.empty();
        addresses.push(SocketAddr::from((Ipv4Addr::LOCALHOST, 1)));
        Ok(addresses)
    }
}
