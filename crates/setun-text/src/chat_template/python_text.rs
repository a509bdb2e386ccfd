//! Methods of texts as Python has them, where minijinja has none or another.

use minijinja::value::{Kwargs, Tuple, from_args};
use minijinja::{Error, ErrorKind, Value};

/// Calls a method of a text; `None` if it is none of these. Its result was charged before.
pub(super) fn call(text: &str, name: &str, arguments: &[Value]) -> Option<Result<Value, Error>> {
    Some(match name {
        "strip" | "lstrip" | "rstrip" => strip(text, name, arguments),
        "split" | "rsplit" => split(text, name, arguments),
        "splitlines" => split_lines(text, arguments),
        "partition" | "rpartition" => partition(text, name, arguments),
        "removeprefix" | "removesuffix" => remove(text, name, arguments),
        "find" | "rfind" | "index" | "rindex" => find(text, name, arguments),
        "count" => {
            from_args::<(&str, Option<i64>, Option<i64>)>(arguments).map(|(wanted, start, stop)| {
                let found = between(text, start, stop).map(|(_, part)| match wanted {
                    "" => part.chars().count() + 1,
                    _ => part.matches(wanted).count(),
                });
                Value::from(found.unwrap_or(0))
            })
        }
        "ljust" | "rjust" | "center" => justify(text, name, arguments),
        "zfill" => from_args::<(i64,)>(arguments).map(|(width,)| Value::from(zfill(text, width))),
        "title" => plain(arguments, || Value::from(title(text))),
        "casefold" => plain(arguments, || Value::from(text.to_lowercase().replace('ß', "ss"))),
        "swapcase" => plain(arguments, || Value::from(swap_case(text))),
        "isspace" => {
            plain(arguments, || Value::from(!text.is_empty() && text.chars().all(is_space)))
        }
        "isdecimal" | "isdigit" => plain(arguments, || {
            let is_decimal = |letter| is_digit(letter) && (name == "isdigit" || !is_raised(letter));
            Value::from(!text.is_empty() && text.chars().all(is_decimal))
        }),
        "istitle" => {
            plain(arguments, || Value::from(text.chars().any(is_cased) && title(text) == text))
        }
        "isidentifier" => plain(arguments, || {
            let is_name = |letter: char| letter.is_alphanumeric() || letter == '_';
            let first = text.chars().next();
            let begins = first.is_some_and(|first| is_name(first) && !first.is_numeric());
            Value::from(begins && text.chars().all(is_name))
        }),
        _ => return None,
    })
}

/// Whether Python takes a character for white space: Unicode's, and four separators.
pub(super) fn is_space(letter: char) -> bool {
    letter.is_whitespace() || ('\x1c'..='\x1f').contains(&letter)
}

/// The words of a text in Python's regular expressions (`\w+`).
pub(super) fn word_count(text: &str) -> usize {
    let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    text.split(|letter| !is_word(letter)).filter(|word| !word.is_empty()).count()
}

/// A text in the middle of a width; the odd space stands where Python puts it.
pub(super) fn center(text: &str, width: i64, fill: char) -> String {
    let missing = missing(text, width);
    let odd = missing & usize::try_from(width.max(0)).unwrap_or(0) & 1;
    let before = missing / 2 + odd;
    padded(text, fill, before, missing - before)
}

fn plain(arguments: &[Value], value: impl FnOnce() -> Value) -> Result<Value, Error> {
    from_args::<()>(arguments).map(|()| value())
}

fn strip(text: &str, name: &str, arguments: &[Value]) -> Result<Value, Error> {
    let (letters,): (Option<&str>,) = from_args(arguments)?;
    let goes = |letter: char| match letters {
        Some(letters) => letters.contains(letter),
        None => is_space(letter),
    };
    let text = if name == "rstrip" { text } else { text.trim_start_matches(goes) };
    Ok(Value::from(if name == "lstrip" { text } else { text.trim_end_matches(goes) }))
}

