//! Special tokens that are spelt in messages: marked, so that they stay text.
//!
//! A chat template writes special tokens around messages, and the rendered prompt is one text. The
//! spelling of a special token inside a message would end that message, or begin one of another
//! role. A mark inside the spelling passes the template and hides it from the tokenizer, which
//! then leaves the mark out.

use serde_json::{Map, Value};

use crate::{Message, TextError};

/// Noncharacters, which no text has that was written to be read.
const MARKS: std::ops::RangeInclusive<char> = '\u{fdd0}'..='\u{fdef}';

/// Messages with a mark in each spelling of a special token.
#[derive(Clone, Debug, PartialEq)]
pub struct MarkedMessages {
    /// The messages.
    pub messages: Vec<Message>,
    /// The mark, which no message had before.
    pub mark: char,
}

impl MarkedMessages {
    /// Marks the spellings of these tokens, also at the end of a text where only the beginning of
    /// one stands, which the next text may complete; `None` if there are none. A token of one
    /// character cannot be marked.
    ///
    /// # Errors
    ///
    /// If the messages have all noncharacters that could be the mark.
    pub fn new(messages: &[Message], special_tokens: &[String]) -> Result<Option<Self>, TextError> {
        let mut spellings = Spellings::new(special_tokens, *MARKS.start());
        let is_spelt = |text: &str| spellings.mark(text).is_some();
        if !messages.iter().any(|message| any_text(message, &is_spelt)) {
            return Ok(None);
        }
        let is_free = |mark: &char| {
            !messages.iter().any(|message| any_text(message, &|text: &str| text.contains(*mark)))
        };
        let mut marks = MARKS;
        spellings.mark = marks.find(is_free).ok_or(TextError::NoFreeMark)?;
        let messages = messages.iter().map(|message| spellings.mark_message(message)).collect();
        Ok(Some(Self { messages, mark: spellings.mark }))
    }
}

/// Whether one of a message's texts is so.
fn any_text(message: &Message, is_so: &dyn Fn(&str) -> bool) -> bool {
    let Message { role, content, fields } = message;
    is_so(role)
        || is_so(content)
        || fields.iter().any(|(key, value)| is_so(key) || any(value, is_so))
}

fn any(value: &Value, is_so: &dyn Fn(&str) -> bool) -> bool {
    match value {
        Value::String(text) => is_so(text),
        Value::Array(values) => values.iter().any(|value| any(value, is_so)),
        Value::Object(map) => map.iter().any(|(key, value)| is_so(key) || any(value, is_so)),
        _ => false,
    }
}

/// Spellings of tokens, and what marks them.
struct Spellings<'a> {
    tokens: Vec<&'a str>,
    firsts: Vec<char>, // first characters of the tokens
    mark: char,
}

impl<'a> Spellings<'a> {
    fn new(tokens: &'a [String], mark: char) -> Self {
        let tokens =
            tokens.iter().map(String::as_str).filter(|token| token.chars().nth(1).is_some());
        let tokens: Vec<_> = tokens.collect();
        let mut firsts: Vec<_> = tokens.iter().filter_map(|token| token.chars().next()).collect();
        firsts.sort_unstable();
        firsts.dedup();
        Self { tokens, firsts, mark }
    }

    fn mark_message(&self, message: &Message) -> Message {
        let Message { role, content, fields } = message;
        Message {
            role: self.mark_text(role),
            content: self.mark_text(content),
            fields: self.mark_map(fields),
        }
    }

    fn mark_map(&self, map: &Map<String, Value>) -> Map<String, Value> {
        map.iter().map(|(key, value)| (self.mark_text(key), self.mark_value(value))).collect()
    }

