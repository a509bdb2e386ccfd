//! Hosts and origins that requests may name.

use std::net::IpAddr;

use axum::http::{
    HeaderMap, HeaderValue, Uri,
    header::{HOST, ORIGIN},
    uri::Authority,
};

use crate::{error::ApiError, excerpt::excerpt};

/// Names of hosts that were given.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hosts(Vec<String>);

impl Hosts {
    pub(crate) fn add(&mut self, name: String) {
        self.0.push(name);
    }

    /// Checks the host that a request names. Clients that are no browsers may name none.
    pub(crate) fn check(
        &self,
        uri: &Uri,
        headers: &HeaderMap,
        is_loopback: bool,
    ) -> Result<(), ApiError> {
        if !is_loopback && self.0.is_empty() {
            return Ok(());
        }
        let named = headers.get_all(HOST).iter().map(|host| host.to_str().unwrap_or_default());
        let named = named.chain(uri.authority().map(Authority::as_str));
        for host in named {
            if !self.has(host) {
                let message = format!(
                    "the host {} is not allowed (--allow-host)",
                    excerpt(format_args!("{host:?}"))
                );
                return Err(ApiError::forbidden(message));
            }
        }
        Ok(())
    }

    fn has(&self, host: &str) -> bool {
        let Ok(authority) = host.parse::<Authority>() else { return false };
        let name = authority.host();
        let is_given = |given: &String| given.eq_ignore_ascii_case(name);
        is_loopback_name(name) || self.0.iter().any(is_given)
    }
}

fn is_loopback_name(name: &str) -> bool {
    let bare = name.trim_start_matches('[').trim_end_matches(']');
    name.eq_ignore_ascii_case("localhost")
        || bare.parse::<IpAddr>().is_ok_and(|ip| ip.to_canonical().is_loopback())
}

/// Checks the origin of a request that a page sends: its own server's, or one that is allowed. A
/// page may send some requests without asking first, so that closed CORS alone keeps none away.
pub(crate) fn check_origin(headers: &HeaderMap, allowed: &[String]) -> Result<(), ApiError> {
    let Some(origin) = headers.get(ORIGIN) else { return Ok(()) };
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    let is_own = |origin: &HeaderValue| {
        let origin = origin.to_str().ok()?.split_once("://")?.1;
        Some(origin.eq_ignore_ascii_case(host?))
    };
    let is_allowed =
        |origin: &HeaderValue| allowed.iter().any(|one| one == "*" || origin == one.as_str());
    if is_own(origin) == Some(true) || is_allowed(origin) {
        return Ok(());
    }
    let origin = excerpt(format_args!("{origin:?}"));
    Err(ApiError::forbidden(format!("the origin {origin} is not allowed (--allow-origin)")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(axum::http::HeaderName, &'static str)]) -> HeaderMap {
        let pairs =
            pairs.iter().map(|(name, value)| (name.clone(), HeaderValue::from_static(value)));
        pairs.collect()
    }

    #[test]
    fn on_the_loopback_hosts_are_of_the_loopback_or_given() {
        let mut hosts = Hosts::default();
        let uri = Uri::from_static("/health");
        let check = |hosts: &Hosts, host: &'static str, is_loopback| {
            hosts.check(&uri, &headers(&[(HOST, host)]), is_loopback).is_ok()
        };
        for host in ["localhost", "LOCALHOST:8080", "127.0.0.1:1", "127.9.9.9", "[::1]:8080"] {
            assert!(check(&hosts, host, true), "{host}");
        }
        for host in ["example.org", "localhost.example.org", "10.0.0.1", "", "a b"] {
            assert!(!check(&hosts, host, true), "{host}");
            assert!(check(&hosts, host, false), "{host}: no host is checked elsewhere");
        }
        hosts.add("Example.org".to_owned());
        assert!(check(&hosts, "example.org:443", true) && check(&hosts, "example.org", false));
        assert!(!check(&hosts, "example.com", false), "hosts are given");
        let absolute = Uri::from_static("http://example.com/health");
        assert!(hosts.check(&absolute, &headers(&[(HOST, "localhost")]), true).is_err());
        assert!(hosts.check(&uri, &HeaderMap::new(), true).is_ok(), "no browser sends none");
    }

    #[test]
    fn pages_of_other_origins_are_refused_unless_allowed() {
        let origin = |origin| headers(&[(HOST, "127.0.0.1:8080"), (ORIGIN, origin)]);
        let allowed = ["https://example.org".to_owned()];
        assert!(check_origin(&HeaderMap::new(), &[]).is_ok());
        assert!(check_origin(&origin("http://127.0.0.1:8080"), &[]).is_ok(), "its own");
        assert!(check_origin(&origin("https://example.org"), &[]).is_err());
        assert!(check_origin(&origin("https://example.org"), &allowed).is_ok());
        assert!(check_origin(&origin("https://example.org.evil"), &allowed).is_err());
        assert!(check_origin(&origin("null"), &allowed).is_err());
        assert!(check_origin(&origin("null"), &["*".to_owned()]).is_ok());
    }
}
