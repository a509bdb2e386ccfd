//! Bounds on the regular expressions of a `tokenizer.json`.
//!
//! What has no look-around runs in time that grows with the text alone. The rest is matched by
//! trying one way after another. That takes time without bound where a repetition stands within a
//! repetition and more of the pattern follows, which may fail for each way; what a pattern ends
//! with is tried once. Published patterns look around mostly for one character, as in `\s+(?!\S)`.

/// The longest pattern in bytes: the longest published one has 1,500.
pub(super) const MAX_BYTES: usize = 8192;

/// Elements of a pattern, where what a count repeats is as many: they are compiled. Published
/// patterns have up to 1,600.
const MAX_SIZE: usize = 4096;

/// A repetition up to here is not long.
const SHORT: usize = 16;

/// Long repetitions with more behind them in one alternative, beside look-around.
const MAX_WAYS: usize = 2;

/// What was expected, and what was found.
type Refusal = (String, String);

/// An element of a pattern: a character, a class, a group, each with its repetitions.
#[derive(Clone, Copy, Default)]
struct Element {
    /// What is compiled for it.
    size: usize,
    /// Long repetitions in it that have more behind them in it.
    ways: usize,
    /// Those that it ends with.
    tail: usize,
    /// Whether it ends with a repetition within a repetition.
    is_nested: bool,
}

/// A group, as far as it is read.
#[derive(Clone, Copy, Default)]
struct Group {
    /// Of all alternatives: the sum of sizes, the most of the rest.
    all: Element,
    /// Of the alternative that is read: its elements but the last.
    before: Element,
    last: Element,
    /// Its number, if it captures.
    number: Option<usize>,
}

/// Checks a pattern that may be the regular expression of a stage.
pub(super) fn check(pattern: &str) -> Result<(), Refusal> {
    let mut scan = Scan { rest: pattern, groups: vec![Group::default()], ..Scan::default() };
    while let Some(character) = scan.take() {
        scan.step(character)?;
    }
    scan.end_alternative();
    if scan.tries && scan.fails_often {
        let expected = "no repetition within a repetition before more, beside look-around";
        return Err(refusal(expected, "one"));
    }
    match scan.groups.first().map_or(0, |group| group.all.ways) {
        ways if scan.tries && ways > MAX_WAYS => {
            let expected =
                format!("at most {MAX_WAYS} repetitions before more, beside look-around");
            Err(refusal(&expected, &ways.to_string()))
        }
        _ => Ok(()),
    }
}

#[derive(Default)]
struct Scan<'a> {
    rest: &'a str,
    groups: Vec<Group>,
    /// Of groups that capture, by their numbers from 1 on; none while one is open.
    captured: Vec<Option<Element>>,
    /// Whether more stands behind a repetition within a repetition.
    fails_often: bool,
    /// Whether there is look-around, a back-reference or an atomic group.
    tries: bool,
}

