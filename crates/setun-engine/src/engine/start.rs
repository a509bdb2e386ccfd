//! Start of an engine over models that are on their devices.

use std::{cell::RefCell, rc::Rc, sync::Arc, time::Duration};

use futures::{
    channel::{
        mpsc::{UnboundedReceiver, unbounded},
        oneshot,
    },
    future::{FutureExt, LocalBoxFuture, join_all, ready},
};
use setun_clock::Clock;
use setun_model::Model;

use super::{Engine, Handle, Shared};
use crate::{
    command::Command,
    device::{DeviceKind, DeviceReport},
    engine_info::EngineInfo,
    error::Error,
    options::EngineOptions,
    parts::{EngineParts, Replica, ReplicaDraft},
    request_slots::RequestSlots,
    scheduler::{DraftModelRunner, Limits, Scheduler},
};

/// Work between two visits to the event loop of a host with one thread.
const VISIT_INTERVAL: Duration = Duration::from_millis(8);

/// Schedulers, and where they hear what to do.
type Schedulers = Vec<(Scheduler, UnboundedReceiver<Command>)>;

impl Engine {
    /// Starts an engine with a thread for each of its replicas.
    ///
    /// # Errors
    ///
    /// If there is no replica, a draft has another vocabulary, or the system gives no thread.
    #[cfg(not(target_family = "wasm"))]
    pub fn start(parts: EngineParts, options: &EngineOptions) -> Result<Self, Error> {
        let (engine, schedulers) = engine(parts, options)?;
        for (scheduler, commands) in schedulers {
            let run = move || {
                let pause: crate::scheduler::Pause = Box::new(|time| match time {
                    Duration::ZERO => std::future::ready(()).boxed_local(),
                    time => futures_timer::Delay::new(time).boxed_local(),
                });
                pollster::block_on(scheduler.run(commands, pause));
            };
            let thread = std::thread::Builder::new().name("setun".into()).spawn(run);
            crate::sync::lock(&engine.shared.running).push(thread.map_err(Error::Thread)?);
        }
        Ok(engine)
    }

    /// Starts an engine for a host with one thread, which spawns the task locally. `pace` is
    /// awaited with no time a few times per second of work, so that the host can handle its events,
    /// and with a time when there is nothing to do until then.
    ///
    /// # Errors
    ///
    /// If there is no replica, or a draft has another vocabulary.
    pub fn start_local(
        parts: EngineParts,
        options: &EngineOptions,
        pause: impl FnMut(Duration) -> LocalBoxFuture<'static, ()> + 'static,
    ) -> Result<(Self, LocalBoxFuture<'static, ()>), Error> {
        let (engine, schedulers) = engine(parts, options)?;
        let pause = Rc::new(RefCell::new(when_due(engine.shared.clock.clone(), pause)));
        let runs = schedulers.into_iter().map(|(scheduler, commands)| {
            let pause = Rc::clone(&pause);
            scheduler.run(commands, Box::new(move |time| (pause.borrow_mut())(time)))
        });
        let runs: Vec<_> = runs.collect();
        Ok((engine, join_all(runs).map(drop).boxed_local()))
    }
}

/// Calls `pause` without a time only when the host's event loop is due.
fn when_due(
    clock: Clock,
    mut pause: impl FnMut(Duration) -> LocalBoxFuture<'static, ()> + 'static,
) -> impl FnMut(Duration) -> LocalBoxFuture<'static, ()> + 'static {
    let mut last = clock.now();
    move |time| {
        if time.is_zero() {
            if clock.since(last) < VISIT_INTERVAL {
                return ready(()).boxed_local();
            }
            last = clock.now();
        }
        pause(time)
    }
}

fn engine(mut parts: EngineParts, options: &EngineOptions) -> Result<(Engine, Schedulers), Error> {
    let (replicas, monitor) = (std::mem::take(&mut parts.replicas), parts.monitor.take());
    let salt = parts.defaults.cache_salt.take().map(Into::into);
    let shared = Arc::new(shared(parts, &replicas, options)?);
    let (mut schedulers, mut handles) = (vec![], vec![]);
    let most = options.max_concurrent.saturating_add(options.queue);
    for replica in replicas {
        let (commands, receiver) = unbounded();
        let mut scheduler = scheduler(replica, &shared, options)?;
        #[cfg(not(target_family = "wasm"))] // where there is one clock alone
        {
            scheduler = scheduler.with_clock(shared.clock.clone());
        }
        if let Some((monitor, every)) = &monitor {
            scheduler = scheduler.with_monitor(monitor.clone(), *every);
        }
        let metrics = scheduler.published_metrics();
        handles.push(Handle::new(commands, RequestSlots::new(most), metrics));
        schedulers.push((scheduler, receiver));
    }
    if options.profile || options.timeline {
        let timeline = options.timeline.then(|| shared.clock.now());
        for handle in &handles {
            let (reply, _) = oneshot::channel();
            handle.send(Command::Profile { profiled: true, timeline, reply })?;
        }
    }
    Ok((Engine { schedulers: handles.into(), shared, salt, tenant: None }, schedulers))
}

