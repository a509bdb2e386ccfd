//! Spans of requests to a collector of OpenTelemetry.

use std::time::Duration;

use setun_serve::SpanExporter;
use ureq::{Agent, http::Uri};

use crate::error::CliError;

/// Longest time of a request to the collector.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Where a collector takes spans.
const PATH: &str = "/v1/traces";

/// Exports spans to the collector at an address such as `http://127.0.0.1:4318`.
pub(super) fn exporter(endpoint: &str) -> Result<SpanExporter, CliError> {
    let is_http = |uri: &Uri| matches!(uri.scheme_str(), Some("http" | "https"));
    if !endpoint.parse().is_ok_and(|uri| is_http(&uri)) {
        let message = format!(
            "--otlp-endpoint: expected an address such as http://127.0.0.1:4318, found {endpoint:?}"
        );
        return Err(CliError::Usage(message));
    }
    let address = endpoint.trim_end_matches('/').trim_end_matches(PATH).to_owned() + PATH;
    let config = Agent::config_builder().timeout_global(Some(TIMEOUT)).max_redirects(0);
    let agent = config.user_agent(concat!("setun/", env!("CARGO_PKG_VERSION"))).build().new_agent();
    let exporter = SpanExporter::new(move |body| {
        let sent = agent.post(&address).content_type("application/json").send(&body[..]);
        sent.map(drop).map_err(Into::into)
    });
    let failed = |source| CliError::Listen { address: endpoint.to_owned(), source };
    exporter.map_err(failed)
}
