//! Arguments in XML, taken out of a stream of text as JSON.

use serde_json::{Map, Value};

use super::parameters::{PARAMETER, Parameter, Types};
use crate::stop_strings::{first_match, longest_beginning};

/// Where in the arguments of a call the next byte belongs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct XmlArguments {
    /// Parameters that have begun.
    begun: usize,
    place: Place,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    /// Before a parameter, or before what comes after all.
    #[default]
    Between,
    Name,
    /// In a string.
    Text,
    /// In another value.
    Json(Types),
}

/// What reading led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Read {
    /// A part is complete.
    Part,
    /// More text is needed.
    More,
    /// There is no further parameter.
    End,
}

impl XmlArguments {
    /// Reads one part of the held text, and appends it to `json` as JSON.
    pub(super) fn read(
        &mut self,
        held: &mut String,
        schema: Option<&Map<String, Value>>,
        json: &mut String,
    ) -> Read {
        let [before, middle, behind] = PARAMETER;
        match self.place {
            Place::Between => {
                if let Some(rest) = held.strip_prefix(before) {
                    *held = rest.to_owned();
                    self.place = Place::Name;
                    return Read::Part;
                }
                if before.starts_with(held.as_str()) {
                    return Read::More;
                }
                json.push_str(if self.begun == 0 { "{}" } else { "}" });
                Read::End
            }
            Place::Name => {
                let Some(end) = held.find(middle) else { return Read::More };
                self.begin(&held[..end], schema, json);
                held.drain(..end + middle.len());
                Read::Part
            }
            Place::Text => {
                let behind = [behind.to_owned()];
                let end = first_match(&behind, held).map(|(end, _)| end);
                let certain = end.unwrap_or_else(|| held.len() - longest_beginning(&behind, held));
                json.push_str(inside(&Value::from(&held[..certain]).to_string()));
                if end.is_some() {
                    json.push('"');
                }
                held.drain(..certain);
                self.leave(end.map(|_| 0), held)
            }
            Place::Json(types) => {
                let end = held.find(behind);
                if let Some(end) = end {
                    json.push_str(&types.json(&held[..end]));
                }
                self.leave(end, held)
            }
        }
    }

    fn begin(&mut self, name: &str, schema: Option<&Map<String, Value>>, json: &mut String) {
        json.push_str(if self.begun == 0 { "{" } else { ", " });
        json.push_str(&Value::from(name).to_string());
        json.push_str(": ");
        self.begun += 1;
        let types = schema.map(|schema| Parameter::named(name, schema).types).unwrap_or_default();
        self.place = if types.is_text() {
            json.push('"');
            Place::Text
        } else {
            Place::Json(types)
        };
    }

    /// Goes over the end of a value that begins at a place, if it is there.
    fn leave(&mut self, end: Option<usize>, held: &mut String) -> Read {
        let Some(end) = end else { return Read::More };
        held.drain(..end + PARAMETER[2].len());
        self.place = Place::Between;
        Read::Part
    }
}

/// A string of JSON without its quotes.
fn inside(json: &str) -> &str {
    json.strip_prefix('"').and_then(|json| json.strip_suffix('"')).unwrap_or(json)
}
