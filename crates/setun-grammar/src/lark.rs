//! Texts and lists of them in Lark's notation.

/// A text as a Lark string.
pub(crate) fn string(text: &str) -> String {
    // Lark's escapes are Python's; all of JSON's are among them.
    serde_json::Value::from(text).to_string()
}

/// A grammar of which each text is one of these.
///
/// They are one terminal, so that the automaton shows at once which are still possible.
pub(crate) fn choice(choices: &[String]) -> String {
    let choices: Vec<String> = choices.iter().map(|choice| string(choice)).collect();
    format!("start: CHOICE\nCHOICE: {}\n", choices.join(" | "))
}
