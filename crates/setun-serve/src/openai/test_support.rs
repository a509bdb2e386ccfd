//! Events of made-up generations.

use setun::{Done, Event, FinishReason, TextDelta, Timings, Usage};

use super::streaming::Head;
use crate::generation::Encoder;

pub(crate) fn head() -> Head {
    Head { id: "id-1".to_owned(), created: 7, model: "m".to_owned() }
}

pub(crate) fn text(text: &str) -> Event {
    Event::Text(TextDelta { text: text.to_owned(), token: 5, ..TextDelta::default() })
}

pub(crate) fn reasoning(text: &str) -> Event {
    let reasoning = Some(text.to_owned());
    Event::Text(TextDelta { reasoning, token: 5, ..TextDelta::default() })
}

pub(crate) fn done(finish_reason: FinishReason) -> Event {
    Event::Done(Done {
        finish_reason,
        unfinished: false,
        stop: None,
        usage: Usage {
            prompt_tokens: 4,
            completion_tokens: 2,
            cached_tokens: 3,
            reasoning_tokens: 1,
        },
        timings: Timings { load_seconds: 0.0, first_token_seconds: 0.0, tokens_per_second: 0.0 },
        seed: 1,
        backend: setun::DeviceKind::Cpu,
        level: "avx2".to_owned(),
        model: "m".to_owned(),
    })
}

/// The bytes of events and their end, as text.
pub(crate) fn encoded(mut encoder: impl Encoder, events: &[(usize, Event)]) -> String {
    let mut bytes = vec![];
    for (index, event) in events {
        encoder.event(*index, event, &mut bytes);
    }
    encoder.end(&mut bytes);
    String::from_utf8(bytes).expect("UTF-8")
}
