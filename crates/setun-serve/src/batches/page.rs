//! Pages of lists, and the parameters of a request for one.

use axum::http::Uri;
use percent_encoding::percent_decode_str;
use serde::Serialize;

use crate::{error::ApiError, excerpt::excerpt, warnings::Warnings};

/// The parameters of an address that have not been taken.
pub(super) struct Query(Vec<(String, String)>);

/// A page of a list.
#[derive(Serialize)]
pub(super) struct Page<'a, T> {
    object: &'static str,
    data: Vec<T>,
    first_id: Option<&'a str>,
    last_id: Option<&'a str>,
    has_more: bool,
}

impl Query {
    pub(super) fn of(uri: &Uri) -> Self {
        let pairs = uri.query().unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
        let decoded = |text: &str| {
            let text = text.replace('+', " ");
            percent_decode_str(&text).decode_utf8_lossy().into_owned()
        };
        let pair = |pair: &str| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decoded(name), decoded(value))
        };
        Self(pairs.map(pair).collect())
    }

    pub(super) fn take(&mut self, name: &str) -> Option<String> {
        let place = self.0.iter().position(|(found, _)| found == name)?;
        Some(self.0.remove(place).1)
    }

    /// A number of a range, both ends included.
    pub(super) fn count(
        &mut self,
        name: &str,
        most: usize,
        default: usize,
    ) -> Result<usize, ApiError> {
        let Some(found) = self.take(name) else { return Ok(default) };
        let count = found.parse().ok().filter(|count| (1..=most).contains(count));
        count.ok_or_else(|| refused(name, &format!("an integer from 1 to {most}"), &found))
    }

    /// Whether the second of two words is given. The first is the default.
    pub(super) fn is_second(&mut self, name: &str, words: [&str; 2]) -> Result<bool, ApiError> {
        let Some(found) = self.take(name) else { return Ok(false) };
        let place = words.iter().position(|word| *word == found);
        let place = place.ok_or_else(|| refused(name, &words.join(" or "), &found))?;
        Ok(place == 1)
    }

    /// Warns of those that nobody has taken.
    pub(super) fn finish(self, warnings: &Warnings) {
        for (name, _) in self.0 {
            warnings.add(&[format!("`{}` is unknown and is ignored", excerpt(name))]);
        }
    }
}

fn refused(name: &str, expected: &str, found: &str) -> ApiError {
    let found = excerpt(format_args!("{found:?}"));
    ApiError::invalid(name, format!("expected {expected}, found {found}"))
}

impl<'a, T> Page<'a, T> {
    /// Items after the one with this id, in their order.
    pub(super) fn new<S>(
        all: &'a [S],
        after: Option<&str>,
        limit: usize,
        id: impl Fn(&S) -> &str,
        object: impl Fn(&'a S) -> T,
    ) -> Result<Self, ApiError> {
        let begin = match after {
            None => 0,
            Some(after) => match all.iter().position(|item| id(item) == after) {
                Some(place) => place + 1,
                None => return Err(refused("after", "an id of the list", after)),
            },
        };
        let rest = &all[begin..];
        let page = &rest[..rest.len().min(limit)];
        Ok(Self {
            object: "list",
            data: page.iter().map(object).collect(),
            first_id: page.first().map(&id),
            last_id: page.last().map(&id),
            has_more: rest.len() > page.len(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(text: &str) -> Query {
        Query::of(&Uri::try_from(format!("/v1/files?{text}")).expect("an address"))
    }

    #[test]
    fn parameters_are_decoded_and_checked() {
        let mut all = query("after=a%20b+c&limit=7&order=desc&limit=9");
        assert_eq!(all.take("after").as_deref(), Some("a b c"));
        assert_eq!(all.count("limit", 100, 20), Ok(7));
        assert_eq!(all.is_second("order", ["asc", "desc"]), Ok(true));
        assert_eq!(all.count("absent", 100, 20), Ok(20));
        for (text, expected) in [
            ("limit=0", "limit: expected an integer from 1 to 100, found \"0\""),
            ("limit=101", "limit: expected an integer from 1 to 100, found \"101\""),
            ("limit", "limit: expected an integer from 1 to 100, found \"\""),
        ] {
            let error = query(text).count("limit", 100, 20).expect_err("it is refused");
            assert_eq!(error.message(), expected);
        }
        assert!(query("order=up").is_second("order", ["asc", "desc"]).is_err());
    }

    #[test]
    fn a_page_begins_after_an_item() {
        let all = ["a", "b", "c", "d"];
        let page = |after, limit| {
            let page = Page::new(&all, after, limit, |id| *id, |id| *id);
            page.map(|page| (page.data.concat(), page.has_more))
        };
        assert_eq!(page(None, 2), Ok(("ab".to_owned(), true)));
        assert_eq!(page(Some("b"), 2), Ok(("cd".to_owned(), false)));
        assert_eq!(page(Some("d"), 2), Ok((String::new(), false)));
        assert!(page(Some("e"), 2).is_err());
    }
}
