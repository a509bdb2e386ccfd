//! Places of connections, and some more where all are taken: a server that is full still says that it is
//! healthy.

use std::{pin::pin, sync::Arc, time::Duration};

use futures::future::{Either, select};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::limits::Limits;

/// Connections beyond the limit, for requests that ask whether the server runs.
const SPARE: usize = 32;

/// Time of the headers, and of an answer that is not read, in one of those.
const SPARE_TIME: Duration = Duration::from_secs(2);

/// The places of a server.
#[derive(Debug)]
pub(crate) struct Places {
    /// Places of all connections; none if they have no limit.
    usual: Option<Arc<Semaphore>>,
    spare: Arc<Semaphore>,
}

/// The place of a connection, until it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    _permit: Option<OwnedSemaphorePermit>,
    /// Whether it is beyond the limit.
    pub(crate) is_spare: bool,
}

impl Places {
    pub(crate) fn new(limits: &Limits) -> Self {
        let usual = limits.connections.map(|most| Arc::new(Semaphore::new(most)));
        Self { usual, spare: Arc::new(Semaphore::new(SPARE)) }
    }

    /// Waits for a place.
    pub(crate) async fn wait(&self) -> Place {
        let Some(usual) = &self.usual else { return Place { _permit: None, is_spare: false } };
        if let Ok(permit) = Arc::clone(usual).try_acquire_owned() {
            return Place { _permit: Some(permit), is_spare: false };
        }
        let usual = pin!(Arc::clone(usual).acquire_owned());
        let spare = pin!(Arc::clone(&self.spare).acquire_owned());
        let (permit, is_spare) = match select(usual, spare).await {
            Either::Left((permit, _)) => (permit, false),
            Either::Right((permit, _)) => (permit, true),
        };
        Place { _permit: permit.ok(), is_spare } // neither is ever closed
    }

    /// A usual place in exchange for a spare one, if there is one by now.
    pub(crate) fn better(&self, place: Place) -> Place {
        match &self.usual {
            Some(usual) if place.is_spare => match Arc::clone(usual).try_acquire_owned() {
                Ok(permit) => Place { _permit: Some(permit), is_spare: false },
                Err(_) => place,
            },
            _ => place,
        }
    }
}

impl Place {
    /// The limits of its connection.
    pub(crate) fn limits(&self, mut limits: Limits) -> Limits {
        if self.is_spare {
            limits.header_timeout = limits.header_timeout.min(SPARE_TIME);
            limits.write_timeout = limits.write_timeout.min(SPARE_TIME);
        }
        limits
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[test]
    fn beyond_the_limit_there_are_spare_places_and_then_none() {
        let limits = Limits { connections: Some(2), ..Limits::default() };
        let places = Places::new(&limits);
        let wait = || places.wait().now_or_never();
        let usual = [(); 2].map(|()| wait().expect("a place"));
        assert!(usual.iter().all(|place| !place.is_spare));
        let mut spare: Vec<_> = (0..SPARE).map(|_| wait().expect("a spare place")).collect();
        assert!(spare.iter().all(|place| place.is_spare) && wait().is_none());
        assert_eq!(spare[0].limits(limits).header_timeout, SPARE_TIME);
        let last = places.better(spare.pop().expect("a place"));
        assert!(last.is_spare, "there is no other");
        drop(usual);
        assert!(!places.better(last).is_spare);
        assert!(!wait().expect("the other one").is_spare);
        let unlimited = Places::new(&Limits::default());
        assert!((0..100).all(|_| !unlimited.wait().now_or_never().expect("a place").is_spare));
    }
}
