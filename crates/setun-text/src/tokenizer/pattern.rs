//! Bounds on the regular expressions of a `tokenizer.json`.
//!
//! What has no look-around runs in time that grows with the text alone. The rest is matched by
//! trying one way after another, which takes time without bound where a repetition stands within
//! a repetition. Published patterns look around for one character, mostly `\s+(?!\S)`.

/// The longest pattern in bytes: the longest published one has 1,500.
pub(super) const MAX_BYTES: usize = 8192;

/// The product of all counts, as in `{1,3}`: what is repeated is compiled as often.
const MAX_COUNT: usize = 4096;

/// A count up to here does not make a repetition long.
const SHORT: usize = 16;

/// Long repetitions in an alternative that looks around.
const MAX_BESIDE_LOOK: usize = 2;

/// What was expected, and what was found.
type Refusal = (String, String);

/// A group, as far as it is read.
#[derive(Clone, Copy, Default)]
struct Group {
    /// Long repetitions in the alternative.
    repeats: usize,
    /// The most of an alternative before.
    max_repeats: usize,
    /// Whether the alternative looks around.
    looks: bool,
    /// Whether any alternative does.
    any_looks: bool,
    /// Whether the group itself is a look-around.
    is_look: bool,
}

/// Checks a pattern that may be the regular expression of a stage.
pub(super) fn check(pattern: &str) -> Result<(), Refusal> {
    let mut scan = Scan { rest: pattern, groups: vec![Group::default()], ..Scan::default() };
    while let Some(character) = scan.take() {
        scan.step(character)?;
    }
    scan.end_group()?;
    if scan.tries && scan.is_nested {
        return Err(refusal("no repetition within a repetition beside look-around", "one"));
    }
    Ok(())
}

#[derive(Default)]
struct Scan<'a> {
    rest: &'a str,
    groups: Vec<Group>,
    /// Long repetitions within what a quantifier would repeat.
    last: usize,
    count: usize,
    is_nested: bool,
    /// Whether there is look-around or an atomic group.
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
            '\\' => self.escape()?,
            '[' => self.class()?,
            '(' => return self.begin_group(),
            ')' => return self.end_group(),
            '|' => return self.end_alternative(),
            '*' | '+' => self.repeat(usize::MAX),
            '{' => return self.counted(),
            '?' => {
                self.tries |= self.take_if("+");
                self.take_if("?");
                return Ok(());
            }
            _ => {}
        }
        if !matches!(character, '*' | '+') {
            self.last = 0;
        }
        Ok(())
    }

    /// An escape, whose backslash is taken.
    fn escape(&mut self) -> Result<(), Refusal> {
        let Some(character) = self.take() else { return Ok(()) };
        if matches!(character, '1'..='9' | 'k' | 'g' | 'K' | 'G') {
            return Err(refusal("no back-reference, `\\K` or `\\G`", &format!("\\{character}")));
        }
        if matches!(character, 'p' | 'P' | 'x' | 'u' | 'U') && self.rest.starts_with('{') {
            while self.take().is_some_and(|character| character != '}') {}
        }
        Ok(())
    }

    /// A class of characters, whose bracket is taken.
    fn class(&mut self) -> Result<(), Refusal> {
        self.take_if("^");
        self.take_if("]");
        let mut open = 1;
        while let (1.., Some(character)) = (open, self.rest.chars().next()) {
            self.take();
            match character {
                '\\' => self.escape()?,
                '[' => open += 1,
                ']' => open -= 1,
                _ => {}
            }
        }
        Ok(())
    }

    /// A group, whose parenthesis is taken.
    fn begin_group(&mut self) -> Result<(), Refusal> {
        let looks = ["?=", "?!", "?<=", "?<!"].into_iter().any(|look| self.take_if(look));
        let is_atomic = !looks && self.take_if("?>");
        let is_known = looks || is_atomic || !self.take_if("?");
        if !is_known && !self.take_if("<") && !self.take_if("P<") {
            loop {
                match self.take() {
                    Some(':') => break,
                    Some(')') => return Ok(()), // flags alone
                    Some('i' | 'm' | 's' | 'U' | 'u' | '-') => {}
                    found => {
                        let found =
                            found.map_or("the end".to_owned(), |found| format!("(?{found}"));
                        return Err(refusal("a group, a look-around or flags of `imsUu`", &found));
                    }
                }
            }
        }
        self.tries |= looks || is_atomic;
        self.groups.push(Group { is_look: looks, ..Group::default() });
        self.last = 0;
        Ok(())
    }

    fn end_group(&mut self) -> Result<(), Refusal> {
        self.end_alternative()?;
        let Some(group) = self.groups.pop() else { return Ok(()) };
        let Some(outer) = self.groups.last_mut() else { return Ok(()) };
        if group.is_look && group.max_repeats > 0 {
            return Err(refusal("look-around of bounded length", "a repetition in it"));
        }
        outer.looks |= group.is_look || group.any_looks;
        outer.repeats += group.max_repeats;
        self.last = group.max_repeats;
        Ok(())
    }

    fn end_alternative(&mut self) -> Result<(), Refusal> {
        let Some(group) = self.groups.last_mut() else {
            return Err(refusal("parentheses in pairs", "one too many"));
        };
        if group.looks && group.repeats > MAX_BESIDE_LOOK {
            let expected = format!("at most {MAX_BESIDE_LOOK} repetitions beside look-around");
            return Err(refusal(&expected, &group.repeats.to_string()));
        }
        group.max_repeats = group.max_repeats.max(group.repeats);
        group.any_looks |= group.looks;
        (group.repeats, group.looks) = (0, false);
        self.last = 0;
        Ok(())
    }

    /// A count, whose brace is taken, or a brace that is text.
    fn counted(&mut self) -> Result<(), Refusal> {
        let inside = self.rest.split_once('}').map(|(inside, _)| inside).unwrap_or_default();
        let is_count = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let (least, most) = inside.split_once(',').unwrap_or((inside, inside));
        if inside.is_empty() || !is_count(least) || !is_count(most) {
            self.last = 0;
            return Ok(());
        }
        self.rest = &self.rest[inside.len() + 1..];
        let number =
            |text: &str| text.parse().unwrap_or(if text.is_empty() { 0 } else { usize::MAX });
        let highest = number(least).max(number(most)).max(1);
        self.count = self.count.max(1).saturating_mul(highest);
        if self.count > MAX_COUNT {
            let expected = format!("counts whose product is at most {MAX_COUNT}");
            return Err(refusal(&expected, &format!("{{{}}}", inside.get(..20).unwrap_or(inside))));
        }
        self.repeat(if most.is_empty() { usize::MAX } else { highest });
        Ok(())
    }

    fn repeat(&mut self, most: usize) {
        self.is_nested |= self.last > 0 && most > 1;
        if most > SHORT {
            self.last += 1;
            if let Some(group) = self.groups.last_mut() {
                group.repeats += 1;
            }
        }
        self.tries |= self.take_if("+");
        self.take_if("?");
    }
}

fn refusal(expected: &str, found: &str) -> Refusal {
    (expected.to_owned(), found.to_owned())
}
