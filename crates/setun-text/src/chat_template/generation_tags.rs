//! The tags `{% generation %}` and `{% endgeneration %}`, and the line end behind `{% raw %}`.
//!
//! Training uses them to find what the model itself said; for a prompt they only open a scope
//! for variables, as `{% with %}` does. Of a line end behind `{% raw %}` Jinja makes text, which
//! minijinja does if the tag says so.

/// Replaces the two tags by `with` and `endwith`, whitespace control included, and `{% raw %}` by
/// `{% raw +%}`.
pub(super) fn replace(template: &str) -> String {
    let mut out = String::with_capacity(template.len());
    let mut rest = template;
    while let Some(start) = rest.find("{%") {
        let (before, tag) = rest.split_at(start + 2);
        out += before;
        rest = tag;
        if let Some((replacement, length)) = replacement(tag) {
            out += replacement;
            rest = &tag[length..];
        }
    }
    out + rest
}

/// What stands instead of the inside of a tag, and how much of it that replaces.
fn replacement(tag: &str) -> Option<(&'static str, usize)> {
    let sign = usize::from(tag.starts_with(['-', '+']));
    let inside = tag[sign..].trim_start();
    let begin = tag.len() - inside.len();
    if let Some(end) = inside.strip_prefix("raw")
        && end.trim_start().starts_with("%}")
    {
        let raw = match &tag[..sign] {
            "-" => "- raw +",
            "+" => "+ raw +",
            _ => " raw +",
        };
        return Some((raw, tag.len() - end.trim_start().len()));
    }
    [("generation", "with"), ("endgeneration", "endwith")].into_iter().find_map(|(name, plain)| {
        let end = inside.strip_prefix(name)?;
        let closing = end.trim_start();
        let closes = ["%}", "-%}", "+%}"].iter().any(|close| closing.starts_with(close));
        let keyword = match (plain, &tag[..sign]) {
            ("with", "-") => "- with ",
            ("with", "+") => "+ with ",
            ("with", _) => " with ",
            (_, "-") => "- endwith ",
            (_, "+") => "+ endwith ",
            _ => " endwith ",
        };
        closes.then_some((keyword, begin + name.len()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replaces_the_tags_and_nothing_else() {
        let template = "{%- generation -%}{{ generation }}{%endgeneration%}{% set generation = 1 %}é{% generations %}{%+ generation %}";
        let expected = "{%- with  -%}{{ generation }}{% endwith %}{% set generation = 1 %}é{% generations %}{%+ with  %}";
        assert_eq!(replace(template), expected);
    }

    #[test]
    fn raw_keeps_the_line_end_behind_it() {
        let template = "{% raw %}\n{%-raw%}{%- raw -%}{% raw +%}{% rawx %}{% endraw %}";
        let expected = "{% raw +%}\n{%- raw +%}{%- raw -%}{% raw +%}{% rawx %}{% endraw %}";
        assert_eq!(replace(template), expected);
    }

    #[test]
    fn leaves_a_template_that_ends_inside_a_tag() {
        assert_eq!(replace("a{% generation"), "a{% generation");
        assert_eq!(replace("{%"), "{%");
    }
}
