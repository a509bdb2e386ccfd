//! The simulation: events in the order of their times, over a load balancer and its replicas.

mod clients;

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashSet},
};

use clients::Clients;

use crate::{
    error::SimulateError,
    limits::BLOCK_TOKENS,
    observed::{Answer, Run},
    options::Options,
    replica::{Replica, ReplicaEvent},
    report::{Loss, Report},
    router::{Load, Router},
    trace::{Prepared, Request, prepare},
};

/// Simulates a trace. With a lost replica it is simulated without the loss as well.
///
/// # Errors
///
/// If an option is out of its range, or a request has no room in the cache.
pub fn simulate(trace: &[Request], options: &Options) -> Result<Report, SimulateError> {
    let run = run(trace, options)?;
    let mut report = Report::new(options, &run);
    if let Some(lost) = options.lose {
        let whole = Options { lose: None, ..options.clone() };
        let whole = Report::new(&whole, &self::run(trace, &whole)?);
        report.loss = Some(Loss::new(lost, &report, &whole, &run));
    }
    Ok(report)
}

/// The answer to each request of a trace.
///
/// # Errors
///
/// As [`simulate`].
pub fn answers(trace: &[Request], options: &Options) -> Result<Vec<Answer>, SimulateError> {
    Ok(run(trace, options)?.answers)
}

fn run(trace: &[Request], options: &Options) -> Result<Run, SimulateError> {
    options.check()?;
    if trace.is_empty() {
        return Err(SimulateError::EmptyTrace);
    }
    let blocks = options.limits.cache / BLOCK_TOKENS;
    let trace = prepare(trace, u64::from(blocks), options.other_replies)?;
    let mut simulation = Simulation::new(&trace, options);
    simulation.run();
    Ok(simulation.run)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Lose(u32),
    StepEnd(u32),
    Arrival(u32),
}

struct Simulation<'a> {
    trace: &'a [Prepared],
    options: &'a Options,
    router: Router,
    loads: Vec<Load>,
    since: Vec<u64>, // by replica: when its load has changed
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    order: u64,
    now: u64,
    clients: Clients,
    places: Vec<Option<u32>>, // by key: the replica that it was last sent to
    seen: HashSet<u32>,       // keys that came after the loss
    lost: Option<u32>,
    replica_events: Vec<ReplicaEvent>,
    run: Run,
}

impl<'a> Simulation<'a> {
    fn new(trace: &'a [Prepared], options: &'a Options) -> Self {
        let count = options.replicas as usize;
        let blocks = options.limits.cache / BLOCK_TOKENS;
        let Options { policy, replicas, factor, seed, .. } = *options;
        let keys = trace.iter().map(|request| request.key as usize + 1).max().unwrap_or(0);
        let run = Run {
            answers: vec![Answer::default(); trace.len()],
            prompt_tokens: trace.iter().map(|request| u64::from(request.prompt)).sum(),
            output_tokens: trace.iter().map(|request| u64::from(request.output)).sum(),
            open_time: vec![0; count],
            replicas: vec![Replica::new(options.limits); count],
            ..Run::default()
        };
        let mut simulation = Self {
            trace,
            options,
            router: Router::new(policy, replicas, blocks, factor, seed),
            loads: vec![Load::default(); count],
            since: vec![0; count],
            events: BinaryHeap::new(),
            order: 0,
            now: 0,
            clients: Clients::new(trace, options.open),
            places: vec![None; keys],
            seen: HashSet::new(),
            lost: None,
            replica_events: vec![],
            run,
        };
        simulation.schedule_all();
        simulation
    }

    fn schedule_all(&mut self) {
        if let Some(lost) = self.options.lose {
            self.schedule(lost.at_ms.saturating_mul(1000), Event::Lose(lost.replica));
        }
        match self.options.open {
            None => {
                for (number, request) in (0..).zip(self.trace) {
                    self.schedule(request.at, Event::Arrival(number));
                }
            }
            Some(open) => (0..open).for_each(|_| self.take_next()),
        }
    }

