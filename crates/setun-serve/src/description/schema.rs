//! Schemas of values, by their names in the codecs.

use serde_json::{Value, json};
use utoipa::openapi::{
    Ref, RefOr, Schema,
    schema::{AnyOfBuilder, ArrayBuilder, Object, ObjectBuilder, SchemaType, Type},
};

/// The schema of a value, or the name of one.
pub(crate) type AnySchema = RefOr<Schema>;

/// The schema of an object, field by field.
pub(crate) struct ObjectShape(ObjectBuilder);

impl ObjectShape {
    /// Without fields; others than those that are added are allowed.
    pub(crate) fn new() -> Self {
        Self(ObjectBuilder::new().schema_type(Type::Object))
    }

    /// With a field that is always there.
    pub(crate) fn required(self, name: &str, schema: AnySchema, description: &str) -> Self {
        let field = described(schema, description);
        Self(self.0.property(name, field).required(name))
    }

    /// With a field of a request that may be absent, which null is, too.
    pub(crate) fn optional(self, name: &str, schema: AnySchema, description: &str) -> Self {
        Self(self.0.property(name, described(nullable(schema), description)))
    }

    /// With a field of an answer that may be absent.
    pub(crate) fn sometimes(self, name: &str, schema: AnySchema, description: &str) -> Self {
        Self(self.0.property(name, described(schema, description)))
    }

    /// With a field of a request that is refused unless it is null.
    pub(crate) fn refused(self, name: &str, description: &str) -> Self {
        Self(self.0.property(name, described(null(), &format!("Not supported: {description}."))))
    }