    fn mark_value(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.mark_text(text)),
            Value::Array(values) => values.iter().map(|value| self.mark_value(value)).collect(),
            Value::Object(map) => Value::Object(self.mark_map(map)),
            other => other.clone(),
        }
    }

    fn mark_text(&self, text: &str) -> String {
        self.mark(text).unwrap_or_else(|| text.to_owned())
    }

    /// The text with a mark after the first character of each spelling; none if it has none.
    fn mark(&self, text: &str) -> Option<String> {
        let (mut marked, mut copied) = (String::new(), 0);
        let end = text.trim_end().len(); // templates trim
        for (at, first) in text.char_indices() {
            if self.firsts.contains(&first) && self.begins(&text[at..], &text[at..end.max(at)]) {
                let next = at + first.len_utf8();
                marked.push_str(&text[copied..next]);
                marked.push(self.mark);
                copied = next;
            }
        }
        (copied > 0).then(|| marked + &text[copied..])
    }

    /// Whether a text begins with a token, or its last characters begin one.
    fn begins(&self, rest: &str, trimmed: &str) -> bool {
        let is_open = |token: &&&str| !trimmed.is_empty() && token.starts_with(trimmed);
        self.tokens.iter().any(|token| rest.starts_with(token) || is_open(&token))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{HfTokenizer, Tokenizer};

    const END: u32 = 200;

    fn tokenizer() -> HfTokenizer {
        with_pre_tokenizer(&Value::Null)
    }

    /// A token for each letter, and `<|end|>` and `<|b|>`.
    fn with_pre_tokenizer(pre_tokenizer: &Value) -> HfTokenizer {
        let special = |id: u32, content: &str| {
            json!({
                "id": id, "content": content, "special": true, "normalized": false,
                "single_word": false, "lstrip": false, "rstrip": false,
            })
        };
        let letters = ('\0'..'\x7f').map(|letter| (letter.to_string(), u32::from(letter).into()));
        let mut vocab: Map<String, Value> = letters.collect();
        vocab.insert("<|end|>".into(), END.into());
        vocab.insert("<|b|>".into(), (END + 1).into());
        let json = json!({
            "version": "1.0",
            "added_tokens": [special(END, "<|end|>"), special(END + 1, "<|b|>")],
            "normalizer": null,
            "pre_tokenizer": pre_tokenizer,
            "post_processor": null,
            "decoder": null,
            "model": {"type": "BPE", "vocab": vocab, "merges": []},
        });
        HfTokenizer::from_bytes(json.to_string().as_bytes()).expect("a tokenizer")
    }

    fn marked(content: &str) -> Option<MarkedMessages> {
        let messages = [Message::user(content)];
        MarkedMessages::new(&messages, &tokenizer().special_tokens()).expect("a free mark")
    }

    #[test]
    fn messages_without_special_tokens_are_left_alone() {
        for content in ["", "hello", "a < b", "<p>x</p>", "|end|>", "<|en|>", "<| end|>"] {
            assert_eq!(marked(content), None, "{content}");
        }
    }

    #[test]
    fn a_marked_token_is_its_letters_and_others_are_themselves() {
        let byte_level =
            json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true});
        for tokenizer in [tokenizer(), with_pre_tokenizer(&byte_level)] {
            check_marked(&tokenizer);
        }
    }

    fn check_marked(tokenizer: &HfTokenizer) {
        let letters = |text: &str| text.chars().map(u32::from).collect::<Vec<_>>();
        for content in ["<|end|>", "a<|end|><|b|>c", "<<|end|>", "<|end|", "x<|b", "<|end|>"] {
            let MarkedMessages { messages, mark } = marked(content).expect(content);
            let text = format!("<|end|>{}<|b|>", messages[0].content);
            let expected = [vec![END], letters(content), vec![END + 1]].concat();
            assert_eq!(
                tokenizer.encode_marked(&text, mark).expect("tokens"),
                expected,
                "{content}"
            );
        }
        let plain = "<|b|>hello<|end|>";
        let expected = tokenizer.encode(plain, false).expect("tokens");
        assert_eq!(tokenizer.encode_marked(plain, '\u{fdd0}').expect("tokens"), expected);
    }

    #[test]
    fn every_text_of_a_message_is_marked_and_parts_cannot_be_joined() {
        let mut message = Message::new("<|b|>", "<|e");
        let parts = json!([{"text": "nd|>"}, {"<|end|>": ["<|b|>"]}]);
        message.fields.insert("parts".into(), parts);
        let special = tokenizer().special_tokens();
        let found = MarkedMessages::new(&[message], &special).expect("a free mark").expect("marks");
        let json = serde_json::to_string(&found.messages).expect("JSON");
        assert_eq!(json.matches(found.mark).count(), 4, "{json}");
        let mut joined = found.messages[0].content.clone();
        joined.push_str("nd|>");
        let tokens = tokenizer().encode_marked(&joined, found.mark).expect("tokens");
        assert_eq!(tokens.len(), "<|end|>".len());
    }

    #[test]
    fn the_mark_is_none_of_the_messages_characters() {
        let found = marked("\u{fdd0}\u{fdd1}<|end|>").expect("marks");
        assert_eq!(found.mark, '\u{fdd2}');
        let all: String = MARKS.chain("<|end|>".chars()).collect();
        let special = tokenizer().special_tokens();
        let error = MarkedMessages::new(&[Message::user(all)], &special).expect_err("none is free");
        assert!(matches!(error, TextError::NoFreeMark), "{error}");
    }
}
