//! Structs whose fields are the rows of an option table.

use super::{AnyField, OptionError, OptionKind, OptionValue};

/// Makes a struct of options from a table's rows:
///
/// ```text
/// /// What it does; the first paragraph is the line of help.
/// name: Type as KIND = default, "VALUE", Group, modifier, …;
/// ```
///
/// `KIND` is a constant or variant of [`OptionKind`], `Group` a variant of
/// [`OptionGroup`](crate::OptionGroup), a modifier a method of
/// [`OptionSpec`](crate::OptionSpec). A number or flag has its default as a literal, any other
/// type its [`Default`], of which the row has the words. Fields, setters, checks, and what the
/// surfaces say of them are made from the rows.
#[macro_export]
macro_rules! option_table {
    (
        $(#[$meta:meta])*
        pub struct $table:ident;
        $(
            $(#[doc = $doc:literal])*
            $name:ident: $field:ident $(<$($inner:ty),*>)? as $kind:ident $(($($argument:tt)*))?
            = $default:literal, $value:literal, $group:ident
            $(, $modifier:ident $(($words:literal))?)*;
        )*
    ) => {
        $(#[$meta])*
        pub struct $table {
            $(
                $(#[doc = $doc])*
                ///
                #[doc = concat!(
                    "Takes [`", stringify!($kind), "`](setun_text::OptionKind::",
                    stringify!($kind), "). Default: ", $default, "."
                )]
                pub $name: $field $(<$($inner),*>)?,
            )*
        }

        impl Default for $table {
            fn default() -> Self {
                Self { $($name: $crate::option_default!($field $default),)* }
            }
        }

        impl $table {
            /// The names of all options.
            pub const NAMES: &[&str] = &[$(stringify!($name)),*];

            /// The kinds of all options, in the order of their names.
            const KINDS: &[$crate::OptionKind] =
                &[$($crate::OptionKind::$kind $(($($argument)*))?),*];

            /// All options, with what every surface says of them.
            pub const SPECS: &[$crate::OptionSpec] = &[$(
                $crate::OptionSpec::new(
                    stringify!($name),
                    $crate::OptionKind::$kind $(($($argument)*))?,
                    concat!($default),
                    $value,
                    $crate::OptionGroup::$group,
                    concat!($($doc, "\n"),*),
                )$(.$modifier($($words)?))*,
            )*];

            /// Sets an option by its name.
            ///
            /// # Errors
            ///
            /// If there is none of this name, or it does not take the value.
            pub fn set(
                &mut self,
                name: &str,
                value: &$crate::OptionValue,
            ) -> Result<(), $crate::OptionError> {
                let fields: [&mut dyn $crate::AnyField; Self::NAMES.len()] =
                    [$(&mut self.$name),*];
                $crate::set_option(Self::NAMES, Self::KINDS, fields, name, value)
            }

            /// The value of an option, if it is given and [`set`](Self::set) takes it.
            #[must_use]
            pub fn get(&self, name: &str) -> Option<$crate::OptionValue> {
                $crate::get_option(Self::NAMES, &self.fields(), name)
            }

            fn fields(&self) -> [&dyn $crate::AnyField; Self::NAMES.len()] {
                [$(&self.$name),*]
            }

            /// Checks the value of each option by itself.
            ///
            /// # Errors
            ///
            /// If one is out of its range; the error names it.
            pub fn check_values(&self) -> Result<(), $crate::OptionError> {
                $crate::check_options(Self::NAMES, Self::KINDS, &self.fields())
            }

            $($crate::option_setter! {
                #[doc = concat!("Sets [`", stringify!($name), "`](Self::", stringify!($name), ").")]
                [] $name: $field $(<$($inner),*>)?
            })*
        }
    };
}

/// The default of a row.
#[doc(hidden)]
#[macro_export]
macro_rules! option_default {
    (usize $default:literal) => {
        $default
    };
    (f32 $default:literal) => {
        $default
    };
    (f64 $default:literal) => {
        $default
    };
    (bool $default:literal) => {
        $default
    };
    ($type:ident $words:literal) => {
        Default::default()
    };
}

/// The setter of a row, for a struct that has the table at a path.
#[macro_export]
macro_rules! option_setter {
    ($(#[$doc:meta])* [$($path:ident).*] $name:ident: Option<$type:ty>) => {
        $(#[$doc])*
        #[must_use]
        pub fn $name(mut self, value: $type) -> Self {
            self.$($path.)*$name = Some(value);
            self
        }
    };
    ($(#[$doc:meta])* [$($path:ident).*] $name:ident: $list:ident<$type:ty>) => {
        $(#[$doc])*
        #[must_use]
        pub fn $name<T: Into<$type>>(mut self, values: impl IntoIterator<Item = T>) -> Self {
            self.$($path.)*$name = values.into_iter().map(Into::into).collect();
            self
        }
    };
    ($(#[$doc:meta])* [$($path:ident).*] $name:ident: $map:ident<$key:ty, $value:ty>) => {
        $(#[$doc])*
        #[must_use]
        pub fn $name(mut self, values: impl IntoIterator<Item = ($key, $value)>) -> Self {
            self.$($path.)*$name = values.into_iter().collect();
            self
        }
    };
    ($(#[$doc:meta])* [$($path:ident).*] $name:ident: $type:ident) => {
        $(#[$doc])*
        #[must_use]
        pub fn $name(mut self, value: $type) -> Self {
            self.$($path.)*$name = value;
            self
        }
    };
}

/// Sets the field of this name.
///
/// # Errors
///
/// If there is none, or it does not take the value.
pub fn set_option<'a>(
    names: &[&'static str],
    kinds: &[OptionKind],
    fields: impl IntoIterator<Item = &'a mut dyn AnyField>,
    name: &str,
    value: &OptionValue,
) -> Result<(), OptionError> {
    for ((&option, &expected), field) in names.iter().zip(kinds).zip(fields) {
        if option == name {
            let read = expected.named(value);
            let is_taken = expected.accepts(&read) && field.fill(&read);
            let refused = || OptionError::Value { option, expected, found: value.clone() };
            return if is_taken { Ok(()) } else { Err(refused()) };
        }
    }
    Err(OptionError::Unknown { name: name.to_owned() })
}

/// The value of the field of this name, if it is given.
#[must_use]
pub fn get_option(names: &[&str], fields: &[&dyn AnyField], name: &str) -> Option<OptionValue> {
    let index = names.iter().position(|option| *option == name)?;
    fields[index].write()
}

/// Checks the value of each field.
///
/// # Errors
///
/// If one is out of its range.
pub fn check_options(
    names: &[&'static str],
    kinds: &[OptionKind],
    fields: &[&dyn AnyField],
) -> Result<(), OptionError> {
    for ((&option, &expected), field) in names.iter().zip(kinds).zip(fields) {
        if let Some(found) = field.write().filter(|value| !expected.accepts(value)) {
            return Err(OptionError::Value { option, expected, found });
        }
    }
    Ok(())
}
