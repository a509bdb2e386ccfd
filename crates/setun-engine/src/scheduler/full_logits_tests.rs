//! The scheduler with a model whose top logits do not suffice.

use std::sync::{Arc, Mutex};

use setun_model::RequestedOutput;
use setun_ops::top_logits::{Ranked, TopLogitsRequest};

use super::{
    test_support::{info, limits, request, spawn, submit},
    *,
};
use crate::fake_model::ClosureModel;

const VOCABULARY: usize = 100;

#[test]
fn a_row_that_cannot_be_ranked_runs_again_with_all_logits() {
    let requested = Arc::new(Mutex::new(vec![]));
    let of_model = Arc::clone(&requested);
    // After position `p` comes token `p + 10`, but only all logits say so.
    let model = ClosureModel::new(VOCABULARY, 64, move |batch, _, outputs| {
        for row in &batch.rows {
            of_model.lock().unwrap().push((row.position, row.output.clone()));
        }
        match batch.rows.last() {
            Some(row) if row.output == RequestedOutput::Logits => {
                outputs.logits_mut(batch.wanted(), VOCABULARY)?[row.position + 10] = 1.0;
            }
            _ => outputs.ranked_mut(batch.wanted(), 4)?.fill(Ranked::PADDING),
        }
        Ok(())
    });
    let commands = spawn(Scheduler::new(Box::new(model), info(), limits(16)));
    let tokens = submit(&commands, request(vec![1, 2, 3], 8)).wait().expect("a text").tokens;
    assert_eq!(tokens, [12, 13, 14, 15, 16, 17, 18, 19]);

    let top_logits = TopLogitsRequest { k: 1, touched: vec![], ..<_>::default() };
    let ranked = |position| (position, RequestedOutput::TopLogits(top_logits.clone()));
    let all = |position| (position, RequestedOutput::Logits);
    // The longer it needs all logits, the longer it takes them.
    let expected = [
        (0, RequestedOutput::Nothing),
        (1, RequestedOutput::Nothing),
        ranked(2),
        all(2),
        ranked(3),
        all(3),
        all(4),
        ranked(5),
        all(5),
        all(6),
        all(7),
        all(8),
        ranked(9),
        all(9),
    ];
    assert_eq!(*requested.lock().unwrap(), expected);
}