/// The scheduler of a replica's model.
fn scheduler(
    replica: Replica,
    shared: &Shared,
    options: &EngineOptions,
) -> Result<Scheduler, Error> {
    let Replica { model, backend, level, max_blocks, reload, draft, .. } = replica;
    let report = EngineInfo { backend, level, ..shared.report.clone() };
    let block_positions = model.block_positions();
    let context = shared.context_length.div_ceil(block_positions) + model.state_blocks();
    let prefix = options.prefix_positions.map(|count| count.div_ceil(block_positions));
    let limits = Limits {
        blocks: context.saturating_mul(options.contexts).min(max_blocks),
        min_blocks: context,
        prefix_blocks: prefix.unwrap_or(context),
        max_concurrent: options.max_concurrent.min(model.max_rows()),
        wait: options.batch_wait,
    };
    let draft_runner = draft.map(|draft| draft_runner(draft, &*model, &limits)).transpose()?;
    let mut scheduler = Scheduler::new(model, report, limits);
    if let Some(draft_runner) = draft_runner {
        scheduler = scheduler.with_draft_runner(draft_runner);
    }
    if let Some(reload) = reload {
        scheduler = scheduler.with_reload(reload);
    }
    if options.operation_times {
        scheduler = scheduler.with_operation_times();
    }
    Ok(scheduler)
}

/// A draft with a cache of as many positions as the limits of its target's.
fn draft_runner(
    draft: ReplicaDraft,
    target: &dyn Model,
    limits: &Limits,
) -> Result<DraftModelRunner, Error> {
    let ReplicaDraft { model, reload } = draft;
    let (expected, found) = (target.vocab_size(), model.vocab_size());
    if expected != found {
        let what = "the vocabulary of a draft";
        return Err(Error::BatchShape { what, expected, found });
    }
    let (of_target, of_draft) = (target.block_positions(), model.block_positions().max(1));
    let blocks = |blocks: usize| blocks.saturating_mul(of_target).div_ceil(of_draft);
    DraftModelRunner::new(model, blocks(limits.blocks), blocks(limits.prefix_blocks), reload)
}

/// What is the same for all schedulers.
fn shared(
    parts: EngineParts,
    replicas: &[Replica],
    options: &EngineOptions,
) -> Result<Shared, Error> {
    let first = replicas.first().ok_or_else(|| Error::BadOption {
        option: "device",
        found: "none".into(),
        expected: "a device or more".into(),
    })?;
    let levels: Vec<_> = replicas.iter().map(|replica| replica.level.as_str()).collect();
    let devices = replicas.iter().flat_map(|replica| replica.report.devices.clone());
    let report = EngineInfo {
        backend: if replicas.len() > 1 { DeviceKind::Each } else { first.backend },
        level: levels.join(", "),
        model: parts.name,
        load_seconds: parts.load_seconds,
    };
    let max_length = options.context_length.unwrap_or(usize::MAX);
    Ok(Shared {
        shape: parts.shape,
        tokenizer: parts.tokenizer,
        template: parts.template,
        sampling: parts.defaults.over(&parts.sampling),
        eos_tokens: parts.eos_tokens,
        context_length: first.model.context_length().min(max_length),
        vocab_size: first.model.vocab_size(),
        weight_bytes: replicas.iter().map(|replica| replica.weight_bytes).sum(),
        head: first.head,
        threads: replicas.iter().map(|replica| replica.threads).sum(),
        max_concurrent: options.max_concurrent,
        buffer: options.buffer,
        back_pressure: options.back_pressure,
        defaults: parts.defaults,
        has_draft: replicas.iter().any(|replica| replica.draft.is_some()),
        devices: DeviceReport { devices: devices.chain(parts.report.devices).collect() },
        self_tester: parts.self_tester,
        report,
        warnings: parts.warnings,
        clock: parts.clock,
        #[cfg(feature = "grammar")]
        vocabulary: std::sync::OnceLock::new(),
        #[cfg(feature = "grammar")]
        tool_grammars: super::grammar::ToolGrammars::default(),
        #[cfg(not(target_family = "wasm"))]
        running: std::sync::Mutex::default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_event_loop_is_visited_when_due_and_waits_always_reach_the_host() {
        let (clock, calls) = (Clock::held(), Rc::new(RefCell::new(vec![])));
        let seen = Rc::clone(&calls);
        let mut pace = when_due(clock.clone(), move |time| {
            seen.borrow_mut().push(time);
            ready(()).boxed_local()
        });
        let wait = Duration::from_secs(3);
        let mut pace_all = |times: &[Duration]| {
            for &time in times {
                pollster::block_on(pace(time));
            }
            calls.take()
        };
        clock.advance(VISIT_INTERVAL / 2);
        assert_eq!(pace_all(&[Duration::ZERO, wait]), [wait], "it is not due");
        clock.advance(VISIT_INTERVAL / 2);
        assert_eq!(pace_all(&[Duration::ZERO, Duration::ZERO, wait]), [Duration::ZERO, wait]);
        clock.advance(9 * VISIT_INTERVAL);
        assert_eq!(pace_all(&[Duration::ZERO; 2]), [Duration::ZERO], "once, however late");
    }
}