/// `split(sep, maxsplit)` and the same from the end.
fn split(text: &str, name: &str, arguments: &[Value]) -> Result<Value, Error> {
    let (separator, most, named): (Option<Value>, Option<i64>, Kwargs) = from_args(arguments)?;
    let separator = match separator {
        Some(separator) => Some(separator),
        None => named.get::<Option<Value>>("sep")?,
    };
    let most = match most {
        Some(most) => most,
        None => named.get::<Option<i64>>("maxsplit")?.unwrap_or(-1),
    };
    named.assert_all_used()?;
    let most = usize::try_from(most).unwrap_or(usize::MAX - 1);
    let from_end = name == "rsplit";
    let separator = separator.filter(|separator| !separator.is_none());
    let mut parts: Vec<&str> = match separator.as_ref().map(Value::as_str) {
        None => words(text, most, from_end),
        Some(None) => return Err(refused("a separator is a text or none")),
        Some(Some("")) => return Err(refused("the separator is empty")),
        Some(Some(separator)) if from_end => text.rsplitn(most + 1, separator).collect(),
        Some(Some(separator)) => text.splitn(most + 1, separator).collect(),
    };
    if from_end {
        parts.reverse();
    }
    Ok(parts.into_iter().map(Value::from).collect())
}

/// The words of a text, and the rest behind the last that is split off; reversed from the end.
fn words(text: &str, most: usize, from_end: bool) -> Vec<&str> {
    let (mut rest, mut words) = (text, Vec::new());
    loop {
        rest = if from_end {
            rest.trim_end_matches(is_space)
        } else {
            rest.trim_start_matches(is_space)
        };
        if rest.is_empty() {
            return words;
        }
        let end = if from_end { rest.rfind(is_space) } else { rest.find(is_space) };
        let end = end.filter(|_| words.len() < most);
        let Some(end) = end else {
            words.push(rest);
            return words;
        };
        let (before, behind) = rest.split_at(end);
        let space = behind.chars().next().map_or(0, char::len_utf8);
        let (word, others) =
            if from_end { (&behind[space..], before) } else { (before, &behind[space..]) };
        words.push(word);
        rest = others;
    }
}

fn split_lines(text: &str, arguments: &[Value]) -> Result<Value, Error> {
    let (keeps, named): (Option<bool>, Kwargs) = from_args(arguments)?;
    let keeps = match keeps {
        Some(keeps) => keeps,
        None => named.get::<Option<bool>>("keepends")?.unwrap_or(false),
    };
    named.assert_all_used()?;
    let lines =
        lines(text).map(|(line, end)| if keeps { [line, end].concat() } else { line.to_owned() });
    Ok(lines.map(Value::from).collect())
}

/// The lines of a text, each with what ends it.
pub(super) fn lines(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let end = rest.find(ends_line).unwrap_or(rest.len());
        let (line, behind) = rest.split_at(end);
        let first = behind.chars().next().map_or(0, char::len_utf8);
        let length = if behind.starts_with("\r\n") { 2 } else { first };
        let is_end = rest.is_empty();
        rest = &behind[length..];
        (!is_end).then(|| (line, &behind[..length]))
    })
}

/// Whether Python's `splitlines` ends a line there.
fn ends_line(letter: char) -> bool {
    matches!(
        letter,
        '\n' | '\r' | '\x0b' | '\x0c' | '\x1c'..='\x1e' | '\u{85}' | '\u{2028}' | '\u{2029}'
    )
}

fn partition(text: &str, name: &str, arguments: &[Value]) -> Result<Value, Error> {
    let (separator,): (&str,) = from_args(arguments)?;
    if separator.is_empty() {
        return Err(refused("the separator is empty"));
    }
    let from_end = name == "rpartition";
    let found = if from_end { text.rsplit_once(separator) } else { text.split_once(separator) };
    let parts = match found {
        Some((before, behind)) => [before, separator, behind],
        None if from_end => ["", "", text],
        None => [text, "", ""],
    };
    Ok(Value::from(Tuple::from(parts.map(Value::from))))
}

fn remove(text: &str, name: &str, arguments: &[Value]) -> Result<Value, Error> {
    let (part,): (&str,) = from_args(arguments)?;
    let rest =
        if name == "removeprefix" { text.strip_prefix(part) } else { text.strip_suffix(part) };
    Ok(Value::from(rest.unwrap_or(text)))
}