impl Scan<'_> {
    fn take(&mut self) -> Option<char> {
        let character = self.rest.chars().next()?;
        self.rest = &self.rest[character.len_utf8()..];
        Some(character)
    }

    fn take_if(&mut self, beginning: &str) -> bool {
        let rest = self.rest.strip_prefix(beginning);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn step(&mut self, character: char) -> Result<(), Refusal> {
        match character {
            '(' => return self.begin_group(),
            ')' => return self.end_group(),
            '|' => {
                self.end_alternative();
                return Ok(());
            }
            '*' => return self.repeat(0, None),
            '+' => return self.repeat(1, None),
            '?' => return self.repeat(0, Some(1)),
            '{' => {
                if let Some((least, most)) = self.count() {
                    return self.repeat(least, most);
                }
            }
            '\\' => self.escape()?,
            '[' => self.class(),
            _ => {}
        }
        self.add(Element { size: 1, ..Element::default() })
    }

    /// Puts an element behind the others of the alternative.
    fn add(&mut self, element: Element) -> Result<(), Refusal> {
        let Some(group) = self.groups.last_mut() else { return Ok(()) };
        let last = std::mem::replace(&mut group.last, element);
        self.fails_often |= last.is_nested;
        group.before.size = group.before.size.saturating_add(last.size);
        group.before.ways += last.ways + last.tail;
        let size = group.all.size.saturating_add(group.before.size).saturating_add(element.size);
        if size > MAX_SIZE {
            let found = format!("{size}");
            return Err(refusal(&format!("at most {MAX_SIZE} elements, counts included"), &found));
        }
        Ok(())
    }

    /// An escape, whose backslash is taken.
    fn escape(&mut self) -> Result<(), Refusal> {
        let Some(character) = self.take() else { return Ok(()) };
        match character {
            '1'..='9' => {
                let number = character as usize - '0' as usize;
                let captured = self.captured.get(number - 1).copied().flatten();
                // What a group of any length has found would be looked for at each of its lengths.
                let is_short = captured.is_some_and(|group| group.ways + group.tail == 0);
                if !is_short || self.rest.starts_with(|next: char| next.is_ascii_digit()) {
                    let expected = "back-references to groups before, without repetitions";
                    return Err(refusal(expected, &format!("\\{character}")));
                }
                self.tries = true;
            }
            'G' => self.tries = true,
            'k' | 'g' | 'K' => {
                let found = format!("\\{character}");
                return Err(refusal("no `\\K` and no back-reference by name", &found));
            }
            'p' | 'P' | 'x' | 'u' | 'U' if self.rest.starts_with('{') => {
                while self.take().is_some_and(|character| character != '}') {}
            }
            _ => {}
        }
        Ok(())
    }

    /// A class of characters, whose bracket is taken.
    fn class(&mut self) {
        self.take_if("^");
        self.take_if("]");
        let mut open = 1;
        while open > 0 {
            match self.take() {
                Some('\\') => drop(self.take()),
                Some('[') => open += 1,
                Some(']') => open -= 1,
                Some(_) => {}
                None => return,
            }
        }
    }

    /// A group, whose parenthesis is taken.
    fn begin_group(&mut self) -> Result<(), Refusal> {
        let looks = ["?=", "?!", "?<=", "?<!", "?>"].into_iter().any(|look| self.take_if(look));
        let captures = !looks && (!self.take_if("?") || self.take_if("<") || self.take_if("P<"));
        if !looks && !captures && self.take_flags()? == Some(')') {
            return Ok(());
        }
        self.tries |= looks;
        let number = captures.then_some(self.captured.len());
        self.captured.extend(number.map(|_| None));
        self.groups.push(Group { number, ..Group::default() });
        Ok(())
    }

    /// The flags of a group, whose question mark is taken, with what ends them.
    fn take_flags(&mut self) -> Result<Option<char>, Refusal> {
        loop {
            match self.take() {
                end @ Some(':' | ')') => return Ok(end),
                Some('i' | 'm' | 's' | 'U' | 'u' | '-') => {}
                found => {
                    let found = found.map_or("the end".to_owned(), |found| format!("(?{found}"));
                    return Err(refusal("a group, a look-around or flags of `imsUu`", &found));
                }
            }
        }
    }

    fn end_group(&mut self) -> Result<(), Refusal> {
        self.end_alternative();
        let group = self.groups.pop().filter(|_| !self.groups.is_empty());
        let Some(Group { all, number, .. }) = group else {
            return Err(refusal("parentheses in pairs", "one too many"));
        };
        if let Some(captured) = number.and_then(|number| self.captured.get_mut(number)) {
            *captured = Some(all);
        }
        self.add(all)
    }

    fn end_alternative(&mut self) {
        let Some(Group { all, before, last, .. }) = self.groups.last_mut() else { return };
        all.size = all.size.saturating_add(before.size).saturating_add(last.size).max(1);
        all.ways = all.ways.max(before.ways + last.ways);
        all.tail = all.tail.max(last.tail);
        all.is_nested |= last.is_nested;
        (*before, *last) = <(Element, Element)>::default();
    }

    /// The numbers of a count, whose brace is taken; none if the brace is text.
    fn count(&mut self) -> Option<(usize, Option<usize>)> {
        let (inside, rest) = self.rest.split_once('}')?;
        let is_count = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let (least, most) = inside.split_once(',').unwrap_or((inside, inside));
        if inside.is_empty() || !is_count(least) || !is_count(most) {
            return None;
        }
        self.rest = rest;
        let number = |text: &str| text.parse().unwrap_or(usize::MAX);
        let least = if least.is_empty() { 0 } else { number(least) };
        Some((least, (!most.is_empty()).then(|| number(most))))
    }

    /// Repeats the last element, at most without end.
    fn repeat(&mut self, least: usize, most: Option<usize>) -> Result<(), Refusal> {
        self.tries |= self.take_if("+");
        self.take_if("?");
        let Some(group) = self.groups.last_mut() else { return Ok(()) };
        let mut last = group.last;
        let has_repetition = last.ways + last.tail > 0;
        let is_repeated = most.is_none_or(|most| most > 1);
        self.fails_often |= has_repetition && least > 1; // more of it stands behind it
        last.is_nested |= has_repetition && is_repeated;
        last.tail += usize::from(most.is_none_or(|most| most > SHORT && most > least));
        last.size = last.size.saturating_mul(most.unwrap_or(0).max(least).max(1));
        group.last = Element::default();
        self.add(last)
    }
}

fn refusal(expected: &str, found: &str) -> Refusal {
    (expected.to_owned(), found.to_owned())
}
