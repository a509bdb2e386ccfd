//! Numbers of names, in the order in which the names are met.

use serde_json::{Map, Value};

/// Different names, numbered from 0.
///
/// A JSON object holds them: a map of another kind would be kilobytes more of WebAssembly.
#[derive(Default)]
pub(crate) struct Names {
    numbers: Map<String, Value>,
}

impl Names {
    /// The number of a name, which is known or the next one.
    pub(crate) fn number(&mut self, name: &str) -> usize {
        self.get(name).unwrap_or_else(|| {
            let number = self.len();
            self.numbers.insert(name.to_owned(), number.into());
            number
        })
    }

    /// The number of a known name.
    pub(crate) fn get(&self, name: &str) -> Option<usize> {
        self.numbers.get(name).and_then(Value::as_u64).and_then(|number| number.try_into().ok())
    }

    pub(crate) fn len(&self) -> usize {
        self.numbers.len()
    }

    /// The names by their numbers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> {
        self.numbers.keys().map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_one_number() {
        let mut names = Names::default();
        assert_eq!(["b", "a", "b", "c"].map(|name| names.number(name)), [0, 1, 0, 2]);
        assert_eq!((names.get("a"), names.get("d"), names.len()), (Some(1), None, 3));
        assert_eq!(names.iter().collect::<Vec<_>>(), ["b", "a", "c"]);
    }
}