fn find(text: &str, name: &str, arguments: &[Value]) -> Result<Value, Error> {
    let (wanted, start, stop): (&str, Option<i64>, Option<i64>) = from_args(arguments)?;
    let found = between(text, start, stop).and_then(|(skipped, part)| {
        let from_end = name.starts_with('r');
        let place = if from_end { part.rfind(wanted) } else { part.find(wanted) }?;
        Some(skipped + part[..place].chars().count())
    });
    match found {
        Some(place) => Ok(Value::from(place)),
        None if name.ends_with("index") => Err(refused("the substring was not found")),
        None => Ok(Value::from(-1)),
    }
}

/// `text[start:stop]` with the characters before it; `None` if it starts behind its end.
fn between(text: &str, start: Option<i64>, stop: Option<i64>) -> Option<(usize, &str)> {
    if start.is_none() && stop.is_none() {
        return Some((0, text));
    }
    let length = text.chars().count();
    let (start, stop) = bounds(length, start, stop)?;
    let place = |index| text.char_indices().nth(index).map_or(text.len(), |(place, _)| place);
    Some((start, &text[place(start)..place(stop)]))
}

/// The places that a search from `start` to `stop` begins and ends at.
pub(super) fn bounds(
    length: usize,
    start: Option<i64>,
    stop: Option<i64>,
) -> Option<(usize, usize)> {
    let place = |end: i64| {
        let end = if end < 0 { end.saturating_add_unsigned(length as u64).max(0) } else { end };
        usize::try_from(end).unwrap_or(usize::MAX)
    };
    let (start, stop) = (start.map_or(0, place), stop.map_or(length, place).min(length));
    (start <= stop).then_some((start, stop))
}

fn justify(text: &str, name: &str, arguments: &[Value]) -> Result<Value, Error> {
    let (width, fill): (i64, Option<&str>) = from_args(arguments)?;
    let mut letters = fill.unwrap_or(" ").chars();
    let (Some(fill), None) = (letters.next(), letters.next()) else {
        return Err(refused("what fills is one character"));
    };
    let missing = missing(text, width);
    Ok(Value::from(match name {
        "ljust" => padded(text, fill, 0, missing),
        "rjust" => padded(text, fill, missing, 0),
        _ => center(text, width, fill),
    }))
}

fn zfill(text: &str, width: i64) -> String {
    let sign = text.find(|letter| !matches!(letter, '+' | '-')).unwrap_or(text.len()).min(1);
    let (sign, digits) = text.split_at(sign);
    format!("{sign}{}{digits}", "0".repeat(missing(text, width)))
}

fn missing(text: &str, width: i64) -> usize {
    usize::try_from(width).unwrap_or(0).saturating_sub(text.chars().count())
}

fn padded(text: &str, fill: char, before: usize, behind: usize) -> String {
    let fill = |count| std::iter::repeat_n(fill, count);
    fill(before).chain(text.chars()).chain(fill(behind)).collect()
}

/// Upper case behind what has no case, lower case elsewhere.
fn title(text: &str) -> String {
    let (mut made, mut is_inside) = (String::with_capacity(text.len()), false);
    for letter in text.chars() {
        if is_inside {
            made.extend(letter.to_lowercase());
        } else {
            made.extend(letter.to_uppercase());
        }
        is_inside = is_cased(letter);
    }
    made
}

fn swap_case(text: &str) -> String {
    let mut made = String::with_capacity(text.len());
    for letter in text.chars() {
        if letter.is_uppercase() {
            made.extend(letter.to_lowercase());
        } else {
            made.extend(letter.to_uppercase());
        }
    }
    made
}

fn is_cased(letter: char) -> bool {
    letter.is_lowercase() || letter.is_uppercase()
}

/// Whether a character is a digit, among them small ones, and no fraction or Roman numeral.
fn is_digit(letter: char) -> bool {
    let is_other = matches!(letter, '\u{bc}'..='\u{be}' | '\u{2150}'..='\u{218f}');
    letter.is_numeric() && !is_other
}

fn is_raised(letter: char) -> bool {
    matches!(letter, '\u{b2}' | '\u{b3}' | '\u{b9}' | '\u{2070}'..='\u{24ff}')
}

fn refused(what: &'static str) -> Error {
    Error::new(ErrorKind::InvalidOperation, what)
}
