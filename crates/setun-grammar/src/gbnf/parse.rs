//! Reads GBNF.

use std::iter::Peekable;
use std::str::Chars;

use super::class::Class;
use crate::lark::MAX_NESTED_GROUPS;
use crate::limits::{NESTED_GROUPS, at_most};
use crate::{GrammarError, GrammarLimits};

/// One of these sequences.
pub(super) type Alternatives = Vec<Vec<Item>>;

pub(super) struct Rule {
    pub(super) name: String,
    pub(super) line: usize,
    pub(super) alternatives: Alternatives,
}

/// An element some number of times.
pub(super) struct Item {
    pub(super) element: Element,
    pub(super) least: u32,
    /// `None` is without bound.
    pub(super) most: Option<u32>,
    pub(super) line: usize,
    /// Its number among all items of the grammar.
    pub(super) number: usize,
}

impl Item {
    pub(super) fn is_once(&self) -> bool {
        (self.least, self.most) == (1, Some(1))
    }
}

pub(super) enum Element {
    Text(String),
    Class(Class),
    Rule(String),
    Group(Alternatives),
}

/// The most times that an element may be requested: more would not fit into any grammar.
const MAX_TIMES: u32 = 100_000;

const ELEMENT: &str = "a text, a class of characters, a group or the name of a rule";
const ESCAPE: &str = "an escape (n, r, t, \\, \", [, ], xHH, uHHHH, UHHHHHHHH)";

/// The rules of a grammar.
pub(super) fn rules(text: &str, limits: &GrammarLimits) -> Result<Vec<Rule>, GrammarError> {
    let mut reader = Reader { rest: text.chars().peekable(), line: 1, depth: 0, items: 0 };
    let mut rules = Vec::new();
    reader.skip(true);
    while reader.rest.peek().is_some() {
        rules.push(reader.rule()?);
        at_most("rules", limits.names, rules.len())?;
        reader.skip(true);
    }
    Ok(rules)
}

struct Reader<'a> {
    rest: Peekable<Chars<'a>>,
    line: usize,
    depth: usize,
    items: usize,
}

