//! Rows of the option tables.

use super::OptionKind;

/// One option: all that its surfaces say of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OptionSpec {
    /// Its name in Rust and TOML.
    pub name: &'static str,
    /// The values that it takes.
    pub kind: OptionKind,
    /// The heading that it stands under.
    pub group: OptionGroup,
    /// What stands for its value in a line of help.
    pub value_name: &'static str,
    /// Whether a beam search takes it, too.
    pub in_beams: bool,
    default: &'static str,
    is_from_model: bool,
    flags: Option<&'static str>,
    key: Option<&'static str>,
    doc: &'static str,
}

/// Headings of the options.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OptionGroup {
    /// Which requests run together.
    Batch,
    /// How many positions there are.
    Context,
    /// Where a model runs.
    Device,
    /// How a model is kept.
    Memory,
    /// What each stream gets.
    Streams,
    /// What is timed.
    Monitoring,
    /// How a prompt is read.
    Prompt,
    /// Where a text ends.
    Length,
    /// The everyday options of sampling.
    Sampling,
    /// What changes the logits of single tokens.
    Penalties,
    /// Further ways to sample.
    MoreSampling,
    /// What is produced beside or instead of plain text.
    Output,
    /// When and how fast it runs.
    Scheduling,
    /// How a beam search goes on and ends.
    Beams,
}

impl OptionGroup {
    /// All groups in order.
    pub const ALL: [Self; 14] = [
        Self::Batch,
        Self::Context,
        Self::Device,
        Self::Memory,
        Self::Streams,
        Self::Monitoring,
        Self::Prompt,
        Self::Length,
        Self::Sampling,
        Self::Penalties,
        Self::MoreSampling,
        Self::Output,
        Self::Scheduling,
        Self::Beams,
    ];

    /// The heading.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Batch => "Batching",
            Self::Context => "Context and KV cache",
            Self::Device => "Devices",
            Self::Memory => "Memory",
            Self::Streams => "Streams",
            Self::Monitoring => "Monitoring",
            Self::Prompt => "Prompt",
            Self::Length => "Length",
            Self::Sampling => "Sampling",
            Self::Penalties => "Penalties, biases and bans",
            Self::MoreSampling => "More sampling methods",
            Self::Output => "Output",
            Self::Scheduling => "Scheduling",
            Self::Beams => "Beam search",
        }
    }

    /// The table of a TOML file that has the options; none where files have none.
    #[must_use]
    pub fn toml_table(self) -> Option<&'static str> {
        match self {
            Self::Batch => Some("batch"),
            Self::Context => Some("context"),
            Self::Device => Some("device"),
            Self::Memory => Some("memory"),
            Self::Streams => Some("streams"),
            Self::Monitoring => Some("monitoring"),
            Self::Beams => None,
            _ => Some("generation"),
        }
    }
}

impl OptionSpec {
    /// An option that every surface offers under its own name. `doc` is its doc comment.
    #[must_use]
    pub const fn new(
        name: &'static str,
        kind: OptionKind,
        default: &'static str,
        value_name: &'static str,
        group: OptionGroup,
        doc: &'static str,
    ) -> Self {
        Self {
            name,
            kind,
            group,
            value_name,
            in_beams: false,
            default,
            is_from_model: false,
            flags: None,
            key: None,
            doc,
        }
    }

    /// Its default is the model's own, where the model's files give one.
    #[must_use]
    pub const fn from_model(self) -> Self {
        Self { is_from_model: true, ..self }
    }

    /// A beam search takes it, too.
    #[must_use]
    pub const fn with_beams(self) -> Self {
        Self { in_beams: true, ..self }
    }

    /// It has no flag on the command line.
    #[must_use]
    pub const fn without_flag(self) -> Self {
        self.with_flags("")
    }

    /// It has no key in JavaScript.
    #[must_use]
    pub const fn without_key(self) -> Self {
        self.with_key("")
    }

    /// It has these flags on the command line, or none.
    #[must_use]
    pub const fn with_flags(self, flags: &'static str) -> Self {
        Self { flags: Some(flags), ..self }
    }

    /// It has this key in JavaScript, or none.
    #[must_use]
    pub const fn with_key(self, key: &'static str) -> Self {
        Self { key: Some(key), ..self }
    }

    /// Its flags on the command line, separated by commas; none where it is not offered there.
    #[must_use]
    pub fn flags(&self) -> String {
        let flag = || format!("--{}", self.name.replace('_', "-"));
        self.flags.map_or_else(flag, str::to_owned)
    }

    /// The table of a TOML file that it can stand in.
    #[must_use]
    pub fn toml_table(&self) -> Option<&'static str> {
        self.group.toml_table().filter(|_| !matches!(self.kind, OptionKind::Structured(_)))
    }

    /// Its key in JavaScript: the name in camel case, unless it has another or none.
    #[must_use]
    pub fn javascript_key(&self) -> String {
        if let Some(key) = self.key {
            return key.to_owned();
        }
        let mut words = self.name.split('_');
        let first = words.next().unwrap_or_default().to_owned();
        words.fold(first, |key, word| {
            let (head, tail) = word.split_at(1);
            key + &head.to_ascii_uppercase() + tail
        })
    }

    /// Its default in words.
    #[must_use]
    pub fn default_words(&self) -> String {
        let default = self.default.strip_suffix(".0").unwrap_or(self.default);
        if self.is_from_model { format!("the model's, else {default}") } else { default.to_owned() }
    }

    /// Its documentation, a line for each paragraph; the first is a summary.
    #[must_use]
    pub fn paragraphs(&self) -> Vec<String> {
        let paragraphs = self.doc.trim().split("\n\n").map(str::lines);
        paragraphs.map(|lines| lines.map(str::trim).collect::<Vec<_>>().join(" ")).collect()
    }
}
