//! Formats of tool calls by model family.

/// How a family writes calls: the texts around names and arguments. Grammars are made of them, and
/// calls are read by them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolFormat {
    /// Its name.
    pub name: &'static str,
    /// What a call in an answer begins with; a special token of some models.
    pub marker: &'static str,
    /// Whether the marker stands at the beginning of an answer only.
    pub at_start: bool,
    /// What comes between the marker and the name of the first call.
    pub opening: &'static str,
    /// What comes between a name and the arguments.
    pub middle: &'static str,
    /// What comes after the arguments.
    pub after: &'static str,
    /// What comes before the name of each further call; none where an answer has one call.
    pub separator: Option<&'static str>,
    /// What comes after the last call.
    pub closing: &'static str,
}

/// The special tokens of calls, in the models that have them.
const TAG: &str = "<tool_call>";

impl ToolFormat {
    /// Hermes, Qwen 2.5 and 3: `<tool_call>{"name": "f", "arguments": {…}}</tool_call>`, each part
    /// on a line. Also the generic format, for models whose template has none.
    pub const HERMES: Self = Self {
        name: "hermes",
        marker: TAG,
        at_start: false,
        opening: "\n{\"name\": \"",
        middle: "\", \"arguments\": ",
        after: "}\n</tool_call>",
        separator: Some("\n<tool_call>\n{\"name\": \""),
        closing: "",
    };

    /// Falcon 3: a list of such objects between the tags.
    pub const FALCON: Self = Self {
        name: "falcon",
        marker: TAG,
        at_start: false,
        opening: "\n[\n  {\"name\": \"",
        middle: "\", \"arguments\": ",
        after: "}",
        separator: Some(",\n  {\"name\": \""),
        closing: "\n]\n</tool_call>",
    };

    /// Llama 3.1 and later: `{"name": "f", "parameters": {…}}` and nothing else.
    pub const LLAMA: Self = Self {
        name: "llama",
        marker: "{\"name\": \"",
        at_start: true,
        opening: "",
        middle: "\", \"parameters\": ",
        after: "}",
        separator: None,
        closing: "",
    };

    /// The format of a name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        [Self::HERMES, Self::FALCON, Self::LLAMA].into_iter().find(|format| format.name == name)
    }

    /// The format that a chat template writes calls in; `None` if it has no tools, or writes calls
    /// in none of these.
    pub(crate) fn of_template(source: &str) -> Option<Self> {
        let has = |part: &str| source.contains(part);
        if has("<parameter=") || has("<arg_key>") || has("<tool_calls>") || has("<function=") {
            None // arguments that are no JSON, or other tags
        } else if has(TAG) && has("arguments") {
            let is_list = has("<tool_call>\\n[") || has("<tool_call>\n[");
            Some(if is_list { Self::FALCON } else { Self::HERMES })
        } else if has("ipython") && has("\"parameters\"") && has("tool_calls") {
            Some(Self::LLAMA)
        } else {
            None
        }
    }

    /// The special tokens that its texts spell.
    #[must_use]
    pub fn tags() -> [&'static str; 2] {
        [TAG, "</tool_call>"]
    }
}