impl Reader<'_> {
    fn rule(&mut self) -> Result<Rule, GrammarError> {
        let line = self.line;
        let name = self.name();
        if name.is_empty() {
            return Err(self.fault("the name of a rule"));
        }
        self.skip(false);
        for expected in "::=".chars() {
            if self.rest.next_if_eq(&expected).is_none() {
                return Err(self.fault("`::=`"));
            }
        }
        self.skip(true);
        let alternatives = self.alternatives()?;
        match self.rest.peek() {
            None | Some('\n' | '\r') => Ok(Rule { name, line, alternatives }),
            Some(_) => Err(self.fault(ELEMENT)),
        }
    }

    fn alternatives(&mut self) -> Result<Alternatives, GrammarError> {
        let mut alternatives = vec![self.sequence()?];
        while self.rest.next_if_eq(&'|').is_some() {
            self.skip(true);
            alternatives.push(self.sequence()?);
        }
        Ok(alternatives)
    }

    fn sequence(&mut self) -> Result<Vec<Item>, GrammarError> {
        let mut items = Vec::new();
        while let Some(element) = self.element()? {
            let line = self.line;
            let (least, most) = self.times()?;
            if most != Some(0) {
                items.push(Item { element, least, most, line, number: self.items });
                self.items += 1;
            }
            self.skip(self.depth > 0);
        }
        Ok(items)
    }

    /// The next element, `None` where a sequence ends.
    fn element(&mut self) -> Result<Option<Element>, GrammarError> {
        let Some(&first) = self.rest.peek() else { return Ok(None) };
        Ok(Some(match first {
            '|' | ')' | '\n' | '\r' => return Ok(None),
            '"' => Element::Text(self.text()?),
            '[' => Element::Class(self.class()?),
            '.' => {
                self.rest.next();
                Element::Class(Class::any())
            }
            '(' => Element::Group(self.group()?),
            _ if is_of_name(first) => Element::Rule(self.name()),
            _ => return Err(self.fault(ELEMENT)),
        }))
    }

    fn group(&mut self) -> Result<Alternatives, GrammarError> {
        self.rest.next();
        at_most(NESTED_GROUPS, MAX_NESTED_GROUPS, self.depth + 1)?;
        self.depth += 1;
        self.skip(true);
        let alternatives = self.alternatives()?;
        if self.rest.next_if_eq(&')').is_none() {
            return Err(self.fault("`)`"));
        }
        self.depth -= 1;
        Ok(alternatives)
    }

    fn text(&mut self) -> Result<String, GrammarError> {
        self.rest.next();
        let mut text = String::new();
        loop {
            match self.rest.peek() {
                None | Some('\n') => return Err(self.fault("a closing `\"`")),
                Some('"') => break,
                Some(_) => text.push(self.character()?),
            }
        }
        self.rest.next();
        Ok(text)
    }

    fn class(&mut self) -> Result<Class, GrammarError> {
        self.rest.next();
        let negated = self.rest.next_if_eq(&'^').is_some();
        let mut ranges = Vec::new();
        loop {
            match self.rest.peek() {
                None | Some('\n') => return Err(self.fault("a closing `]`")),
                Some(']') if ranges.is_empty() => return Err(self.fault("a character")),
                Some(']') => break,
                Some(_) => ranges.push(self.range()?),
            }
        }
        self.rest.next();
        Ok(Class { negated, ranges })
    }

    /// A character, or two with a line between them, of a class.
    fn range(&mut self) -> Result<(char, char), GrammarError> {
        let first = self.character()?;
        let mut after = self.rest.clone();
        if after.next() != Some('-') || matches!(after.next(), None | Some(']')) {
            return Ok((first, first));
        }
        self.rest.next();
        let last = self.character()?;
        if last < first {
            return Err(GrammarError::Gbnf {
                line: self.line,
                expected: "a range that goes up",
                found: format!("`{first}-{last}`"),
            });
        }
        Ok((first, last))
    }

    /// A character of a text or a class, which may be escaped.
    fn character(&mut self) -> Result<char, GrammarError> {
        let first = self.rest.next();
        if first != Some('\\') {
            return first.ok_or_else(|| self.fault("a character"));
        }
        let character = match self.rest.peek() {
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some(&itself @ ('\\' | '"' | '[' | ']')) => itself,
            Some('x') => return self.code(2),
            Some('u') => return self.code(4),
            Some('U') => return self.code(8),
            _ => return Err(self.fault(ESCAPE)),
        };
        self.rest.next();
        Ok(character)
    }

    fn code(&mut self, digits: usize) -> Result<char, GrammarError> {
        self.rest.next();
        let mut code = 0;
        for _ in 0..digits {
            let digit = self.rest.peek().and_then(|digit| digit.to_digit(16));
            let digit = digit.ok_or_else(|| self.fault("a hexadecimal digit"))?;
            code = code * 16 + digit;
            self.rest.next();
        }
        char::from_u32(code).ok_or_else(|| GrammarError::Gbnf {
            line: self.line,
            expected: "the code of a character",
            found: format!("{code:x}"),
        })
    }

    /// How many times the element before comes.
    fn times(&mut self) -> Result<(u32, Option<u32>), GrammarError> {
        let times = match self.rest.peek() {
            Some('*') => (0, None),
            Some('+') => (1, None),
            Some('?') => (0, Some(1)),
            Some('{') => return self.counts(),
            _ => return Ok((1, Some(1))),
        };
        self.rest.next();
        Ok(times)
    }

    fn counts(&mut self) -> Result<(u32, Option<u32>), GrammarError> {
        self.after_blanks();
        let least = self.count()?;
        let most = if self.rest.peek() == Some(&',') {
            self.after_blanks();
            if self.rest.peek() == Some(&'}') { None } else { Some(self.count()?) }
        } else {
            Some(least)
        };
        if self.rest.next_if_eq(&'}').is_none() {
            return Err(self.fault("`}`"));
        }
        match most {
            Some(most) if most < least => Err(GrammarError::Gbnf {
                line: self.line,
                expected: "counts that go up",
                found: format!("{least},{most}"),
            }),
            _ => Ok((least, most)),
        }
    }

    /// Takes a character of counts, and the blanks behind it.
    fn after_blanks(&mut self) {
        self.rest.next();
        self.skip(self.depth > 0);
    }

    fn count(&mut self) -> Result<u32, GrammarError> {
        let mut digits = String::new();
        while let Some(digit) = self.rest.next_if(char::is_ascii_digit) {
            digits.push(digit);
        }
        self.skip(self.depth > 0);
        let count = digits.parse().ok().filter(|&count| count <= MAX_TIMES);
        count.ok_or_else(|| match digits.as_str() {
            "" => self.fault("a count"),
            _ => GrammarError::Gbnf {
                line: self.line,
                expected: "a count of at most 100,000",
                found: digits,
            },
        })
    }

    fn name(&mut self) -> String {
        let mut name = String::new();
        while let Some(character) = self.rest.next_if(|&character| is_of_name(character)) {
            name.push(character);
        }
        name
    }

    /// Goes over blanks and comments, and over the ends of lines if `lines`.
    fn skip(&mut self, lines: bool) {
        while let Some(&character) = self.rest.peek() {
            match character {
                ' ' | '\t' => {}
                '#' => {
                    while self.rest.next_if(|&character| character != '\n').is_some() {}
                    continue;
                }
                '\r' if lines => {}
                '\n' if lines => self.line += 1,
                _ => return,
            }
            self.rest.next();
        }
    }

    fn fault(&mut self, expected: &'static str) -> GrammarError {
        let found = match self.rest.peek() {
            None => "the end".to_owned(),
            Some('\n') => "the end of the line".to_owned(),
            Some(character) => format!("`{character}`"),
        };
        GrammarError::Gbnf { line: self.line, expected, found }
    }
}

fn is_of_name(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '-' || character == '_'
}
