//! `GET /openapi.json`: the description of all routes. A route is added together with its description.

pub(crate) mod components;
pub(crate) mod operation;
pub(crate) mod options;
pub(crate) mod routes;
pub(crate) mod schema;
#[cfg(test)]
mod tests;
