//! The scheduler with a model whose top logits do not suffice.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use futures::future::{FutureExt, ready};
use setun_model::RequestedOutput;
use setun_ops::top_logits::{Ranked, TopLogitsRequest};
use setun_text::SamplerOptions;

use super::{
    test_support::{info, limits, request, sampler, spawn, spawn_after, submit},
    *,
};
use crate::{
    fake_model::{BLOCK_POSITIONS, ClosureModel, FakeModel},
    parts::ReloadModel,
    ranking_model::RankingModel,
    sequence::Request,
};

const VOCABULARY: usize = 300;
const BLOCKS: usize = 200;

/// A call of a model: for a position, or for some rows of the step before.
#[derive(Clone, Debug, PartialEq)]
enum Asked {
    Row(usize, RequestedOutput),
    Head(Vec<usize>),
}

#[test]
fn a_row_that_cannot_be_ranked_takes_all_logits_of_the_head_alone() {
    let asked = Arc::new(Mutex::new(vec![]));
    let (of_model, of_head) = (Arc::clone(&asked), Arc::clone(&asked));
    let position = Arc::new(Mutex::new(0));
    let last = Arc::clone(&position);
    // After position `p` comes token `p + 10`, but only all logits say so.
    let mut model = ClosureModel::new(VOCABULARY, 64, move |batch, _, outputs| {
        for row in &batch.rows {
            of_model.lock().unwrap().push(Asked::Row(row.position, row.output.clone()));
            *last.lock().unwrap() = row.position;
        }
        match batch.rows.last() {
            Some(row) if row.output == RequestedOutput::Logits => {
                outputs.logits_mut(batch.wanted(), VOCABULARY)?[row.position + 10] = 1.0;
            }
            _ => outputs.ranked_mut(batch.wanted(), 4)?.fill(Ranked::PADDING),
        }
        Ok(())
    });
    model.head = Some(Box::new(move |rows, outputs| {
        of_head.lock().unwrap().push(Asked::Head(rows.to_vec()));
        outputs.logits_mut(rows.len(), VOCABULARY)?[*position.lock().unwrap() + 10] = 1.0;
        Ok(())
    }));
    let commands = spawn(Scheduler::new(Box::new(model), info(), limits(16)));
    let tokens = submit(&commands, request(vec![1, 2, 3], 8)).wait().expect("a text").tokens;
    assert_eq!(tokens, [12, 13, 14, 15, 16, 17, 18, 19]);

    let top_logits = TopLogitsRequest { k: 1, touched: vec![], ..<_>::default() };
    let ranked = |position| Asked::Row(position, RequestedOutput::TopLogits(top_logits.clone()));
    let all = |position| Asked::Row(position, RequestedOutput::Logits);
    let head = || Asked::Head(vec![0]);
    // The longer it needs all logits, the longer it takes them.
    let expected = [
        Asked::Row(0, RequestedOutput::Nothing),
        Asked::Row(1, RequestedOutput::Nothing),
        ranked(2),
        head(),
        ranked(3),
        head(),
        all(4),
        ranked(5),
        head(),
        all(6),
        all(7),
        all(8),
        ranked(9),
        head(),
    ];
    assert_eq!(*asked.lock().unwrap(), expected);
}

fn model() -> FakeModel {
    let context = BLOCKS * BLOCK_POSITIONS;
    FakeModel { context, order: 5, spread: 9.0, ..FakeModel::new(VOCABULARY, 4) }
}

/// Greedy, drawn, and with the filters that few logits decide.
fn requests() -> Vec<Request> {
    let warm = SamplerOptions { temperature: 1.0, ..SamplerOptions::default() };
    let options = [
        SamplerOptions::default(),
        warm.clone(),
        SamplerOptions { top_k: 4, ..warm.clone() },
        SamplerOptions { min_p: 0.05, ..warm.clone() },
        SamplerOptions { top_p: 0.9, ..warm.clone() },
        SamplerOptions { typical_p: 0.9, ..warm },
    ];
    let request = |(seed, options)| {
        let mut request = request(vec![1, 2, u32::try_from(seed).unwrap()], 60);
        (request.sampler, request.seed) = (sampler(options), seed);
        request.vocabulary = VOCABULARY;
        request
    };
    (0..).zip(options).map(request).collect()
}

/// The tokens of requests, which are all there before the first step.
fn texts(model: impl Model + 'static, requests: Vec<Request>) -> Vec<Vec<u32>> {
    texts_of(Scheduler::new(Box::new(model), info(), limits(BLOCKS)), requests)
}

fn texts_of(scheduler: Scheduler, requests: Vec<Request>) -> Vec<Vec<u32>> {
    let (_commands, streams) = spawn_after(scheduler, |commands| {
        let submit = |request| submit(commands, request);
        requests.into_iter().map(submit).collect::<Vec<_>>()
    });
    streams.into_iter().map(|stream| stream.wait().expect("a text").tokens).collect()
}

/// Alone and in one batch, no position is computed again where few logits do not suffice.
#[test]
fn texts_are_the_same_of_a_model_that_cannot_go_back() {
    let expected = texts(model(), requests());
    let forward_only = || RankingModel::new(model()).forward_only();
    let model = forward_only();
    let heads = Arc::clone(&model.heads);
    assert_eq!(texts(model, requests()), expected);
    let found = heads.load(Ordering::Relaxed);
    assert!(found > 5, "{found} rows were undecided");
    for (request, expected) in requests().into_iter().zip(expected) {
        assert_eq!(texts(forward_only(), vec![request]), [expected]);
    }
}

/// Opens the device again, which is lost again once the head has run for some rows.
struct Anew(Arc<AtomicUsize>);

fn losing() -> Box<dyn Model> {
    Box::new(RankingModel::new(model()).losing(2))
}

impl ReloadModel for Anew {
    fn reload(&mut self) -> LocalBoxFuture<'_, Result<Box<dyn Model>, Error>> {
        self.0.fetch_add(1, Ordering::Relaxed);
        ready(Ok(losing())).boxed_local()
    }
}

/// Texts that ended in the same step have ended, others go on.
#[test]
fn a_device_that_is_lost_while_the_head_runs_alone_is_opened_again() {
    // In each of the first steps one ends.
    let staggered = || {
        let mut requests = requests();
        (1..4).zip(&mut requests).for_each(|(tokens, request)| request.max_tokens = tokens);
        requests
    };
    let times = Arc::new(AtomicUsize::new(0));
    let scheduler = Scheduler::new(losing(), info(), limits(BLOCKS));
    let scheduler = scheduler.with_reload(Box::new(Anew(Arc::clone(&times))));
    assert_eq!(texts_of(scheduler, staggered()), texts(model(), staggered()));
    assert!(times.load(Ordering::Relaxed) > 1);
}
