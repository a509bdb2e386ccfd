//! Reads the metadata of a GGUF file that is trusted.

use std::collections::HashMap;

use setun_checkpoint::gguf::tokenizer::Vocabulary;

/// A value of the metadata.
#[derive(Debug)]
pub(crate) enum Value {
    Number(f64),
    Bool(bool),
    Text(String),
    List(Vec<Value>),
}

struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let (head, rest) = self.0.split_first_chunk().expect("a whole file");
        self.0 = rest;
        *head
    }

    fn len(&mut self) -> usize {
        usize::try_from(u64::from_le_bytes(self.take())).expect("a length")
    }

    fn text(&mut self) -> String {
        let len = self.len();
        let (text, rest) = self.0.split_at(len);
        self.0 = rest;
        String::from_utf8(text.to_vec()).expect("UTF-8")
    }

    #[expect(clippy::cast_precision_loss, reason = "ids and scores are small")]
    fn value(&mut self, kind: u32) -> Value {
        match kind {
            0 | 1 => Value::Number(f64::from(self.take::<1>()[0])),
            2 => Value::Number(f64::from(u16::from_le_bytes(self.take()))),
            3 => Value::Number(f64::from(i16::from_le_bytes(self.take()))),
            4 => Value::Number(f64::from(u32::from_le_bytes(self.take()))),
            5 => Value::Number(f64::from(i32::from_le_bytes(self.take()))),
            6 => Value::Number(f64::from(f32::from_le_bytes(self.take()))),
            7 => Value::Bool(self.take::<1>() != [0]),
            8 => Value::Text(self.text()),
            9 => {
                let kind = u32::from_le_bytes(self.take());
                Value::List((0..self.len()).map(|_| self.value(kind)).collect())
            }
            10 => Value::Number(u64::from_le_bytes(self.take()) as f64),
            11 => Value::Number(i64::from_le_bytes(self.take()) as f64),
            12 => Value::Number(f64::from_le_bytes(self.take())),
            kind => panic!("no such type: {kind}"),
        }
    }
}

fn metadata(file: &[u8]) -> HashMap<String, Value> {
    let mut bytes = Bytes(file);
    assert_eq!((&bytes.take(), u32::from_le_bytes(bytes.take())), (b"GGUF", 3));
    let (_tensors, count) = (bytes.len(), bytes.len());
    let pair = |_| {
        let key = bytes.text();
        let kind = u32::from_le_bytes(bytes.take());
        (key, bytes.value(kind))
    };
    (0..count).map(pair).collect()
}

/// The vocabulary of a GGUF file.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small whole numbers")]
pub(crate) fn vocabulary(file: &[u8]) -> Vocabulary {
    let metadata = metadata(file);
    let get = |key: &str| metadata.get(&format!("tokenizer.{key}"));
    let list = |key| match get(key) {
        Some(Value::List(list)) => list.as_slice(),
        _ => &[],
    };
    let text = |value: &Value| match value {
        Value::Text(text) => text.clone(),
        other => panic!("{other:?} is no text"),
    };
    let number = |value: &Value| match value {
        Value::Number(number) => *number,
        other => panic!("{other:?} is no number"),
    };
    let flag = |key| match get(key) {
        Some(Value::Bool(flag)) => Some(*flag),
        _ => None,
    };
    let id = |key| get(key).map(|value| number(value) as u32);
    Vocabulary {
        architecture: metadata.get("general.architecture").map(text).unwrap_or_default(),
        model: get("ggml.model").map(text).unwrap_or_default(),
        pre: get("ggml.pre").map(text),
        tokens: list("ggml.tokens").iter().map(text).collect(),
        scores: list("ggml.scores").iter().map(|value| number(value) as f32).collect(),
        token_types: list("ggml.token_type").iter().map(|value| number(value) as i32).collect(),
        merges: list("ggml.merges").iter().map(text).collect(),
        bos: id("ggml.bos_token_id"),
        eos: id("ggml.eos_token_id"),
        unknown: id("ggml.unknown_token_id"),
        padding: id("ggml.padding_token_id"),
        end_of_turn: id("ggml.eot_token_id"),
        add_bos: flag("ggml.add_bos_token"),
        add_eos: flag("ggml.add_eos_token"),
        add_space_prefix: flag("ggml.add_space_prefix"),
        remove_extra_whitespaces: flag("ggml.remove_extra_whitespaces"),
        chat_template: get("chat_template").map(text),
    }
}
