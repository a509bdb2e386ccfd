//! Times of requests: their own or those of free clients, and each turn after the one before.

use crate::trace::Prepared;

/// What was sent, and what has ended.
pub(super) struct Clients {
    next: Vec<Option<u32>>, // by request: the turn after it
    is_due: Vec<bool>,
    has_ended: Vec<bool>,
    untaken: std::ops::Range<u32>, // those that no client has taken
}

impl Clients {
    /// Without a number of clients nothing is taken.
    pub(super) fn new(trace: &[Prepared], clients: Option<u32>) -> Self {
        let mut next = vec![None; trace.len()];
        for (number, request) in (0..).zip(trace) {
            if let Some(before) = request.follows {
                next[before as usize] = Some(number);
            }
        }
        let count = u32::try_from(trace.len()).unwrap_or(u32::MAX);
        let untaken = 0..clients.map_or(0, |_| count);
        Self {
            next,
            is_due: vec![false; trace.len()],
            has_ended: vec![false; trace.len()],
            untaken,
        }
    }

    /// The next request that no client has taken.
    pub(super) fn take(&mut self) -> Option<u32> {
        self.untaken.next()
    }

    /// The time of a request has come. Whether it is sent now, as the turn before it has ended.
    pub(super) fn is_ready(&mut self, request: u32, trace: &[Prepared]) -> bool {
        self.is_due[request as usize] = true;
        let before = trace[request as usize].follows;
        before.is_none_or(|before| self.has_ended[before as usize])
    }

    /// A request has ended: the turn after it, if that one's time has come.
    pub(super) fn has_ended(&mut self, request: u32) -> Option<u32> {
        self.has_ended[request as usize] = true;
        self.next[request as usize].filter(|&next| self.is_due[next as usize])
    }
}