    /// With fields that may be absent, each with its schema and its description.
    pub(crate) fn optionals(
        self,
        fields: impl IntoIterator<Item = (&'static str, AnySchema, String)>,
    ) -> Self {
        fields.into_iter().fold(self, |shape, (name, schema, description)| {
            shape.optional(name, schema, &description)
        })
    }

    /// With fields that are always there and need no description.
    pub(crate) fn with(self, fields: impl IntoIterator<Item = (&'static str, AnySchema)>) -> Self {
        fields.into_iter().fold(self, |shape, (name, schema)| shape.required(name, schema, ""))
    }
}

impl From<ObjectShape> for AnySchema {
    fn from(shape: ObjectShape) -> Self {
        shape.0.into()
    }
}

pub(crate) fn text() -> AnySchema {
    Object::with_type(Type::String).into()
}

/// A text of a length or more, in characters.
pub(crate) fn text_from(least: usize) -> AnySchema {
    ObjectBuilder::new().schema_type(Type::String).min_length(Some(least)).into()
}

/// A text of a length or less, in characters.
pub(crate) fn text_within(most: usize) -> AnySchema {
    ObjectBuilder::new().schema_type(Type::String).max_length(Some(most)).into()
}

/// A text of a form, which is a regular expression.
pub(crate) fn of_form(form: &str) -> AnySchema {
    ObjectBuilder::new().schema_type(Type::String).pattern(Some(form)).into()
}

pub(crate) fn flag() -> AnySchema {
    Object::with_type(Type::Boolean).into()
}

pub(crate) fn number() -> AnySchema {
    Object::with_type(Type::Number).into()
}

/// A number that is not greater than another.
pub(crate) fn number_to(most: f64) -> AnySchema {
    ObjectBuilder::new().schema_type(Type::Number).maximum(Some(most)).into()
}

/// A number of a range, both ends included.
pub(crate) fn number_within(least: f64, most: f64) -> AnySchema {
    let number = ObjectBuilder::new().schema_type(Type::Number);
    number.minimum(Some(least)).maximum(Some(most)).into()
}

/// An integer of 0 or more, as answers have them.
pub(crate) fn size() -> AnySchema {
    count(0, usize::MAX)
}

/// An integer of a range, both ends included.
pub(crate) fn count(least: usize, most: usize) -> AnySchema {
    let count = ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(least));
    let most = Some(most).filter(|most| *most < usize::MAX);
    count.maximum(most).into()
}

/// An integer of a range, both ends included, which may begin below 0.
pub(crate) fn integer(least: i64, most: Option<u64>) -> AnySchema {
    let least = isize::try_from(least).ok();
    let most = most.and_then(|most| usize::try_from(most).ok());
    let integer = ObjectBuilder::new().schema_type(Type::Integer);
    integer.minimum(least).maximum(most).into()
}

/// One of some texts.
pub(crate) fn one_of(names: &[&str]) -> AnySchema {
    let names = names.iter().copied().map(Value::from);
    ObjectBuilder::new().schema_type(Type::String).enum_values(Some(names)).into()
}

/// One of some values of any type.
pub(crate) fn values(values: impl IntoIterator<Item = Value>) -> AnySchema {
    ObjectBuilder::new().schema_type(SchemaType::AnyValue).enum_values(Some(values)).into()
}

/// A list of a number of items, both ends included.
pub(crate) fn list_within(items: AnySchema, least: usize, most: usize) -> AnySchema {
    let most = Some(most).filter(|most| *most < usize::MAX);
    let least = Some(least).filter(|least| *least > 0);
    ArrayBuilder::new().items(items).min_items(least).max_items(most).into()
}

pub(crate) fn list(items: AnySchema) -> AnySchema {
    list_within(items, 0, usize::MAX)
}

/// A list of items of which no two are equal.
pub(crate) fn distinct(items: AnySchema) -> AnySchema {
    ArrayBuilder::new().items(items).unique_items(true).into()
}

/// Ids of tokens.
pub(crate) fn tokens() -> AnySchema {
    list(integer(0, Some(u32::MAX.into())))
}

/// What one schema or another takes.
pub(crate) fn any_of(schemas: impl IntoIterator<Item = AnySchema>) -> AnySchema {
    schemas.into_iter().fold(AnyOfBuilder::new(), AnyOfBuilder::item).into()
}

/// An object of any fields.
pub(crate) fn object() -> AnySchema {
    ObjectShape::new().into()
}

/// Values by names, which have this form.
pub(crate) fn map(names: Option<&str>, values: AnySchema) -> AnySchema {
    let name = |form| ObjectBuilder::new().schema_type(Type::String).pattern(Some(form)).build();
    let map = ObjectBuilder::new().schema_type(Type::Object).property_names(names.map(name));
    map.additional_properties(Some(values)).into()
}

/// A value of any type.
pub(crate) fn anything() -> AnySchema {
    Object::with_type(SchemaType::AnyValue).into()
}

pub(crate) fn null() -> AnySchema {
    Object::with_type(Type::Null).into()
}

/// A schema of the components.
pub(crate) fn named(name: &str) -> AnySchema {
    Ref::from_schema_name(name).into()
}

/// A schema with an example of its values.
pub(crate) fn with_example(schema: AnySchema, example: Value) -> AnySchema {
    match schema {
        RefOr::T(Schema::Object(mut object)) => {
            object.examples.push(example);
            object.into()
        }
        RefOr::T(Schema::Array(mut array)) => {
            array.examples.push(example);
            array.into()
        }
        RefOr::T(Schema::AnyOf(mut any)) => {
            any.examples.push(example);
            RefOr::T(any.into())
        }
        other => other,
    }
}

/// What a schema takes, and null.
pub(crate) fn nullable(schema: AnySchema) -> AnySchema {
    match schema {
        RefOr::T(Schema::Object(mut object)) => {
            object.schema_type = or_null(object.schema_type);
            if let Some(values) = &mut object.enum_values {
                values.push(json!(null));
            }
            object.into()
        }
        RefOr::T(Schema::Array(mut array)) => {
            array.schema_type = or_null(array.schema_type);
            array.into()
        }
        RefOr::T(Schema::AnyOf(mut any)) => {
            any.items.push(null());
            RefOr::T(any.into())
        }
        other => any_of([other, null()]),
    }
}

fn or_null(schema_type: SchemaType) -> SchemaType {
    match schema_type {
        SchemaType::Type(one) if one != Type::Null => SchemaType::Array(vec![one, Type::Null]),
        other => other,
    }
}

/// A schema with a description, unless that is empty.
fn described(schema: AnySchema, description: &str) -> AnySchema {
    if description.is_empty() {
        return schema;
    }
    let description = description.to_owned();
    match schema {
        RefOr::T(Schema::Object(mut object)) => {
            object.description = Some(description);
            object.into()
        }
        RefOr::T(Schema::Array(mut array)) => {
            array.description = Some(description);
            array.into()
        }
        RefOr::T(Schema::AnyOf(mut any)) => {
            any.description = Some(description);
            RefOr::T(any.into())
        }
        RefOr::Ref(mut name) => {
            name.description = description;
            name.into()
        }
        other @ RefOr::T(_) => other,
    }
}
