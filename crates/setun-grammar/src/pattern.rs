//! Regular expressions of JSON Schema (ECMA-262) in the syntax of Rust.

/// What ECMA-262 counts as white space or the end of a line.
const SPACES: &str = r"\t\n\x0b\x0c\r \u{a0}\u{1680}\u{2000}-\u{200a}\u{2028}\u{2029}\u{202f}\u{205f}\u{3000}\u{feff}";

/// The same expression in Rust's syntax, or what has no equal there.
///
/// An escape that both know with different meanings is translated or refused here; what Rust
/// does not know at all, such as look-around and references to groups, its own parser refuses.
pub(crate) fn from_ecma(pattern: &str) -> Result<String, String> {
    let mut characters = pattern.chars().peekable();
    let mut rust = String::new();
    let mut in_class = false;
    while let Some(character) = characters.next() {
        match character {
            '\\' => {
                let escaped = characters.next().ok_or("a backslash at the end")?;
                rust.push_str(&escape(escaped, in_class)?);
            }
            '[' if !in_class => {
                in_class = true;
                rust.push('[');
                if characters.next_if_eq(&'^').is_some() {
                    rust.push('^');
                }
                if characters.next_if_eq(&']').is_some() {
                    return Err("an empty class of characters".to_owned());
                }
            }
            ']' if in_class => {
                in_class = false;
                rust.push(']');
            }
            // Rust nests classes and combines them by these.
            '[' | '&' | '~' if in_class => {
                rust.push('\\');
                rust.push(character);
            }
            '-' if in_class && characters.peek() == Some(&'-') => {
                return Err("`--` in a class of characters".to_owned());
            }
            '.' if !in_class => rust.push_str(r"[^\n\r\u{2028}\u{2029}]"),
            '(' if !in_class && characters.next_if_eq(&'?').is_some() => {
                rust.push_str(group(&mut characters)?);
            }
            other => rust.push(other),
        }
    }
    Ok(rust)
}

/// What a backslash and this character are in Rust's syntax.
fn escape(character: char, in_class: bool) -> Result<String, String> {
    Ok(match character {
        'd' => class("0-9", in_class),
        'D' => "[^0-9]".to_owned(),
        'w' => class("0-9A-Za-z_", in_class),
        'W' => "[^0-9A-Za-z_]".to_owned(),
        's' => class(SPACES, in_class),
        'S' => format!("[^{SPACES}]"),
        'b' if in_class => r"\x08".to_owned(),
        'a' | 'A' | 'z' | 'Z' | '<' | '>' | 'b' | 'B' | 'c' | 'U' | '0'..='9' => {
            return Err(format!("`\\{character}`"));
        }
        other => format!("\\{other}"),
    })
}

fn class(members: &str, in_class: bool) -> String {
    if in_class { members.to_owned() } else { format!("[{members}]") }
}

/// The beginning of a group, after `(?`, in Rust's syntax.
fn group(
    characters: &mut std::iter::Peekable<std::str::Chars<'_>>,
) -> Result<&'static str, String> {
    match characters.next() {
        Some(':') => Ok("(?:"),
        Some('<') if !matches!(characters.peek(), Some('=' | '!')) => {
            // The name means nothing, as no group is referred to.
            characters.find(|&character| character == '>').ok_or("a group's name without end")?;
            Ok("(?:")
        }
        Some('=' | '!' | '<') => Err("look-around".to_owned()),
        _ => Err("flags inside an expression".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rust(pattern: &str) -> String {
        from_ecma(pattern).expect("it has an equal")
    }

    #[test]
    fn what_means_something_else_in_rust_is_translated() {
        assert_eq!(rust(r"^\d+$"), "^[0-9]+$");
        assert_eq!(rust(r"[\w-]\/"), r"[0-9A-Za-z_-]\/");
        assert_eq!(rust("a.b[.]"), r"a[^\n\r\u{2028}\u{2029}]b[.]");
        assert_eq!(rust("[[a&&b~~c]"), r"[\[a\&\&b\~\~c]");
        assert_eq!(rust("(?<year>[0-9])(?:a)"), "(?:[0-9])(?:a)");
        assert_eq!(rust(r"[^\S]"), format!("[^[^{SPACES}]]"));
    }

    #[test]
    fn what_rust_does_not_have_is_refused() {
        for (pattern, reason) in [
            (r"\bword", r"`\b`"),
            (r"(a)\1", r"`\1`"),
            ("a(?=b)", "look-around"),
            ("(?<!a)b", "look-around"),
            ("(?i)a", "flags inside an expression"),
            ("[]", "an empty class of characters"),
            ("a\\", "a backslash at the end"),
        ] {
            assert_eq!(from_ecma(pattern).expect_err(pattern), reason);
        }
    }
}
