//! Stages at work: they overlap, fail, recover and end.

use std::{
    path::PathBuf,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
        mpsc::{Receiver, Sender, channel},
    },
    time::Duration,
};

use futures::FutureExt;
use setun::{
    forward::{Batch, ModelError, Outputs, RequestedOutput, Split, TransformerOptions},
    ops::{OpsError, ScalarBackend},
};
use setun_tests::{
    fixture,
    hooked::{Call, Hooked},
    run::transformer,
    stages::{Given, Session, on, stages},
};

const LOGITS: &RequestedOutput = &RequestedOutput::Logits;
const TEXT: [u32; 48] = {
    let mut text = [0; 48];
    let mut i: u32 = 0;
    while i < 48 {
        text[i as usize] = i * 29 % 61;
        i += 1;
    }
    text
};
/// Long enough that only a failure waits for it.
const PATIENCE: Duration = Duration::from_mins(1);

fn folder() -> PathBuf {
    fixture("golden/bitnet-h64/packed") // of 3 layers
}

/// Two stages of the definitions, with hooks.
fn hooked(hooks: [impl FnMut(Call) -> Result<(), OpsError> + Send + 'static; 2]) -> Split {
    let hooked = hooks.map(|hook| on(Hooked::new(ScalarBackend, hook)));
    let two = [1, 2].into_iter().zip(hooked).collect();
    let stages = stages(&folder(), two, TransformerOptions::default()).expect("stages");
    Split::new(stages).expect("a model").with_piece_rows(16)
}

fn whole() -> Session {
    Session::new(transformer(folder(), ScalarBackend, TransformerOptions::default()))
}

/// The first stage is in its second piece while the second stage is in its first.
#[test]
fn stages_work_at_the_same_time() {
    let (to_second, from_first) = channel();
    let (to_first, from_second) = channel();
    let meets = |number: usize, tell: Sender<()>, hear: Receiver<()>| {
        let mut runs = 0;
        move |call| {
            if let Call::Run(rows) = call {
                assert_eq!(rows, 16);
                runs += 1;
                if runs == number {
                    tell.send(()).expect("the other is there");
                    hear.recv_timeout(PATIENCE).expect("the other works at the same time");
                }
            }
            Ok(())
        }
    };
    let split = hooked([meets(2, to_second, from_second), meets(1, to_first, from_first)]);
    let mut session = Session::new(split);
    let sequence = session.cache.create();
    let found = session.step(&[(sequence, &TEXT, LOGITS)]);
    let mut whole = whole();
    let sequence = whole.cache.create();
    assert!(found == whole.step(&[(sequence, &TEXT, LOGITS)]));
}

/// Fails a kind of call, this many times.
#[derive(Clone, Default)]
struct Faults(Arc<Mutex<Option<(Call, usize)>>>);

impl Faults {
    fn arm(&self, call: Call, times: usize) {
        *self.0.lock().expect("no panic") = Some((call, times));
    }

    fn hook(&self) -> impl FnMut(Call) -> Result<(), OpsError> + Send + use<> {
        let armed = self.0.clone();
        move |call| {
            let mut armed = armed.lock().expect("no panic");
            let is_alike =
                |armed: Call| std::mem::discriminant(&armed) == std::mem::discriminant(&call);
            match &mut *armed {
                Some((armed, times)) if *times > 0 && is_alike(*armed) => {
                    *times -= 1;
                    Err(OpsError::OutOfMemory { what: "a test", bytes: 7 })
                }
                _ => Ok(()),
            }
        }
    }
}

fn is_fault(result: Result<Vec<Given>, ModelError>) -> bool {
    let fault = OpsError::OutOfMemory { what: "a test", bytes: 7 };
    matches!(result, Err(ModelError::Ops(error)) if error == fault)
}

#[test]
fn a_stage_that_fails_harms_no_other_step() {
    let mut whole = whole();
    let sequence = whole.cache.create();
    let expected = whole.step(&[(sequence, &TEXT, LOGITS)]);
    for stage in 0..2 {
        for call in [Call::Prepare(0), Call::Run(0), Call::Read] {
            let faults = [Faults::default(), Faults::default()];
            let mut session = Session::new(hooked([faults[0].hook(), faults[1].hook()]));
            let sequence = session.cache.create();
            faults[stage].arm(call, 2); // a failed step goes no further
            for round in 0..4 {
                let batch = session.extend(&[(sequence, &TEXT, LOGITS)]);
                let result = session.run(&batch);
                if round < 2 {
                    assert!(is_fault(result), "{call:?} of {stage}, {round}");
                } else {
                    assert!(result.expect("a step") == expected, "{call:?} of {stage}, {round}");
                }
                session.cache.truncate(sequence, 0).expect("a sequence");
            }
        }
    }
}

/// A fork's copy is made once in each stage, though the step that it belongs to failed in one.
#[test]
fn copies_are_made_once_in_each_stage() {
    for stage in 0..2 {
        for call in [Call::Grow(0), Call::Copy(0), Call::Run(0)] {
            let faults = [Faults::default(), Faults::default()];
            let split = Session::new(hooked([faults[0].hook(), faults[1].hook()]));
            let [expected, found] =
                [(whole(), false), (split, true)].map(|(mut session, fails)| {
                    let trunk = session.cache.create();
                    session.step(&[(trunk, &TEXT[..40], LOGITS)]);
                    let branch = session.cache.fork(trunk).expect("a sequence");
                    let step = |session: &mut Session| {
                        // What the trunk writes, the branch has in common with it.
                        session.cache.truncate(branch, 40).expect("a sequence");
                        let one = session.extend(&[(branch, &TEXT[40..41], LOGITS)]);
                        session.cache.truncate(trunk, 33).expect("a sequence");
                        let mut batch = session.extend(&[(trunk, &TEXT[3..9], LOGITS)]);
                        batch.rows.extend(one.rows);
                        let many = session.cache.create();
                        session.cache.extend(many, 320).expect("room"); // the cache must grow
                        let result = session.run(&batch);
                        session.cache.remove(many);
                        result
                    };
                    if fails {
                        faults[stage].arm(call, 2); // growing is tried twice
                        assert!(is_fault(step(&mut session)), "{call:?} of {stage}");
                        faults[stage].arm(call, 0);
                    }
                    let mut given = step(&mut session).expect("a step");
                    given.extend(session.step(&[(branch, &TEXT[41..44], LOGITS)]));
                    given
                });
            assert!(found == expected, "{call:?} of {stage}");
        }
    }
}

#[test]
fn a_step_that_is_given_up_harms_no_other() {
    let stages = || {
        let two = [1, 2].map(|layers| (layers, on(Hooked::new(ScalarBackend, |_| Ok(())))));
        stages(&folder(), two.into(), TransformerOptions::default()).expect("stages")
    };
    let threads = Split::new(stages()).expect("a model").with_piece_rows(5);
    let in_turn = Split::in_turn(stages()).expect("a model").with_piece_rows(5);
    let given = [(whole(), false), (Session::new(threads), true), (Session::new(in_turn), true)]
        .map(|(mut session, gives_up)| {
            let trunk = session.cache.create();
            session.step(&[(trunk, &TEXT[..40], LOGITS)]);
            let branch = session.cache.fork(trunk).expect("a sequence");
            let batch = session.extend(&[(branch, &TEXT[10..25], LOGITS)]);
            if gives_up {
                let mut outputs = Outputs::default();
                let forward = session.model.forward(&batch, &mut session.cache, &mut outputs);
                assert!(forward.now_or_never().is_none());
            }
            session.cache.truncate(branch, 40).expect("a sequence");
            session.step(&[(trunk, &TEXT[40..], LOGITS), (branch, &TEXT[7..30], LOGITS)])
        });
    assert!(given[1] == given[0], "threads");
    assert!(given[2] == given[0], "in turn");
}

#[test]
fn stages_end_with_the_model() {
    let alive = Arc::new(());
    let hook = || {
        let alive = Arc::clone(&alive);
        move |_| {
            let _ = &alive;
            Ok(())
        }
    };
    let split = hooked([hook(), hook()]);
    assert_eq!(Arc::strong_count(&alive), 3);
    drop(split);
    assert_eq!(Arc::strong_count(&alive), 1);
}

#[test]
fn a_stage_that_panics_is_a_lost_device() {
    for stage in 0..2 {
        let hook = |panics: bool| {
            move |call| {
                assert!(!(panics && matches!(call, Call::Run(_))), "on purpose");
                Ok(())
            }
        };
        let mut session = Session::new(hooked([hook(stage == 0), hook(stage == 1)]));
        let sequence = session.cache.create();
        for _ in 0..3 {
            let batch: Batch = session.extend(&[(sequence, &TEXT, LOGITS)]);
            let error = session.run(&batch).expect_err("no stage");
            assert!(matches!(error, ModelError::Ops(OpsError::DeviceLost { .. })), "{error}");
        }
    }
}

/// Pieces are of at least this many rows, and one row is one piece.
#[test]
fn steps_are_cut_evenly() {
    let runs = Arc::new(Mutex::new(vec![]));
    let count = Arc::new(AtomicUsize::new(0));
    let hook = |first: bool| {
        let (runs, count) = (Arc::clone(&runs), Arc::clone(&count));
        move |call| {
            if let Call::Run(rows) = call {
                count.fetch_add(1, Ordering::Relaxed);
                if first {
                    runs.lock().expect("no panic").push(rows);
                }
            }
            Ok(())
        }
    };
    let mut session = Session::new(hooked([hook(true), hook(false)]));
    let sequence = session.cache.create();
    for (rows, expected) in [(1, vec![1]), (15, vec![15]), (31, vec![31]), (47, vec![23, 24])] {
        session.step(&[(sequence, &TEXT[..rows], &RequestedOutput::Nothing)]);
        let found = std::mem::take(&mut *runs.lock().expect("no panic"));
        assert_eq!(found, expected);
    }
    assert_eq!(count.load(Ordering::Relaxed), 10);
}
