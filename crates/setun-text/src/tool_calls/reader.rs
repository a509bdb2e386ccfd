//! Calls taken out of a stream of text.

use super::{
    ArgumentForm, ToolCallDelta, ToolFormat,
    xml::{Read, XmlArguments},
};
use crate::{
    Tool,
    draw::absorbed,
    stop_strings::{first_match, longest_beginning},
};

/// Takes the calls out of the text of an answer.
///
/// The text is what a constraint allows that is made of the same format: free text, then calls and
/// nothing else. Text goes out as soon as it cannot be part of a marker.
#[derive(Clone, Debug)]
pub struct ToolCallReader {
    format: ToolFormat,
    part: Part,
    held: String,
    index: usize, // of the call that comes or is read
    has_calls: bool,
    key: u64,
    tags: Vec<(u32, &'static str)>,
    /// The beginnings of calls up to their arguments, where a text may begin like a call.
    heads: Vec<String>,
    /// The functions, where arguments are XML, and the one that is called.
    functions: Vec<Tool>,
    function: Option<usize>,
}

/// Where in an answer the next byte belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// Before the first call, or where there is none.
    Text,
    /// Text after which no call can come.
    Free,
    /// What is known to stand before the first name, and before the others.
    Marker,
    Opening,
    Separator,
    Name,
    Middle,
    Arguments(Json),
    Xml(XmlArguments),
    After,
    /// Text that is none of the format's.
    Other,
}

/// Where in an object a character is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Json {
    depth: usize,
    in_string: bool,
    is_escaped: bool,
}

/// What one piece of text led to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolStep {
    /// Text that belongs to no call.
    pub text: String,
    /// Pieces of calls.
    pub calls: Vec<ToolCallDelta>,
}

impl ToolCallReader {
    /// Begins before an answer. Where it `begins_with_call` there is no text before the calls. The
    /// ids of calls follow from the prompt, the seed and the sample.
    #[must_use]
    pub fn new(
        format: ToolFormat,
        begins_with_call: bool,
        prompt: &[u32],
        [seed, sample]: [u64; 2],
    ) -> Self {
        let key = absorbed(prompt.iter().map(|&token| token.into()).chain([seed, sample]));
        let part = if begins_with_call { Part::Marker } else { Part::Text };
        Self {
            format,
            part,
            held: String::new(),
            index: 0,
            has_calls: false,
            key,
            tags: vec![],
            heads: vec![],
            functions: vec![],
            function: None,
        }
    }

    /// Reads calls of these functions. In XML their schemas say which values are strings.
    #[must_use]
    pub fn with_functions(mut self, tools: &[Tool]) -> Self {
        if ArgumentForm::HAS_XML && self.format.arguments == ArgumentForm::Xml {
            self.functions = tools.to_vec();
        }
        self
    }

