//! Macros that take more arguments than they name, as `varargs` and `kwargs`.
//!
//! minijinja's take none that they do not name. So a macro whose body has one of the two names gets a
//! parameter of that name, with another behind it that marks it, and [`OpenMacro`] fills it.

use std::fmt;
use std::sync::Arc;

use minijinja::machinery::Token;
use minijinja::value::{Kwargs, Object, Tuple};
use minijinja::{Error, State, Value};

use super::budget::{Budget, ENTRY, PAIR};
use super::operators;

/// Parameters by which a macro gets what it does not name, each with its mark.
const REST: [(&str, &str); 2] = [("varargs", "setun_varargs"), ("kwargs", "setun_kwargs")];

/// Whether a macro with these parameters takes more.
pub(super) fn is_open(parameters: &Value) -> bool {
    let mut names = parameters.try_iter().into_iter().flatten();
    names.any(|name| REST.iter().any(|(_, mark)| name.as_str() == Some(mark)))
}

/// Finds the macros of a template that use what they do not name.
#[derive(Default)]
pub(super) struct Finder {
    open: Vec<Found>,
    brackets: usize,
    is_member: bool, // the token before is a `.`
}

#[derive(Default)]
struct Found {
    /// End of its parameters, once it is reached.
    end: Option<usize>,
    has_parameters: bool,
    named: [bool; 2],
    used: [bool; 2],
}

impl Finder {
    /// Looks at the next token. At the end of a macro it gives the parameters to be added.
    pub(super) fn find(
        &mut self,
        token: &Token<'_>,
        start: usize,
        is_first: bool,
    ) -> Option<(usize, usize, String)> {
        let is_member = std::mem::replace(&mut self.is_member, matches!(token, Token::Dot));
        match token {
            Token::Ident("macro") if is_first => {
                self.open.push(Found::default());
                self.brackets = 0;
            }
            Token::Ident("endmacro") if is_first => return self.open.pop().and_then(Found::edit),
            Token::ParenOpen | Token::BracketOpen | Token::BraceOpen => self.brackets += 1,
            Token::ParenClose | Token::BracketClose | Token::BraceClose => {
                self.brackets = self.brackets.saturating_sub(1);
                let last = self.open.last_mut().filter(|last| last.end.is_none());
                last.filter(|_| self.brackets == 0)?.end = Some(start);
            }
            Token::Ident(name) => {
                let last = self.open.last_mut()?;
                last.has_parameters |= last.end.is_none() && self.brackets > 0;
                let rest = REST.iter().position(|(rest, _)| rest == name && !is_member)?;
                let list = if last.end.is_none() { &mut last.named } else { &mut last.used };
                list[rest] = true;
            }
            _ => {}
        }
        None
    }
}

impl Found {
    fn edit(self) -> Option<(usize, usize, String)> {
        let end = self.end?;
        let rest = REST.iter().zip(self.used.into_iter().zip(self.named));
        let rest = rest.filter(|(_, (is_used, is_named))| *is_used && !is_named);
        let added: Vec<_> =
            rest.map(|((name, mark), _)| format!("{name}=none, {mark}=none")).collect();
        let comma = if self.has_parameters { ", " } else { "" };
        (!added.is_empty()).then(|| (end, end, format!("{comma}{}", added.join(", "))))
    }
}

/// A macro that is given what it does not name.
struct OpenMacro {
    inner: Value,
    /// Names of the parameters that it names itself.
    names: Vec<Value>,
    takes: [bool; 2],
}

/// Wraps a macro with the parameters that [`Finder`] adds.
pub(super) fn open(inner: Value) -> Result<Value, Error> {
    let mut names: Vec<Value> = inner.get_attr("arguments")?.try_iter()?.collect();
    let takes = REST.map(|(_, mark)| names.iter().any(|name| name.as_str() == Some(mark)));
    let added = takes.iter().filter(|takes| **takes).count() * 2;
    names.truncate(names.len().saturating_sub(added));
    Ok(Value::from_object(OpenMacro { inner, names, takes }))
}

impl OpenMacro {
    /// Whether a named argument is one of the macro's own.
    fn has(&self, name: &str) -> bool {
        let is_caller = || {
            name == "caller" && self.inner.get_attr("caller").is_ok_and(|caller| caller.is_true())
        };
        self.names.iter().any(|own| own.as_str() == Some(name)) || is_caller()
    }
}

impl Object for OpenMacro {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        match key.as_str()? {
            "arguments" => Some(Value::from(Tuple::from(self.names.clone()))),
            "catch_varargs" => Some(self.takes[0].into()),
            "catch_kwargs" => Some(self.takes[1].into()),
            name => self.inner.get_attr(name).ok().filter(|value| !value.is_undefined()),
        }
    }

    fn call(self: &Arc<Self>, state: &mut State<'_, '_>, args: &[Value]) -> Result<Value, Error> {
        let (named, args) = match args.split_last() {
            Some((last, args)) if last.is_kwargs() => (Some(last), args),
            _ => (None, args),
        };
        // What stays among its own arguments although it takes no more of them is refused there.
        let own = if self.takes[0] { args.len().min(self.names.len()) } else { args.len() };
        let (own, rest) = args.split_at(own);
        let (mut given, mut others) = (Vec::new(), Vec::new());
        for name in named.map(Value::try_iter).transpose()?.into_iter().flatten() {
            let value = named.map_or(Ok(Value::UNDEFINED), |named| named.get_item(&name))?;
            let name = name.as_str().unwrap_or_default().to_owned();
            let list = if self.has(&name) || !self.takes[1] { &mut given } else { &mut others };
            list.push((name, value));
        }
        let budget = Budget::of(state);
        if self.takes[0] {
            let rest = Value::from(Tuple::from(rest));
            operators::built(budget, &rest, ENTRY)?;
            given.push((REST[0].0.to_owned(), rest));
        }
        if self.takes[1] {
            let others = Value::from_pairs(others);
            operators::built(budget, &others, PAIR)?;
            given.push((REST[1].0.to_owned(), others));
        }
        let mut all = own.to_vec();
        all.push(Value::from(Kwargs::from_iter(given)));
        self.inner.call(state, &all)
    }
}

impl fmt::Debug for OpenMacro {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.inner)
    }
}
