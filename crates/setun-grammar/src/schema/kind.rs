//! Kinds of keywords, as far as the bounds of a schema need them.

/// What a keyword does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    // With schemas for the same value, which the parser intersects one by one.
    Reference,
    Constant,
    Enumeration,
    AllOf,
    AnyOf,
    OneOf,
    // With schemas for parts of it.
    PrefixItems,
    Items,
    AdditionalItems,
    Properties,
    PatternProperties,
    AdditionalProperties,
    // Others.
    Pattern,
    /// The length or the format of a text.
    Text,
    /// The type of a value, or the size of a number.
    Value,
    /// How many properties there are.
    Counted,
    Other,
}

/// The kinds with schemas for parts of a value, in the parser's order.
pub(super) const PARTS: [Kind; 6] = [
    Kind::PrefixItems,
    Kind::Items,
    Kind::AdditionalItems,
    Kind::Properties,
    Kind::PatternProperties,
    Kind::AdditionalProperties,
];

impl Kind {
    pub(super) fn of(keyword: &str) -> Self {
        match keyword {
            "$ref" => Self::Reference,
            "const" => Self::Constant,
            "enum" => Self::Enumeration,
            "allOf" => Self::AllOf,
            "anyOf" => Self::AnyOf,
            "oneOf" => Self::OneOf,
            "prefixItems" => Self::PrefixItems,
            "items" => Self::Items,
            "additionalItems" => Self::AdditionalItems,
            "properties" => Self::Properties,
            "patternProperties" => Self::PatternProperties,
            "additionalProperties" => Self::AdditionalProperties,
            "pattern" => Self::Pattern,
            "format" | "maxLength" | "minLength" => Self::Text,
            "exclusiveMaximum" | "exclusiveMinimum" | "maximum" | "minimum" | "multipleOf"
            | "type" => Self::Value,
            "maxProperties" | "minProperties" => Self::Counted,
            _ => Self::Other,
        }
    }

    /// Whether it has schemas for the same value.
    pub(super) fn is_applicator(self) -> bool {
        matches!(
            self,
            Self::Reference
                | Self::Constant
                | Self::Enumeration
                | Self::AllOf
                | Self::AnyOf
                | Self::OneOf
        )
    }

    /// Whether its value has a schema for each name.
    pub(super) fn has_names(self) -> bool {
        matches!(self, Self::Properties | Self::PatternProperties)
    }

    /// Whether it decides which terminal a schema becomes. Without such that is one of a few.
    pub(super) fn makes_terminal(self) -> bool {
        matches!(
            self,
            Self::Constant | Self::Enumeration | Self::Pattern | Self::Text | Self::Value
        )
    }
}