    /// Reads calls of functions of these names at the start of the answer alone. An answer that
    /// begins otherwise is a text as a whole, as one of a response format is.
    #[must_use]
    pub fn beside_format<'a>(mut self, names: impl Iterator<Item = &'a str>) -> Self {
        let ToolFormat { marker, at_start, opening, middle, .. } = self.format;
        if at_start {
            // Its marker is no tag: a text may begin with it.
            self.heads = names.map(|name| format!("{marker}{opening}{name}{middle}")).collect();
        }
        self.format.at_start = true;
        self
    }

    /// Reads these special tokens, whose text is empty, as what they spell.
    #[must_use]
    pub fn with_tags(self, tags: Vec<(u32, &'static str)>) -> Self {
        Self { tags, ..self }
    }

    /// Takes the next token and the text that it completes.
    pub fn push(&mut self, token: u32, text: &str) -> ToolStep {
        self.held.push_str(text);
        let tag = self.tags.iter().find(|(tag, _)| *tag == token);
        self.held.extend(tag.map(|(_, spelling)| *spelling));
        let mut step = ToolStep::default();
        if self.is_text() {
            step.text = self.text();
        }
        while !self.is_text() && self.advance(&mut step.calls) {}
        step
    }

    /// The text that is held back at the end of an answer.
    pub fn finish(&mut self) -> String {
        let held = std::mem::take(&mut self.held);
        if self.is_text() { held } else { String::new() }
    }

    fn is_text(&self) -> bool {
        matches!(self.part, Part::Text | Part::Free)
    }

    /// Whether there is a call.
    #[must_use]
    pub fn has_calls(&self) -> bool {
        self.has_calls
    }

    /// Text that cannot be part of a marker.
    fn text(&mut self) -> String {
        let marker = self.format.marker;
        if self.part == Part::Text && self.format.at_start {
            self.part = self.beginning(marker);
        }
        if self.part == Part::Free {
            return std::mem::take(&mut self.held);
        }
        if self.part == Part::Marker || self.format.at_start {
            return String::new();
        }
        // A line break before a call is the format's.
        let markers = [format!("\n{marker}"), marker.to_owned()];
        if let Some((start, _)) = first_match(&markers, &self.held) {
            self.part = Part::Marker;
            let text = self.held.drain(..start).collect();
            self.held = self.held.trim_start_matches('\n').to_owned();
            return text;
        }
        let certain = self.held.len() - longest_beginning(&markers, &self.held);
        self.held.drain(..certain).collect()
    }

    /// The kind of an answer that may call at its start alone, as far as it is known.
    fn beginning(&self, marker: &str) -> Part {
        let heads = self.heads.iter().map(String::as_str);
        let mut heads = heads.chain([marker].into_iter().filter(|_| self.heads.is_empty()));
        if heads.clone().any(|head| self.held.starts_with(head)) {
            Part::Marker
        } else if heads.any(|head| head.starts_with(&self.held)) {
            Part::Text
        } else {
            Part::Free
        }
    }

    /// Reads one part, if it is complete. Whether it was.
    fn advance(&mut self, calls: &mut Vec<ToolCallDelta>) -> bool {
        let ToolFormat { marker, opening, middle, after, separator, .. } = self.format;
        match self.part {
            Part::Marker => self.literal(marker, Part::Opening),
            Part::Opening => self.literal(opening, Part::Name),
            Part::Separator => {
                separator.is_some_and(|separator| self.literal(separator, Part::Name))
            }
            Part::Name => self.name(calls),
            Part::Middle => {
                let next = match self.format.arguments {
                    ArgumentForm::Xml if ArgumentForm::HAS_XML => {
                        Part::Xml(XmlArguments::default())
                    }
                    _ => Part::Arguments(Json::default()),
                };
                self.literal(middle, next)
            }
            Part::Arguments(json) => self.arguments(json, calls),
            Part::Xml(xml) if ArgumentForm::HAS_XML => self.xml(xml, calls),
            Part::After => {
                let is_complete = self.literal(after, Part::Separator);
                self.index += usize::from(is_complete);
                is_complete
            }
            Part::Text | Part::Free | Part::Other | Part::Xml(_) => {
                self.held.clear();
                false
            }
        }
    }

    /// Goes over a known text.
    fn literal(&mut self, text: &str, next: Part) -> bool {
        if let Some(rest) = self.held.strip_prefix(text) {
            self.held = rest.to_owned();
            self.part = next;
            return true;
        }
        if !text.starts_with(&self.held) {
            self.part = Part::Other;
        }
        false
    }

    fn name(&mut self, calls: &mut Vec<ToolCallDelta>) -> bool {
        // A name has none of the marks that come after it.
        let Some(end) = self.format.middle.chars().next().and_then(|mark| self.held.find(mark))
        else {
            return false;
        };
        let name: String = self.held.drain(..end).collect();
        self.function = self.functions.iter().position(|known| known.name == name);
        let (index, id) = (self.index, Some(id(self.key, self.index)));
        calls.push(ToolCallDelta { index, id, name: Some(name), arguments: String::new() });
        self.part = Part::Middle;
        self.has_calls = true;
        true
    }

    fn arguments(&mut self, mut json: Json, calls: &mut Vec<ToolCallDelta>) -> bool {
        let mut characters = self.held.char_indices();
        let end = characters.find(|(_, character)| json.ends_with(*character));
        let end = end.map(|(start, character)| start + character.len_utf8());
        let arguments: String = self.held.drain(..end.unwrap_or(self.held.len())).collect();
        self.add(arguments, calls);
        self.part = if end.is_some() { Part::After } else { Part::Arguments(json) };
        end.is_some()
    }

    fn xml(&mut self, mut xml: XmlArguments, calls: &mut Vec<ToolCallDelta>) -> bool {
        let function = self.function.and_then(|place| self.functions.get(place));
        let schema = function.and_then(|function| function.parameters.as_ref());
        let mut json = String::new();
        let read = xml.read(&mut self.held, schema, &mut json);
        self.add(json, calls);
        self.part = if read == Read::End { Part::After } else { Part::Xml(xml) };
        read != Read::More
    }

    /// Adds to the arguments of the call that is read.
    fn add(&self, arguments: String, calls: &mut Vec<ToolCallDelta>) {
        match calls.last_mut().filter(|last| last.index == self.index) {
            Some(last) => last.arguments.push_str(&arguments),
            None if arguments.is_empty() => {}
            None => {
                calls.push(ToolCallDelta {
                    index: self.index,
                    arguments,
                    ..ToolCallDelta::default()
                });
            }
        }
    }
}

impl Json {
    /// Takes a character. Whether it ends the object.
    fn ends_with(&mut self, character: char) -> bool {
        if self.in_string {
            self.in_string = character != '"' || self.is_escaped;
            self.is_escaped = character == '\\' && !self.is_escaped;
            return false;
        }
        match character {
            '"' => self.in_string = true,
            '{' | '[' => self.depth += 1,
            '}' | ']' => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
        self.depth == 0
    }
}

/// Nine letters and digits, which every template takes.
fn id(key: u64, index: usize) -> String {
    let mut bits = absorbed([key, index as u64]);
    let digit = |_| {
        let digit = (bits % 62) as u8;
        bits /= 62;
        char::from(match digit {
            0..10 => b'0' + digit,
            10..36 => b'A' + digit - 10,
            _ => b'a' + digit - 36,
        })
    };
    (0..9).map(digit).collect()
}
