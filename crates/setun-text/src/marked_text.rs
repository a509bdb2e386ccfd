//! Special tokens that are spelt in messages: marked, so that they stay text.
//!
//! A chat template writes special tokens around messages, and the rendered prompt is one text. The
//! spelling of a special token inside a message would end that message, or begin one of another
//! role. A mark inside the spelling passes the template and hides it from the tokenizer, which
//! then leaves the mark out.

use serde_json::{Map, Value};

use crate::{
    Message, TextError,
    spellings::{Spellings, parts},
};

/// Noncharacters, which no text has that was written to be read.
pub(crate) const MARKS: std::ops::RangeInclusive<char> = '\u{fdd0}'..='\u{fdef}';

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
    /// character cannot be marked. Words that templates compare, such as roles, are left alone.
    ///
    /// # Errors
    ///
    /// If the messages have all noncharacters that could be the mark.
    pub fn new(messages: &[Message], special_tokens: &[String]) -> Result<Option<Self>, TextError> {
        let is_free = |mark: &char| {
            let has_mark = |text: &str| text.contains(*mark);
            !special_tokens.iter().any(|token| has_mark(token))
                && !messages.iter().any(|message| any_text(message, &has_mark))
        };
        let mut marks = MARKS;
        let free = marks.find(is_free);
        let tokens = Spellings::new(special_tokens.iter().map(String::as_str));
        let marker = Marker { tokens, mark: free.unwrap_or(*MARKS.start()) };
        let marked: Vec<_> = messages.iter().map(|message| marker.mark_message(message)).collect();
        if marked == messages {
            return Ok(None);
        }
        let mark = free.ok_or(TextError::NoFreeMark)?;
        Ok(Some(Self { messages: marked, mark }))
    }
}

/// Whether one of a message's texts is so.
pub(crate) fn any_text(message: &Message, is_so: &dyn Fn(&str) -> bool) -> bool {
    let Message { role, content, fields } = message;
    is_so(role)
        || content.as_deref().is_some_and(is_so)
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
struct Marker<'a> {
    tokens: Spellings<'a>,
    mark: char,
}

impl Marker<'_> {
    fn mark_message(&self, message: &Message) -> Message {
        let Message { role, content, fields } = message;
        Message {
            role: self.mark_name(role),
            content: content.as_deref().map(|text| self.mark_text(text)),
            fields: self.mark_map(fields),
        }
    }

    fn mark_map(&self, map: &Map<String, Value>) -> Map<String, Value> {
        map.iter().map(|(key, value)| (self.mark_name(key), self.mark_value(value))).collect()
    }

    fn mark_value(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.mark_text(text)),
            Value::Array(values) => values.iter().map(|value| self.mark_value(value)).collect(),
            Value::Object(map) => Value::Object(self.mark_map(map)),
            other => other.clone(),
        }
    }

    /// A role or a key.
    fn mark_name(&self, name: &str) -> String {
        if is_word(name) { name.to_owned() } else { self.mark_text(name) }
    }

    /// The text with a mark after the first character of each spelling. A word is marked only if it
    /// has a whole one: `text` may be a type, though a token begins with its last letter.
    fn mark_text(&self, text: &str) -> String {
        let marked = |parts: &mut dyn Iterator<Item = &str>| {
            let mut marked = parts.next().unwrap_or_default().to_owned();
            for part in parts {
                marked.push(self.mark);
                marked.push_str(part);
            }
            marked
        };
        if is_word(text) {
            marked(&mut parts(text, self.tokens.cuts(text)))
        } else {
            marked(&mut parts(text, self.tokens.open_cuts(text)))
        }
    }
}

