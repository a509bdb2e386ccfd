//! Limits on the text of a template, which are checked before it is parsed.
//!
//! The parser descends into expressions and statements by calling itself, so deep ones would end the
//! process. Its compiler evaluates what is constant, so `'a' * 100000000` would be made while the
//! template is read: a product gets a factor that is not constant.

use std::borrow::Cow;

use minijinja::machinery::{Token, tokenize};
use minijinja::syntax::SyntaxConfig;

use super::open_macro;
use crate::TextError;

/// Bytes of a template: the longest of published ones has 17 thousand.
const MAX_BYTES: usize = 1 << 20;

/// Most bytes of a line: minijinja counts its columns in 16 bits, and adds one to the last.
const MAX_LINE: usize = u16::MAX as usize - 1;

/// Tokens of a tag, which bound how long its chains of operators are: the longest of published
/// templates has 62.
const MAX_TOKENS: usize = 500;

/// Bytes of the texts in tags, each times the square of its tag's tokens: operators between constant
/// texts are evaluated while they are compiled, again for each operator around them.
const MAX_CONSTANTS: usize = 1 << 30;

/// Brackets of a tag that are open at once.
const MAX_BRACKETS: usize = 24;

/// Statements that are open at once, with each `elif` of an open `if`.
const MAX_STATEMENTS: usize = 50;

/// Bytes of a name.
const MAX_NAME: usize = 256;

/// The factor: a variable that is 1.
pub(super) const ONE: &str = "setun_one";

/// A template with the line ends that Jinja reads: a line feed each.
pub(super) fn line_ends(source: &str) -> Cow<'_, str> {
    if source.contains('\r') {
        Cow::Owned(source.replace("\r\n", "\n").replace('\r', "\n"))
    } else {
        Cow::Borrowed(source)
    }
}

/// The template with factors in its products and assignments in place of `do`.
///
/// # Errors
///
/// If it is beyond a limit. What does not parse stays as it is.
pub(super) fn guard(name: &str, source: &str) -> Result<String, TextError> {
    let wrong = |line: usize, reason: String| {
        Err(TextError::TemplateSyntax { name: name.to_owned(), line, reason })
    };
    if source.len() > MAX_BYTES {
        return wrong(1, format!("{} bytes, at most {MAX_BYTES} are allowed", source.len()));
    }
    if let Some((line, long)) = (1..).zip(source.lines()).find(|(_, line)| line.len() > MAX_LINE) {
        let reason = format!("a line of {} bytes, at most {MAX_LINE} are allowed", long.len());
        return wrong(line, reason);
    }
    let mut tag = Tag::default();
    let mut statements = Statements::default();
    let mut macros = open_macro::Finder::default();
    let (mut edits, mut constants) = (Vec::new(), 0_usize);
    for token in tokenize(source, false, SyntaxConfig::default()) {
        let Ok((token, span)) = token else { break };
        let (start, end) = (span.start_offset as usize, span.end_offset as usize);
        tag.count(&token);
        let is_first = tag.tokens == 1 && tag.is_block;
        edits.extend(macros.find(&token, start, is_first));
        match &token {
            Token::Ident(word) if is_first => {
                tag.is_set = *word == "set";
                statements.count(word);
                if *word == "do" {
                    edits.push((start, end, "set setun_done =".to_owned()));
                }
            }
            Token::Str(_) | Token::String(_) => {
                tag.text += end - start;
                let joined = source.get(start..end).and_then(join_lines);
                edits.extend(joined.map(|joined| (start, end, joined)));
            }
            Token::Assign if tag.brackets == 0 => tag.is_set = false,
            Token::VariableEnd | Token::BlockEnd => {
                if tag.is_set {
                    statements.open();
                }
                constants =
                    constants.saturating_add(tag.text.saturating_mul(tag.tokens * tag.tokens));
            }
            // Behind `(` or `,` it unpacks a list of arguments.
            Token::Mul if !tag.is_argument => edits.push((start, end, format!("*{ONE}*"))),
            _ => {}
        }
        tag.is_argument = matches!(token, Token::ParenOpen | Token::Comma);
        let found = [
            (tag.tokens, MAX_TOKENS, "tokens in one tag"),
            (tag.brackets, MAX_BRACKETS, "open brackets in one tag"),
            (statements.total, MAX_STATEMENTS, "open statements"),
            (
                if matches!(token, Token::Ident(_)) { end - start } else { 0 },
                MAX_NAME,
                "bytes in a name",
            ),
            (constants, MAX_CONSTANTS, "bytes of texts times squared numbers of tokens"),
        ];
        for (found, most, what) in found {
            if found > most {
                return wrong(span.start_line.into(), format!("more than {most} {what}"));
            }
        }
    }
    edits.sort_by_key(|(start, ..)| *start);
    Ok(edited(source, edits))
}

/// A text in quotes without the line ends that stand behind a backslash, if it has any: they are no
/// part of it. They move behind it, so that lines keep their numbers.
fn join_lines(quoted: &str) -> Option<String> {
    let (mut joined, mut rest, mut moved) = (String::new(), quoted, 0);
    while let Some(escape) = rest.find('\\') {
        let escaped = rest[escape + 1..].chars().next().map_or(0, char::len_utf8);
        let end = escape + 1 + escaped;
        if rest[escape + 1..].starts_with('\n') {
            joined.push_str(&rest[..escape]);
            moved += 1;
        } else {
            joined.push_str(&rest[..end]);
        }
        rest = &rest[end..];
    }
    (moved > 0).then(|| joined + rest + &"\n".repeat(moved))
}

