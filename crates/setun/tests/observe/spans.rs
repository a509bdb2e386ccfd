//! Spans and events.

use setun::GenerateOptions;

use super::{
    builder,
    listener::{Heard, spans},
    metrics,
};

/// The events of a generation, without those of later ones.
fn messages(heard: &Heard) -> Vec<&str> {
    heard.events.iter().map(|(message, _)| message.as_str()).collect()
}

/// The generations that were requested in a span.
fn generations(caller: &tracing::Span) -> Vec<Heard> {
    let caller = caller.id().expect("a listener").into_u64();
    let spans = spans();
    let ours = spans.values().filter(|heard| heard.parent == Some(caller));
    ours.filter(|heard| heard.name == "generation").cloned().collect()
}

#[test]
fn a_generation_reports_its_events_to_the_callers_span() {
    drop(spans());
    let engine = builder().build().expect("a start");
    let caller = tracing::info_span!("caller");
    let prompt: Vec<u32> = (1..=40).collect();
    let options = || GenerateOptions::new().max_tokens(5).seed(1);
    caller.in_scope(|| {
        engine.complete(prompt.clone(), options()).expect("a text");
        engine.complete(prompt.clone(), options()).expect("a text");
        // Longer than what waits to be read: it cannot end by itself.
        let long = options().min_tokens(200).max_tokens(200);
        drop(engine.generate(prompt.clone(), long).expect("a stream"));
    });
    engine.close();

    let heard = generations(&caller);
    let [first, second, dropped] = &heard[..] else { panic!("{heard:?}") };
    for heard in [first, second] {
        assert_eq!(messages(heard), ["queued", "admitted", "first token", "ended"]);
        assert_eq!(heard.fields["prompt_tokens"], "40");
        assert_eq!(heard.fields["max_tokens"], "5");
        assert_eq!(heard.fields["completion_tokens"], "5");
        assert_eq!(heard.fields["finish_reason"], "length");
        assert!(heard.closed);
    }
    assert_eq!(first.events[1].1["cached_tokens"], "0");
    assert_eq!(second.events[1].1["cached_tokens"], "32", "a block of the first");
    assert_eq!(dropped.fields["finish_reason"], "aborted");
    assert!(dropped.closed);
}

#[test]
fn a_generation_that_waits_says_why() {
    drop(spans());
    // No text waits to be read.
    let engine = builder().max_concurrent(1).prefix_positions(0).buffer(500).build();
    let engine = engine.expect("a start");
    let caller = tracing::info_span!("caller");
    let options = || GenerateOptions::new().min_tokens(99).max_tokens(99).seed(1);
    caller.in_scope(|| {
        let streams = [1, 2, 3].map(|token| engine.generate(vec![token; 40], options()));
        for stream in streams {
            stream.expect("a stream").wait().expect("a text");
        }
    });
    engine.close();

    let heard = generations(&caller);
    let reasons: Vec<&str> = heard
        .iter()
        .flat_map(|heard| &heard.events)
        .filter(|(message, _)| message == "waiting")
        .map(|(_, fields)| fields["reason"].as_str())
        .collect();
    assert_eq!(reasons.iter().filter(|reason| **reason == "batch_full").count(), 2);
    assert!(reasons.contains(&"queue_order"), "{reasons:?}");
    assert_eq!(messages(&heard[0])[..2], ["queued", "admitted"]);
    assert_eq!(messages(&heard[1])[..3], ["queued", "waiting", "admitted"]);
}

#[test]
fn preemptions_and_the_rows_of_steps_are_reported() {
    drop(spans());
    // Two that fit one context at first, and no longer at their end.
    let engine = builder().contexts(1).prefix_positions(0).build().expect("a start");
    let caller = tracing::info_span!("caller");
    let length = engine.context_length();
    let prompt = vec![5; length / 2 - 40];
    let streams: Vec<_> = caller.in_scope(|| {
        let options = || GenerateOptions::new().min_tokens(60).max_tokens(60).seed(1);
        [(); 2].map(|()| engine.generate(prompt.clone(), options()).expect("a stream")).into()
    });
    let threads = streams.into_iter().map(|stream| std::thread::spawn(|| stream.wait()));
    let threads: Vec<_> = threads.collect();
    for thread in threads {
        thread.join().expect("no panic").expect("a text");
    }
    let told = metrics(&engine);
    engine.close();

    let heard = generations(&caller);
    let preempted = heard.iter().filter(|heard| messages(heard).contains(&"preempted"));
    let preempted: Vec<_> = preempted.collect();
    assert!(told.preemptions > 0, "{told:?}");
    assert!(!preempted.is_empty());
    for heard in preempted {
        let messages = messages(heard);
        let at = messages.iter().position(|message| *message == "preempted").expect("it was");
        let mut then = messages[at + 1..].iter().filter(|message| **message != "waiting");
        assert_eq!(then.next(), Some(&"admitted"), "{messages:?}");
        assert_eq!(messages.iter().filter(|message| **message == "first token").count(), 1);
        assert_eq!(messages.last(), Some(&"ended"));
    }
    assert_eq!(told.queue_time.count(), 2, "the first place alone");
    let steps = spans();
    let steps = steps.values().filter(|heard| heard.name == "step" && heard.closed);
    let rows = steps.filter_map(|heard| heard.fields.get("rows")?.parse::<u64>().ok());
    assert!(rows.sum::<u64>() >= told.rows, "of all engines");
}