/// Whether a text is one that templates compare.
pub(crate) fn is_word(text: &str) -> bool {
    text.chars().all(|letter| letter.is_alphanumeric() || matches!(letter, '_' | '-'))
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
        let letters = ('\0'..'\x7f').map(|letter| (letter.to_string(), u32::from(letter).into()));
        let mut vocab: Map<String, Value> = letters.collect();
        vocab.insert("<|end|>".into(), END.into());
        vocab.insert("<|b|>".into(), (END + 1).into());
        let model = json!({"type": "BPE", "vocab": vocab, "merges": []});
        built(&[(END, "<|end|>"), (END + 1, "<|b|>")], pre_tokenizer, &model)
    }

    fn built(special: &[(u32, &str)], pre_tokenizer: &Value, model: &Value) -> HfTokenizer {
        let special = special.iter().map(|(id, content)| {
            json!({
                "id": id, "content": content, "special": true, "normalized": false,
                "single_word": false, "lstrip": false, "rstrip": false,
            })
        });
        let json = json!({
            "version": "1.0",
            "added_tokens": special.collect::<Vec<_>>(),
            "normalizer": null,
            "pre_tokenizer": pre_tokenizer,
            "post_processor": null,
            "decoder": null,
            "model": model,
        });
        HfTokenizer::from_bytes(json.to_string().as_bytes()).expect("a tokenizer")
    }

    fn marked(content: &str) -> Option<MarkedMessages> {
        let messages = [Message::user(content)];
        MarkedMessages::new(&messages, &tokenizer().special_tokens()).expect("a free mark")
    }

    fn text(message: &Message) -> &str {
        message.content.as_deref().expect("a text")
    }

    #[test]
    fn messages_without_special_tokens_are_left_alone() {
        for content in ["", "hello", "a < b", "<p>x</p>", "|end|>", "<|en|>", "<| end|>"] {
            assert_eq!(marked(content), None, "{content}");
        }
    }

    #[test]
    fn words_that_templates_compare_are_left_alone() {
        let mut message = Message::new("user", "te");
        message.fields.insert("type".into(), json!([{"type": "text"}]));
        let special = ["text|", "ser", "typewriter", "user"].map(str::to_owned);
        assert_eq!(MarkedMessages::new(&[message.clone()], &special).expect("a free mark"), None);
        message.content = Some("a user; te".into());
        let found = MarkedMessages::new(&[message], &special).expect("a free mark").expect("marks");
        let expected = "a u\u{fdd0}s\u{fdd0}er; t\u{fdd0}e";
        assert_eq!(found.messages[0].content.as_deref(), Some(expected));
        assert_eq!(found.messages[0].role, "user");
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
        for content in ["<|end|>", "a<|end|><|b|>c", "<<|end|>", "<|end|", "x<|b", "a<", "<"] {
            let MarkedMessages { messages, mark } = marked(content).expect(content);
            let text = format!("<|end|>{}<|b|>", text(&messages[0]));
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

    /// Pieces that a model finds by itself, and a piece that is a mark alone.
    #[test]
    fn a_model_that_has_special_tokens_itself_is_not_given_them() {
        let pieces = json!([["<unk>", 0], ["</s>", 0], ["<", -9], ["/s>", -9], ["x", -9]]);
        let unigram = json!({"type": "Unigram", "unk_id": 0, "vocab": pieces});
        let words = json!({"</s>": 1, "<": 2, "/s>": 3, "x": 4, "?": 5});
        let words = json!({"type": "WordLevel", "unk_token": "?", "vocab": words});
        let level = json!({
            "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true,
            "use_regex": false,
        });
        for (special, pre_tokenizer, model, expected) in [
            (&[(1, "</s>")][..], &Value::Null, &unigram, [1, 2, 3, 1]),
            (&[(1, "</s>")], &Value::Null, &words, [1, 2, 3, 1]),
            (&[(1, "</s>"), (2, "<")], &level, &words, [1, 2, 3, 1]),
        ] {
            let tokenizer = built(special, pre_tokenizer, model);
            let special = tokenizer.special_tokens();
            for content in ["</s>", "<"] {
                let messages = [Message::user(content)];
                let found = MarkedMessages::new(&messages, &special).expect("a free mark");
                let found = found.expect("marks");
                let text = format!("</s>{}</s>", text(&found.messages[0]));
                let ids = tokenizer.encode_marked(&text, found.mark).expect("tokens");
                let expected: &[_] = if content == "<" { &[1, 2, 1] } else { &expected };
                assert_eq!(ids, expected, "{content}");
            }
        }
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
        let mut joined = text(&found.messages[0]).to_owned();
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
