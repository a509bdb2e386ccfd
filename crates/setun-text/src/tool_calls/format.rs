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
    /// How arguments are written.
    pub arguments: ArgumentForm,
}

/// How a family writes the arguments of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ArgumentForm {
    /// A JSON object.
    Json,
    /// An XML element for each parameter. Strings are written as they are, other values as JSON.
    Xml,
}

impl ArgumentForm {
    /// Whether calls in XML are known here. The bytes of WebAssembly modules are counted.
    pub const HAS_XML: bool = cfg!(not(target_arch = "wasm32"));
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
        arguments: ArgumentForm::Json,
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
        arguments: ArgumentForm::Json,
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
        arguments: ArgumentForm::Json,
    };

    /// Qwen 3.5 and later, Qwen3-Coder: a function is an XML element `<function=f>` and each argument
    /// is an element `<parameter=city>` in it. Each tag and each value stands on its own line.
    pub const QWEN_XML: Self = Self {
        name: "qwen-xml",
        marker: TAG,
        at_start: false,
        opening: "\n<function=",
        middle: ">\n",
        after: "</function>\n</tool_call>",
        separator: Some("\n<tool_call>\n<function="),
        closing: "",
        arguments: ArgumentForm::Xml,
    };

    /// All formats.
    pub const ALL: [Self; 4] = [Self::HERMES, Self::FALCON, Self::LLAMA, Self::QWEN_XML];

    /// The format of a name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name == name)
    }

    /// The format that a chat template writes calls in; `None` if it has no tools, or writes calls
    /// in none of these.
    pub(crate) fn of_template(source: &str) -> Option<Self> {
        let has = |part: &str| source.contains(part);
        let has_call = |tag: &str| has(&format!("{TAG}\\n{tag}")) || has(&format!("{TAG}\n{tag}"));
        if has_call("<function=") && has("<parameter=") {
            ArgumentForm::HAS_XML.then_some(Self::QWEN_XML)
        } else if has("<parameter=") || has("<arg_key>") || has("<tool_calls>") || has("<function=")
        {
            None // other arguments that are no JSON, or other tags
        } else if has(TAG) && has("arguments") {
            Some(if has_call("[") { Self::FALCON } else { Self::HERMES })
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