    fn schedule(&mut self, time: u64, event: Event) {
        self.events.push(Reverse((time, self.order, event)));
        self.order += 1;
    }

    fn run(&mut self) {
        while let Some(Reverse((time, _, event))) = self.events.pop() {
            self.now = time;
            match event {
                Event::Arrival(request) => {
                    if self.clients.is_ready(request, self.trace) {
                        self.run.answers[request as usize].sent = time;
                        self.send(request);
                    }
                }
                Event::StepEnd(replica) => self.end_step(replica),
                Event::Lose(replica) => self.lose(replica),
            }
        }
        (0..self.loads.len()).for_each(|replica| self.update(replica));
    }

    /// Sends a request to a replica.
    fn send(&mut self, request: u32) {
        let prepared = &self.trace[request as usize];
        let chosen = self.router.choose(prepared, &self.loads);
        let replica = u32::try_from(chosen).unwrap_or(u32::MAX);
        let before = self.places[prepared.key as usize].replace(replica);
        if let (Some(lost), Some(before)) = (self.lost, before)
            && self.seen.insert(prepared.key)
        {
            self.run.keys_of_lost += u32::from(before == lost);
            self.run.keys_of_others += u32::from(before != lost && before != replica);
        }
        self.run.answers[request as usize].replica = replica;
        self.run.replicas[chosen].enqueue(request);
        self.begin_step(replica);
    }

    fn begin_step(&mut self, replica: u32) {
        let index = replica as usize;
        let begun = self.run.replicas[index].begin(
            self.trace,
            &self.options.costs,
            &mut self.replica_events,
        );
        if let Some(milliseconds) = begun {
            let end = self.now.saturating_add(microseconds(milliseconds));
            self.schedule(end, Event::StepEnd(replica));
        }
        self.apply_replica_events();
        self.update(index);
    }

    fn end_step(&mut self, replica: u32) {
        if self.lost == Some(replica) {
            return;
        }
        self.run.replicas[replica as usize].end(self.trace, &mut self.replica_events);
        self.run.end = self.now;
        self.begin_step(replica);
    }

    /// Takes note of the events of replicas.
    fn apply_replica_events(&mut self) {
        for event in std::mem::take(&mut self.replica_events) {
            match event {
                ReplicaEvent::Started { request, cached } => {
                    self.run.answers[request as usize].cached = cached;
                }
                ReplicaEvent::FirstToken { request } => {
                    let answer = &mut self.run.answers[request as usize];
                    answer.first_token = self.now - answer.sent;
                }
                ReplicaEvent::Ended { request } => {
                    if let Some(next) = self.clients.has_ended(request) {
                        self.schedule(self.now, Event::Arrival(next));
                    }
                    if self.options.open.is_some() {
                        self.take_next();
                    }
                }
            }
        }
    }

    /// A client takes the next request of the trace.
    fn take_next(&mut self) {
        if let Some(next) = self.clients.take() {
            self.schedule(self.now, Event::Arrival(next));
        }
    }

    /// A replica is lost. Its requests are sent to others.
    fn lose(&mut self, replica: u32) {
        let index = replica as usize;
        self.update(index);
        self.lost = Some(replica);
        self.loads[index] = Load { lost: true, ..Load::default() };
        self.router.lose(index);
        let open = self.run.replicas[index].lose();
        self.run.restarted = u32::try_from(open.len()).unwrap_or(u32::MAX);
        for request in open {
            self.send(request);
        }
    }

    /// Notes the load of a replica, and how long it had the one before.
    fn update(&mut self, index: usize) {
        let time = self.now - std::mem::replace(&mut self.since[index], self.now);
        self.run.open_time[index] += u128::from(self.loads[index].open) * u128::from(time);
        let replica = &self.run.replicas[index];
        let (open, waiting, used) = (replica.open(), replica.waiting(), replica.used());
        self.loads[index] = Load { open, waiting, used, ..self.loads[index] };
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it saturates")]
fn microseconds(milliseconds: f64) -> u64 {
    ((milliseconds * 1000.0) as u64).max(1)
}
