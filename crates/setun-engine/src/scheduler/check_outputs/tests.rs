use setun_ops::top_logits::{Ranked, TopLogitsRequest};

use super::{
    super::{
        Scheduler,
        test_support::{BLOCKS, failure, generate, info, limits, spawn_after},
    },
    *,
};
use crate::{ErrorCode, fake_model::ClosureModel};

const VOCABULARY: usize = 3;

/// What two generations end with whose third step is wrong; the next one is as it should be.
fn errors(mut write: impl FnMut(usize, &mut Outputs) + Send + 'static) -> [Error; 2] {
    let mut step = 0;
    let model = ClosureModel::new(VOCABULARY, BLOCKS * 4, move |batch, _, outputs| {
        step += 1;
        if step == 3 {
            write(batch.wanted(), outputs);
        }
        Ok(())
    });
    let scheduler = Scheduler::new(Box::new(model), info(), limits(BLOCKS));
    let (commands, both) =
        spawn_after(scheduler, |commands| [(2, 6); 2].map(|of| generate(commands, of)));
    let errors = both.map(|stream| {
        let (tokens, error) = failure(stream);
        assert!(tokens < 6, "{tokens}");
        error
    });
    assert_eq!(generate(&commands, (2, 6)).wait().expect("a text").tokens, [0; 6]);
    errors
}

fn assert_wrong(what: &str, write: impl FnMut(usize, &mut Outputs) + Send + 'static) {
    for error in errors(write) {
        assert_eq!(error.code(), ErrorCode::UnsupportedModel, "{error}");
        assert!(error.to_string().contains(what), "{error}");
    }
}

#[test]
fn too_few_rows_end_the_generations() {
    assert_wrong("the number of output rows is 1, expected 2", |rows, outputs| {
        outputs.logits_mut(rows - 1, VOCABULARY).expect("memory").fill(0.0);
    });
    assert_wrong("the number of output rows is 0", |_, outputs| {
        outputs.logits_mut(0, VOCABULARY).expect("memory").fill(0.0);
    });
}

#[test]
fn too_many_rows_end_the_generations() {
    assert_wrong("the number of output rows is 3, expected 2", |rows, outputs| {
        outputs.logits_mut(rows + 1, VOCABULARY).expect("memory").fill(0.0);
    });
}

#[test]
fn rows_of_another_length_end_the_generations() {
    assert_wrong("the length of a row of logits is 4, expected 3", |rows, outputs| {
        outputs.logits_mut(rows, VOCABULARY + 1).expect("memory").fill(0.0);
    });
}

#[test]
fn rows_of_another_kind_end_the_generations() {
    assert_wrong("an output row is a hidden state", |rows, outputs| {
        outputs.states_mut(rows, VOCABULARY).expect("memory").fill(0.0);
    });
    assert_wrong("an output row is top logits, expected all logits", |rows, outputs| {
        outputs.ranked_mut(rows, 1).expect("memory").fill(Ranked { token: 1, logit: 0.0 });
    });
}

#[test]
fn a_logit_that_is_not_a_number_ends_the_generations() {
    let [first, second] = errors(|rows, outputs| {
        outputs.logits_mut(rows, VOCABULARY).expect("memory").fill(f32::NAN);
    });
    for error in [first, second] {
        assert!(error.to_string().contains("NaN"), "{error}");
    }
}

#[test]
fn top_logits_suffice_where_they_were_requested() {
    let ranked = Ranked { token: 1, logit: 0.0 };
    let top = RequestedOutput::TopLogits(TopLogitsRequest::default());
    assert!(check_row(Row::Ranked(&[ranked]), &top, VOCABULARY).is_ok());
    assert!(check_row(Row::Logits(&[0.0; VOCABULARY]), &top, VOCABULARY).is_ok());
    assert!(check_row(Row::Ranked(&[ranked]), &RequestedOutput::Logits, VOCABULARY).is_err());
    let unknown = Ranked { token: 3, logit: 0.0 };
    assert!(check_row(Row::Ranked(&[ranked, unknown]), &top, VOCABULARY).is_err());
    let sum = Ranked { token: Ranked::SUM, logit: 1.5 };
    assert!(check_row(Row::Ranked(&[ranked, sum]), &top, VOCABULARY).is_err(), "not requested");
    let summed = TopLogitsRequest { sum: true, ..<_>::default() };
    let summed = RequestedOutput::TopLogits(summed);
    assert!(check_row(Row::Ranked(&[ranked, sum]), &summed, VOCABULARY).is_ok());
    assert!(check_row(Row::Ranked(&[sum, ranked]), &summed, VOCABULARY).is_err(), "not behind");
}

/// A step leaves its row undecided, and the head gives something else than all its logits.
#[test]
fn a_head_that_gives_something_else_ends_the_generation() {
    const VOCABULARY: usize = 8; // a quarter of it may be ranked
    let kinds: [fn(&mut Outputs); 3] = [
        |outputs| drop(outputs.logits_mut(2, VOCABULARY)),
        |outputs| drop(outputs.logits_mut(1, VOCABULARY - 1)),
        |outputs| outputs.ranked_mut(1, 1).expect("memory").fill(Ranked::PADDING),
    ];
    for write in kinds {
        let mut step = 0;
        let mut model = ClosureModel::new(VOCABULARY, BLOCKS * 4, move |batch, _, outputs| {
            step += 1;
            if step == 3 {
                outputs.ranked_mut(batch.wanted(), 1)?.fill(Ranked::PADDING);
            }
            Ok(())
        });
        model.head = Some(Box::new(move |_, outputs| {
            write(outputs);
            Ok(())
        }));
        let scheduler = Scheduler::new(Box::new(model), info(), limits(BLOCKS));
        let (commands, stream) = spawn_after(scheduler, |commands| generate(commands, (2, 6)));
        let (tokens, error) = failure(stream);
        assert_eq!((tokens, error.code()), (2, ErrorCode::UnsupportedModel), "{error}");
        assert!(error.to_string().contains("the number of logits"), "{error}");
        assert_eq!(generate(&commands, (2, 6)).wait().expect("a text").tokens, [0; 6]);
    }
}

#[test]
fn argmax_tokens_are_of_the_vocabulary_and_one_for_each_row_and_step() {
    assert!(check_argmax(&[0, 2, NONE, 1], 4, VOCABULARY).is_ok());
    for (tokens, expected) in [(&[0, 1][..], 3), (&[0, 1], 1), (&[3], 1)] {
        let error = check_argmax(tokens, expected, VOCABULARY).expect_err("refused");
        assert_eq!(error.code(), ErrorCode::UnsupportedModel, "{error}");
    }
}