/// The statements that are open, each with its `elif`s.
#[derive(Default)]
struct Statements {
    open: Vec<usize>,
    total: usize,
}

impl Statements {
    fn open(&mut self) {
        self.open.push(1);
        self.total += 1;
    }

    /// Counts a tag by its first word. An end that is too many is the parser's to refuse.
    fn count(&mut self, word: &str) {
        match word {
            "for" | "if" | "with" | "filter" | "autoescape" | "macro" | "call" => self.open(),
            "elif" => {
                self.open.last_mut().into_iter().for_each(|open| *open += 1);
                self.total += usize::from(!self.open.is_empty());
            }
            "endfor" | "endif" | "endwith" | "endfilter" | "endautoescape" | "endmacro"
            | "endcall" | "endset" => self.total -= self.open.pop().unwrap_or(0),
            _ => {}
        }
    }
}

/// What is known of the tag that is read.
#[derive(Default)]
struct Tag {
    is_block: bool,
    is_set: bool, // a `set` of what stands before its `endset`
    tokens: usize,
    brackets: usize,
    text: usize,       // bytes of its texts
    is_argument: bool, // the token before opens an argument
}

impl Tag {
    fn count(&mut self, token: &Token<'_>) {
        self.tokens += 1;
        match token {
            Token::TemplateData(_) | Token::VariableStart => *self = Self::default(),
            Token::BlockStart => *self = Self { is_block: true, ..Self::default() },
            Token::ParenOpen | Token::BracketOpen | Token::BraceOpen => self.brackets += 1,
            Token::ParenClose | Token::BracketClose | Token::BraceClose => {
                self.brackets = self.brackets.saturating_sub(1);
            }
            _ => {}
        }
    }
}

/// A text with others in place of some of its bytes; edits are in order.
fn edited(source: &str, edits: Vec<(usize, usize, String)>) -> String {
    let (mut edited, mut copied) = (String::with_capacity(source.len()), 0);
    for (start, end, text) in edits {
        edited.push_str(source.get(copied..start).unwrap_or_default());
        edited.push_str(&text);
        copied = end;
    }
    edited + source.get(copied..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guarded(source: &str) -> String {
        guard("default", source).expect("within the limits")
    }

    #[test]
    fn products_get_a_factor_and_nothing_else_changes() {
        for (source, expected) in [
            ("a{{ 'a' * 3 }}", "a{{ 'a' *setun_one* 3 }}"),
            ("é{% set x = (y)*2 %}", "é{% set x = (y)*setun_one*2 %}"),
            ("{% do f(*x, *y) %}", "{% set setun_done = f(*x, *y) %}"),
        ] {
            assert_eq!(guarded(source), expected);
        }
        for same in
            ["", "a * b", "{# a * b #}", "{% raw %}{{ a * b }}{% endraw %}", "{{ f(*x) ** 2 }}"]
        {
            assert_eq!(guarded(same), same);
        }
        let chains = "{% if a %}{% elif b %}{% elif c %}{% else %}{% endif %}\
            {% set a.b = c(d=e) %}{% set a %}{% endset %}"
            .repeat(200);
        assert_eq!(guarded(&chains), chains);
    }

    #[test]
    fn what_the_parser_would_descend_into_too_far_is_refused_with_its_line() {
        let blocks = |open: &str, end: &str| open.repeat(2000) + &end.repeat(2000);
        for (what, source) in [
            ("500 tokens in one tag", format!("\n{{{{ 1{} }}}}", "+1".repeat(10_000))),
            ("500 tokens in one tag", format!("\n{{{{ x{} }}}}", ".a".repeat(10_000))),
            ("500 tokens in one tag", format!("\n{{{{ {} x }}}}", "not ".repeat(10_000))),
            ("24 open brackets", format!("\n{{{{ {} }}}}", "[".repeat(40))),
            ("50 open statements", format!("\n{}", blocks("{% if a %}", "{% endif %}"))),
            ("50 open statements", format!("\n{{% if a %}}{}", "{% elif a %}".repeat(5000))),
            ("50 open statements", format!("\n{}", blocks("{% set a|f(b=1) %}", "{% endset %}"))),
            ("a line of 65535 bytes", format!("\n{}{{%", " ".repeat(65_533))),
            ("256 bytes in a name", format!("\n{{{{ {} }}}}", "a".repeat(300))),
            (
                "1073741824 bytes of texts times squared",
                format!("\n{{{{ '{}'{} ~ x }}}}", "a".repeat(60_000), "~'a'".repeat(120)),
            ),
        ] {
            let error = guard("default", &source).expect_err(what);
            assert!(matches!(error, TextError::TemplateSyntax { line: 2, .. }), "{error}");
            assert!(error.to_string().contains(what), "{error}");
        }
        let error = guard("default", &" ".repeat(MAX_BYTES + 1)).expect_err("too long");
        assert!(
            error.to_string().ends_with("1048577 bytes, at most 1048576 are allowed"),
            "{error}"
        );
    }
}
