//! The scheduler with a model that is not one.

use std::sync::{Arc, Mutex};

use futures::{FutureExt, channel::mpsc::unbounded};
use setun_model::{Batch, ModelError, RequestedOutput};

use super::{
    tests::{limits, request},
    *,
};
use crate::{DeviceKind, event::Event, stream::GenerationStream};
use setun_model::MemoryUse;

const VOCAB: usize = 100;

/// After position `p` comes token `p + 10`, but only all logits tell so.
struct Unranked(Arc<Mutex<Vec<(usize, RequestedOutput)>>>);

impl Model for Unranked {
    fn vocab_size(&self) -> usize {
        VOCAB
    }

    fn context_length(&self) -> usize {
        64
    }

    fn block_positions(&self) -> usize {
        4
    }

    fn block_bytes(&self) -> usize {
        1
    }

    fn max_rows(&self) -> usize {
        8
    }

    fn memory(&self) -> MemoryUse {
        MemoryUse::default()
    }

    fn forward<'a>(
        &'a mut self,
        batch: &'a Batch,
        _: &'a mut PagedCache,
        outputs: &'a mut Outputs,
    ) -> LocalBoxFuture<'a, Result<(), ModelError>> {
        for row in &batch.rows {
            self.0.lock().unwrap().push((row.position, row.output.clone()));
        }
        match batch.rows.last() {
            Some(row) if row.output == RequestedOutput::Logits => {
                let logits = outputs.logits_mut(batch.wanted(), VOCAB);
                logits.fill(0.0);
                logits[row.position + 10] = 1.0;
            }
            _ => outputs.ranked_mut(batch.wanted(), 4).fill(setun_ops::top_logits::Ranked::PADDING),
        }
        std::future::ready(Ok(())).boxed_local()
    }
}

#[test]
fn a_row_that_cannot_be_ranked_runs_again_with_all_logits() {
    let asked = Arc::new(Mutex::new(vec![]));
    let report = EngineInfo {
        backend: DeviceKind::Cpu,
        level: "none".into(),
        model: "unranked".into(),
        load_seconds: 0.0,
    };
    let scheduler = Scheduler::new(Box::new(Unranked(Arc::clone(&asked))), report, limits(16));
    let (commands, receiver) = unbounded();
    let request = request(vec![1, 2, 3], 3);
    let queue = Arc::clone(&request.queue);
    commands.unbounded_send(Command::Generate(Box::new(request))).unwrap();
    let mut stream = GenerationStream::new(queue, commands.clone());
    drop(commands);
    let mut run =
        scheduler.run(receiver, Box::new(|_| std::future::ready(()).boxed_local())).boxed_local();
    assert!(run.as_mut().now_or_never().is_none(), "it waits for more commands");
    let tokens: Vec<u32> = stream
        .take_ready()
        .into_iter()
        .filter_map(|event| match event.unwrap() {
            Event::Text(delta) => Some(delta.token),
            Event::Prompt(_) | Event::Done(_) => None,
        })
        .collect();
    assert_eq!(tokens, [12, 13, 14]);

    let best = || {
        RequestedOutput::TopLogits(setun_ops::top_logits::TopLogitsRequest {
            k: 1,
            within: None,
            touched: vec![],
        })
    };
    // Once it takes all logits, it goes on so for a while.
    let expected = [
        (0, RequestedOutput::Nothing),
        (1, RequestedOutput::Nothing),
        (2, best()),
        (2, RequestedOutput::Logits),
        (3, RequestedOutput::Logits),
        (4, RequestedOutput::Logits),
    ];
    assert_eq!(*asked.lock().unwrap(), expected);
}
