//! Classes of characters.

use std::fmt;

/// The characters in some ranges, or those in none of them.
pub(super) struct Class {
    pub(super) negated: bool,
    /// First and last character of each, in the order of the text.
    pub(super) ranges: Vec<(char, char)>,
}

impl Class {
    /// Every character.
    pub(super) fn any() -> Self {
        Self { negated: true, ranges: Vec::new() }
    }

    pub(super) fn contains(&self, character: char) -> bool {
        let within = |&(first, last): &(char, char)| (first..=last).contains(&character);
        self.ranges.iter().any(within) != self.negated
    }
}

/// The class as a regular expression.
impl fmt::Display for Class {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.negated && self.ranges.is_empty() {
            return formatter.write_str("(?s:.)");
        }
        formatter.write_str(if self.negated { "[^" } else { "[" })?;
        for &(first, last) in &self.ranges {
            write!(formatter, "\\u{{{:x}}}", u32::from(first))?;
            if first != last {
                write!(formatter, "-\\u{{{:x}}}", u32::from(last))?;
            }
        }
        formatter.write_str("]")
    }
}
