//! A replica: one engine with a queue, a batch and a cache, as the scheduler of `setun-engine` runs
//! them.

mod plan;

use std::collections::VecDeque;

use crate::{
    cache::BlockCache,
    costs::StepCosts,
    limits::{BLOCK_TOKENS, Limits, MAX_ROWS},
    trace::Prepared,
};

/// What a replica tells of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReplicaEvent {
    /// It has its first place in the batch, with this many tokens of its prompt in the cache.
    Started { request: u32, cached: u32 },
    /// Its first token is there.
    FirstToken { request: u32 },
    /// It has ended.
    Ended { request: u32 },
}

/// A request that waits.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    request: u32,
    arrival: u64,
    generated: u32,
    computed: u32, // tokens that were in the cache at some time; 0 before its first place
    started: bool,
}

/// A request of the batch.
#[derive(Clone, Copy, Debug)]
struct Running {
    waiting: Waiting,
    context: u32, // tokens of its prompt and its output so far
    cached: u32,  // of these, in the cache
    rows: u32,    // of the step under way
    known: u32,   // blocks that it holds and others find
    unknown: u32, // blocks that it holds alone
}

impl Running {
    fn pending(&self) -> u32 {
        self.context - self.cached
    }

    fn decodes(&self) -> bool {
        self.pending() == 1
    }

    fn blocks(&self) -> u32 {
        self.known + self.unknown
    }
}

/// One engine.
#[derive(Clone, Debug)]
pub(crate) struct Replica {
    limits: Limits,
    cache: BlockCache,
    queue: VecDeque<Waiting>, // by arrival
    running: Vec<Running>,    // by arrival
    arrivals: u64,
    in_step: bool,
    /// Prompt tokens that it has computed.
    pub(crate) computed: u64,
    /// Tokens that it has computed again after a preemption.
    pub(crate) recomputed: u64,
    /// Requests that were preempted.
    pub(crate) preemptions: u64,
}

impl Replica {
    pub(crate) fn new(limits: Limits) -> Self {
        let cache =
            BlockCache::new(limits.cache / BLOCK_TOKENS, limits.prefix.div_ceil(BLOCK_TOKENS));
        Self {
            limits,
            cache,
            queue: VecDeque::new(),
            running: vec![],
            arrivals: 0,
            in_step: false,
            computed: 0,
            recomputed: 0,
            preemptions: 0,
        }
    }

    /// Requests that wait or run.
    pub(crate) fn open(&self) -> u32 {
        count(self.queue.len() + self.running.len())
    }

    /// Requests that wait.
    pub(crate) fn waiting(&self) -> u32 {
        count(self.queue.len())
    }

    /// Share of the cache that running requests hold.
    pub(crate) fn used(&self) -> f64 {
        f64::from(self.cache.held()) / f64::from(self.limits.cache / BLOCK_TOKENS)
    }

    /// It is lost with all that it has: its requests, by arrival.
    pub(crate) fn lose(&mut self) -> Vec<u32> {
        let running = self.running.drain(..).map(|running| running.waiting);
        let mut all: Vec<_> = running.chain(self.queue.drain(..)).collect();
        all.sort_by_key(|waiting| waiting.arrival);
        all.iter().map(|waiting| waiting.request).collect()
    }

    /// A request arrives.
    pub(crate) fn enqueue(&mut self, request: u32) {
        let arrival = self.arrivals;
        self.arrivals += 1;
        let waiting = Waiting { request, arrival, generated: 0, computed: 0, started: false };
        self.queue.push_back(waiting);
    }

    /// Begins a step, if none is under way and a request has work: its milliseconds.
    pub(crate) fn begin(
        &mut self,
        trace: &[Prepared],
        costs: &StepCosts,
        events: &mut Vec<ReplicaEvent>,
    ) -> Option<f64> {
        if self.in_step {
            return None;
        }
        self.admit(trace, events);
        if self.running.is_empty() {
            return None;
        }
        plan::share_rows(&mut self.running, MAX_ROWS, costs);
        self.reserve_all(trace);
        let rows = |decodes: bool| {
            let rows = self.running.iter().filter(|running| running.decodes() == decodes);
            rows.map(|running| running.rows).sum()
        };
        self.in_step = true;
        Some(costs.step(rows(true), rows(false)))
    }

    /// The step under way ends.
    pub(crate) fn end(&mut self, trace: &[Prepared], events: &mut Vec<ReplicaEvent>) {
        self.in_step = false;
        let mut running = std::mem::take(&mut self.running);
        running.retain_mut(|running| self.apply(running, trace, events));
        self.running = running;
    }

