//! Tokens of a Lark grammar, as far as its bounds need them.

use std::io::Cursor;
use std::ops::Range;

use serde_json::{Deserializer, Value};

pub(super) enum Token<'a> {
    /// The end of a line.
    Line,
    /// A bracket that begins a group, the arguments of a template or a grammar in a grammar.
    Open,
    Close,
    /// A rule or terminal.
    Name(&'a str),
    /// A text in quotes, or the name of a special token.
    Text,
    /// One of `| ? * + ~`.
    Operator,
    /// The inside of a regular expression.
    Expression(&'a str),
    /// A JSON schema.
    Schema(Value),
    /// A word after a percent sign that begins no schema.
    Directive,
}

/// The tokens of a text. Comments, numbers and other operators are left out, and what follows
/// something that is no token.
pub(super) struct Tokens<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Tokens<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    pub(super) fn next(&mut self) -> Option<Token<'a>> {
        loop {
            let first = self.byte(0)?;
            self.at += 1;
            match first {
                b'\n' => return Some(Token::Line),
                b'(' | b'[' => return Some(Token::Open),
                b'{' if !self.is_count() => return Some(Token::Open),
                b')' | b']' | b'}' => return Some(Token::Close),
                b'#' => self.skip(|byte| byte != b'\n'),
                b'/' if self.byte(0) == Some(b'/') => self.skip(|byte| byte != b'\n'),
                b'/' => {
                    return self.quoted(b'/').map(|inside| Token::Expression(&self.text[inside]));
                }
                b'"' => return self.quoted(b'"').map(|_| Token::Text),
                b'<' => {
                    self.skip(|byte| !byte.is_ascii_whitespace() && byte != b'<' && byte != b'>');
                    return Some(Token::Text);
                }
                b'@' => self.skip(is_of_name),
                b'|' | b'?' | b'*' | b'+' | b'~' => return Some(Token::Operator),
                b'%' => return self.directive(),
                b'_' | b'a'..=b'z' | b'A'..=b'Z' => {
                    self.at -= 1;
                    return Some(Token::Name(self.name()));
                }
                _ => {}
            }
        }
    }

    fn byte(&self, ahead: usize) -> Option<u8> {
        self.text.as_bytes().get(self.at + ahead).copied()
    }

    fn skip(&mut self, more: fn(u8) -> bool) {
        while self.byte(0).is_some_and(more) {
            self.at += 1;
        }
    }

    /// Whether a brace begins a number of times. Where it does, its end closes nothing.
    fn is_count(&mut self) -> bool {
        let is_count = matches!(self.byte(0), Some(b'0'..=b'9' | b','));
        if is_count {
            self.skip(|byte| byte != b'}' && byte != b'\n');
            self.at += usize::from(self.byte(0) == Some(b'}'));
        }
        is_count
    }

    /// What is before the next quote of this kind, which is gone over.
    fn quoted(&mut self, quote: u8) -> Option<Range<usize>> {
        let start = self.at;
        loop {
            match self.byte(0)? {
                b'\\' => self.at += 2,
                byte if byte == quote => break,
                _ => self.at += 1,
            }
        }
        self.at += 1;
        Some(start..self.at - 1)
    }

    /// Lower-case letters are of rules, upper-case ones of terminals; no name has both.
    fn name(&mut self) -> &'a str {
        let start = self.at;
        self.skip(|byte| byte == b'_');
        if self.byte(0).is_some_and(|byte| byte.is_ascii_uppercase()) {
            self.skip(|byte| is_of_name(byte) && !byte.is_ascii_lowercase());
        } else {
            self.skip(|byte| is_of_name(byte) && !byte.is_ascii_uppercase());
        }
        &self.text[start..self.at]
    }

    fn directive(&mut self) -> Option<Token<'a>> {
        let start = self.at;
        self.skip(|byte| byte.is_ascii_lowercase());
        let word = &self.text[start..self.at];
        if !["json", "regex", "llguidance"].contains(&word) {
            return Some(Token::Directive);
        }
        // Read just as the parser does, whose code this is.
        let rest = Cursor::new(&self.text.as_bytes()[self.at..]);
        let mut values = Deserializer::from_reader(rest).into_iter();
        let value: Value = values.next()?.ok()?;
        self.at += values.byte_offset();
        Some(if word == "json" { Token::Schema(value) } else { Token::Directive })
    }
}

fn is_of_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}
