//! Errors that a `main` returns are sentences.

use std::error::Error as _;

use setun::{EngineError, Error, Model};

#[test]
fn debug_prints_sentences() {
    let missing = Model::open("/no/such/model").err().expect("no model");
    assert_eq!(format!("{missing:?}"), missing.to_string());
    assert!(format!("{missing:?}").starts_with("no model at `/no/such/model`: looked for "));
    let file = std::io::Error::new(std::io::ErrorKind::PermissionDenied, "not for you");
    let unreadable = Error::Io { path: "a.gguf".into(), source: file };
    assert!(unreadable.source().is_some());
    assert_eq!(format!("{unreadable:?}"), "cannot read `a.gguf`: not for you");
    let engine = EngineError::BadOption { option: "n", found: "0".into(), expected: "1".into() };
    let expected = "option `n` is 0, expected 1";
    assert_eq!(format!("{engine:?}"), expected);
    assert_eq!(format!("{:?}", Error::from(engine)), expected);
    let boxed: Box<dyn std::error::Error> = unreadable.into();
    assert_eq!(format!("{boxed:?}"), "cannot read `a.gguf`: not for you");
    let damaged = Model::from_bytes("m.gguf", b"no model").err().expect("no model");
    assert_eq!(format!("{damaged:?}"), damaged.to_string());
}
