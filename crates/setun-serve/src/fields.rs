//! Fields of a request, each taken by its name and type.

use serde::Deserialize;
use serde_json::{Map, Value};
use setun::text::OptionValue;
use tracing::debug;

use crate::{
    error::ApiError,
    excerpt::excerpt,
    parsing::ParsedPlaces,
    request_fields::{self, Treatment},
    warnings::Warnings,
};

/// The fields of a JSON object that have not been taken. A field that is null counts as absent.
#[derive(Debug, Default)]
pub(crate) struct Fields {
    path: String,
    map: Map<String, Value>,
    /// Of all values of a body, in the outermost object.
    places: Option<ParsedPlaces>,
    warnings: Vec<String>,
}

impl Fields {
    /// Reads the body of a request.
    pub(crate) fn read(body: &[u8]) -> Result<Self, ApiError> {
        let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body); // a byte order mark
        let value =
            serde_json::from_slice(body).map_err(|error| ApiError::bad_json(&error.to_string()))?;
        match value {
            Value::Object(map) => Ok(Self { map, ..Self::default() }),
            _ => Err(ApiError::bad_json("it is another value")),
        }
    }

    fn inner(path: String, map: Map<String, Value>) -> Self {
        Self { path, map, places: None, warnings: vec![] }
    }

    /// The same with the places that its values have.
    pub(crate) fn with_places(self, places: ParsedPlaces) -> Self {
        Self { places: Some(places), ..self }
    }

    /// The name of a field with that of the object that it is in.
    pub(crate) fn name(&self, field: &str) -> String {
        format!("{}{field}", self.path)
    }

    /// The value of a field that stays.
    pub(crate) fn get(&self, field: &str) -> Option<&Value> {
        self.map.get(field).filter(|value| !value.is_null())
    }

    pub(crate) fn take(&mut self, field: &str) -> Option<Value> {
        #[cfg(test)]
        taken::record(self.name(field));
        self.map.shift_remove(field).filter(|value| !value.is_null())
    }

    /// Gives a field a value, unless it has one.
    pub(crate) fn set_default(&mut self, field: &str, value: impl Into<Value>) {
        let found = self.map.entry(field).or_insert(Value::Null);
        if found.is_null() {
            *found = value.into();
        }
    }

    pub(crate) fn text(&mut self, field: &str) -> Result<Option<String>, ApiError> {
        match self.take(field) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(self.wrong_type(field, "a string", &other)),
        }
    }

    pub(crate) fn flag(&mut self, field: &str) -> Result<Option<bool>, ApiError> {
        match self.take(field) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(flag)),
            Some(other) => Err(self.wrong_type(field, "true or false", &other)),
        }
    }

    /// An integer of a range, both ends included.
    pub(crate) fn count(
        &mut self,
        field: &str,
        least: usize,
        most: usize,
    ) -> Result<Option<usize>, ApiError> {
        let expected = format!("an integer from {least} to {most}");
        let Some(value) = self.take(field) else { return Ok(None) };
        if !value.is_number() {
            return Err(self.wrong_type(field, &expected, &value));
        }
        let count = whole(&value).and_then(|count| usize::try_from(count).ok());
        let refused = || {
            let reason = format!("expected {expected}, found {}", excerpt(&value));
            ApiError::invalid(&self.name(field), reason)
        };
        count.filter(|count| (least..=most).contains(count)).ok_or_else(refused).map(Some)
    }

    pub(crate) fn list(&mut self, field: &str) -> Result<Option<Vec<Value>>, ApiError> {
        match self.take(field) {
            None => Ok(None),
            Some(Value::Array(list)) => Ok(Some(list)),
            Some(other) => Err(self.wrong_type(field, "a list", &other)),
        }
    }

    pub(crate) fn object(&mut self, field: &str) -> Result<Option<Self>, ApiError> {
        match self.take(field) {
            None => Ok(None),
            Some(Value::Object(map)) => Ok(Some(Self::inner(self.name(field) + ".", map))),
            Some(other) => Err(self.wrong_type(field, "an object", &other)),
        }
    }

    /// A list of objects.
    pub(crate) fn objects(&mut self, field: &str) -> Result<Option<Vec<Self>>, ApiError> {
        let list = self.list(field)?;
        list.map(|list| Self::of_list(&self.name(field), list)).transpose()
    }

    /// The objects of a list of this name.
    pub(crate) fn of_list(name: &str, list: Vec<Value>) -> Result<Vec<Self>, ApiError> {
        let object = |(index, value)| match value {
            Value::Object(map) => Ok(Self::inner(format!("{name}[{index}]."), map)),
            other => Err(ApiError::wrong_type(&format!("{name}[{index}]"), "an object", &other)),
        };
        list.into_iter().enumerate().map(object).collect()
    }

    /// A text that has to be given.
    pub(crate) fn required_text(&mut self, field: &str) -> Result<String, ApiError> {
        self.text(field)?.ok_or_else(|| ApiError::missing(&self.name(field), "a string"))
    }

    /// All fields that have not been taken.
    pub(crate) fn map(&self) -> &Map<String, Value> {
        &self.map
    }

    pub(crate) fn into_map(self) -> Map<String, Value> {
        self.map
    }

    /// Notes what the answer does not hold to, for [`Self::finish`].
    pub(crate) fn warn(&mut self, warning: String) {
        self.warnings.push(warning);
    }

    /// Refuses fields that nobody has taken and that would change an answer, and warns of those that
    /// are unknown.
    pub(crate) fn finish(self, warnings: &Warnings) -> Result<(), ApiError> {
        warnings.add(&self.warnings);
        for (field, value) in &self.map {
            let ignored = |why: &str| warnings.add(&[format!("`{field}` is {why} and is ignored")]);
            match request_fields::treatment(field) {
                _ if value.is_null() => {}
                Some(Treatment::Refused(neutral, reason)) => {
                    if !request_fields::is_neutral(value, neutral) {
                        return Err(ApiError::unsupported(&self.name(field), reason));
                    }
                }
                Some(Treatment::Nothing) => {}
                Some(Treatment::Done) => ignored("not read here"),
                None => ignored("unknown"),
            }
        }
        self.report_unknown();
        Ok(())
    }

    /// The same, where such fields are only warned of.
    pub(crate) fn finish_gently(mut self, warnings: &Warnings) {
        let is_refused = |field: &str, value: &Value| match request_fields::treatment(field) {
            Some(Treatment::Refused(neutral, _)) => !request_fields::is_neutral(value, neutral),
            _ => false,
        };
        let refused = self.map.iter().filter(|(field, value)| is_refused(field, value));
        let refused: Vec<String> = refused.map(|(field, _)| field.clone()).collect();
        for field in refused {
            self.map.shift_remove(&field);
            warnings.add(&[format!("`{}` is not supported and is ignored", self.name(&field))]);
        }
        let _ = self.finish(warnings); // none is left that would be refused
    }

    /// Lists the fields that nobody has taken in the log, by their names alone.
    pub(crate) fn report_unknown(self) {
        let names: Vec<_> = self.map.keys().collect();
        if !names.is_empty() {
            debug!(target: "setun_serve", fields = ?names, "unknown fields are ignored");
        }
    }

    pub(crate) fn wrong_type(&self, field: &str, expected: &str, found: &Value) -> ApiError {
        ApiError::wrong_type(&self.name(field), expected, found)
    }
}

/// A whole number of 0 or more. JSON has it with a fraction of zero, too.
pub(crate) fn whole(value: &Value) -> Option<u64> {
    let number = OptionValue::deserialize(value).ok()?.integer()?;
    u64::try_from(number).ok()
}

/// The names of all fields that this thread has taken, or looked for.
#[cfg(test)]
pub(crate) mod taken {
    use std::{cell::RefCell, collections::BTreeSet};

    thread_local! {
        static NAMES: RefCell<BTreeSet<String>> = RefCell::default();
    }

    pub(super) fn record(name: String) {
        NAMES.with_borrow_mut(|names| names.insert(name));
    }

    /// Those since the last call.
    pub(crate) fn names() -> BTreeSet<String> {
        NAMES.take()
    }
}