    /// Puts the rows of a step into the cache, and adds a token after the last. Whether its request
    /// goes on.
    fn apply(
        &mut self,
        running: &mut Running,
        trace: &[Prepared],
        events: &mut Vec<ReplicaEvent>,
    ) -> bool {
        let Running { waiting, .. } = *running;
        let request = &trace[waiting.request as usize];
        self.count_rows(running, request.prompt);
        running.cached += std::mem::take(&mut running.rows);
        let chain = request.whole(running.cached);
        if self.cache.record(chain, running.known) {
            let whole = count(chain.len());
            running.unknown -= whole - running.known;
            running.known = whole;
        }
        if running.pending() > 0 {
            return true;
        }
        running.waiting.generated += 1;
        running.context += 1;
        if running.waiting.generated == 1 {
            events.push(ReplicaEvent::FirstToken { request: waiting.request });
        }
        if running.waiting.generated < request.output {
            return true;
        }
        self.release(running, request);
        events.push(ReplicaEvent::Ended { request: waiting.request });
        false
    }

    /// Counts the rows of a step: of the prompt, and computed again.
    fn count_rows(&mut self, running: &mut Running, prompt: u32) {
        let (from, to) = (running.cached, running.cached + running.rows);
        let known = running.waiting.computed;
        let again = to.min(known) - from.min(known);
        let of_prompt = to.min(prompt) - from.min(prompt);
        self.recomputed += u64::from(again);
        self.computed += u64::from(of_prompt - again.min(of_prompt));
        running.waiting.computed = known.max(to);
    }

    fn release(&mut self, running: &Running, request: &Prepared) {
        self.cache.release(&request.blocks[..running.known as usize], running.unknown);
    }

    /// Starts waiting requests in order, as long as there is room for their tokens and one more.
    /// One whose prompt begins like one that is being computed lets others pass.
    fn admit(&mut self, trace: &[Prepared], events: &mut Vec<ReplicaEvent>) {
        let mut next = 0;
        while let Some(&waiting) = self.queue.get(next) {
            let request = &trace[waiting.request as usize];
            let context = request.prompt + waiting.generated;
            let (found, idle) = self.cache.found(request.whole(context - 1));
            if self.is_being_computed(request, context, found, trace) {
                next += 1;
            } else if self.has_room(context, found, idle) {
                self.queue.remove(next);
                self.start(waiting, request, context, found, events);
            } else {
                return;
            }
        }
    }

    fn start(
        &mut self,
        mut waiting: Waiting,
        request: &Prepared,
        context: u32,
        found: u32,
        events: &mut Vec<ReplicaEvent>,
    ) {
        self.cache.hold(&request.blocks[..found as usize]);
        let cached = found * BLOCK_TOKENS;
        if !waiting.started {
            waiting.started = true;
            waiting.computed = cached;
            events.push(ReplicaEvent::Started { request: waiting.request, cached });
        }
        let place = self.running.partition_point(|other| other.waiting.arrival < waiting.arrival);
        let running = Running { waiting, context, cached, rows: 0, known: found, unknown: 0 };
        self.running.insert(place, running);
    }

    /// Whether a prompt under way begins as this one does, further than what is in the cache.
    fn is_being_computed(
        &self,
        request: &Prepared,
        context: u32,
        found: u32,
        trace: &[Prepared],
    ) -> bool {
        let chain = request.whole(context - 1);
        let mut prompts = self.running.iter().filter(|running| running.pending() > 1);
        self.limits.prefix > 0
            && prompts.any(|running| {
                let other = trace[running.waiting.request as usize].whole(running.context);
                let index = found as usize;
                // A hash tells all tokens before it, too.
                index < chain.len().min(other.len()) && chain[index] == other[index]
            })
    }

    fn has_room(&self, context: u32, found: u32, idle: u32) -> bool {
        if self.running.is_empty() {
            return true; // it fits by itself
        }
        let blocks = (context + 1).div_ceil(BLOCK_TOKENS);
        let promised = self.running.iter().map(|running| {
            (running.context + 1).div_ceil(BLOCK_TOKENS).saturating_sub(running.blocks())
        });
        count(self.running.len()) < self.limits.max_concurrent
            && blocks - found + idle + promised.sum::<u32>() <= self.cache.free()
    }

    /// Blocks for the rows of a step, first for those that came first. Where they run out, the
    /// request that came last is preempted.
    fn reserve_all(&mut self, trace: &[Prepared]) {
        let mut index = 0;
        while let Some(&running) = self.running.get(index) {
            let needed = (running.cached + running.rows).div_ceil(BLOCK_TOKENS) - running.blocks();
            if needed <= self.cache.free() {
                self.cache.take(needed);
                self.running[index].unknown += needed;
                index += 1;
            } else if let Some(last) = self.running.pop() {
                self.preempt(last, trace);
            }
        }
    }

    fn preempt(&mut self, last: Running, trace: &[Prepared]) {
        self.preemptions += 1;
        self.release(&last, &trace[last.waiting.request as usize]);
        let place = self.queue.partition_point(|other| other.arrival < last.waiting.arrival);
        self.queue.insert(place, last.waiting);
    }
}

fn count(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
