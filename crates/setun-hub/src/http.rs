//! HTTP requests: redirects, the hub's token, status codes.

use std::{io::Read, path::Path, time::Duration};

use ureq::{
    Agent, Body, Timeout,
    http::{HeaderMap, Response, Uri, header},
    tls::{PemItem, RootCerts, TlsConfig, parse_pem},
};

use crate::{
    atomic_files::read_regular,
    error::Error,
    options::PullOptions,
    pace::Paced,
    retry::{Fault, later, retry_after, with_retries},
    settings::StoreSettings,
    url::{join, origin},
};

/// Longest chain of redirects.
const REDIRECTS: usize = 10;

/// Longest wait for a name's address, and for a connection.
const CONNECT: Duration = Duration::from_secs(20);

/// Most bytes of a file of certificates.
const CERTIFICATES: u64 = 16 << 20;

/// What is asked for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Request<'a> {
    /// Only what comes before the bytes.
    pub(crate) head: bool,
    /// Bytes that are wanted.
    pub(crate) range: Option<std::ops::Range<u64>>,
    /// Only of a file that the server knows by this.
    pub(crate) if_range: Option<&'a str>,
}

/// An answer that is no redirect.
pub(crate) struct Reply {
    /// The address that answered.
    pub(crate) address: String,
    /// The `x-linked-etag` of a redirect: a hub identifies a file by its hash.
    pub(crate) linked_etag: Option<String>,
    pub(crate) response: Response<Body>,
}

/// Asks servers.
pub(crate) struct Http {
    agent: Agent,
    /// The origin that may hear the token, and the token.
    token: Option<(String, String)>,
    options: PullOptions,
}

impl Http {
    pub(crate) fn new(settings: &StoreSettings, options: &PullOptions) -> Result<Self, Error> {
        let roots = settings.certificates.as_deref().map(certificates).transpose()?;
        let tls = TlsConfig::builder().root_certs(roots.unwrap_or(RootCerts::WebPki)).build();
        let config = Agent::config_builder()
            .tls_config(tls)
            .max_redirects(0)
            .http_status_as_error(false)
            .user_agent(concat!("setun/", env!("CARGO_PKG_VERSION")))
            .accept_encoding("identity")
            .timeout_resolve(Some(CONNECT))
            .timeout_connect(Some(CONNECT))
            .timeout_recv_response(Some(options.read_timeout))
            .timeout_per_read(Some(options.read_timeout))
            .timeout_per_write(Some(options.read_timeout))
            .max_idle_connections_per_host(options.workers())
            .build();
        #[cfg(feature = "testing")]
        let agent = crate::testing::agent(config);
        #[cfg(not(feature = "testing"))]
        let agent = config.new_agent();
        let token =
            settings.token.clone().and_then(|token| Some((origin(&settings.endpoint)?, token)));
        Ok(Self { agent, token, options: options.clone() })
    }

    /// Asks, and follows redirects.
    pub(crate) fn send(&self, address: &str, ask: &Request<'_>) -> Result<Reply, Fault> {
        let (mut at, mut linked_etag) = (address.to_owned(), None);
        for _ in 0..=REDIRECTS {
            let response = self.send_once(&at, ask)?;
            linked_etag = linked_etag.or_else(|| text(response.headers(), "x-linked-etag"));
            let status = response.status();
            if !status.is_redirection() || status.as_u16() == 304 {
                return Ok(Reply { address: at, linked_etag, response });
            }
            let location = text(response.headers(), "location");
            let next = location.as_deref().and_then(|location| join(&at, location));
            let Some(next) = next else {
                let reason = format!("a redirect to {}", location.as_deref().unwrap_or("nowhere"));
                return Err(network(&at, reason).into());
            };
            if at.starts_with("https:") && next.starts_with("http:") {
                let reason = format!("a redirect from https to {next}");
                return Err(network(&at, reason).into());
            }
            at = next;
        }
        Err(network(address, format!("more than {REDIRECTS} redirects")).into())
    }

    fn send_once(&self, address: &str, ask: &Request<'_>) -> Result<Response<Body>, Fault> {
        let uri: Uri = address.parse().map_err(|_| network(address, "it is no address".into()))?;
        let mut request = if ask.head { self.agent.head(uri) } else { self.agent.get(uri) };
        if let Some(range) = &ask.range {
            let last = range.end.saturating_sub(1);
            request = request.header(header::RANGE, format!("bytes={}-{last}", range.start));
        }
        if let Some(etag) = ask.if_range {
            request = request.header(header::IF_RANGE, etag);
        }
        if let Some((trusted, token)) = &self.token
            && origin(address).as_ref() == Some(trusted)
        {
            request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
        }
        // Up to the deadline for all, from the look-up of the name to the last byte.
        let request = match self.options.time_left()? {
            Some(left) => request.config().timeout_global(Some(left)).build(),
            None => request,
        };
        request.call().map_err(|error| fault(address, &error))
    }

    /// The bytes of an answer, which have to come at the least speed.
    pub(crate) fn body(&self, response: Response<Body>) -> Paced<impl Read + use<>> {
        Paced::new(response.into_body().into_reader(), &self.options)
    }

    /// A small file; `None` where there is none.
    pub(crate) fn small(
        &self,
        address: &str,
        most: u64,
        options: &PullOptions,
        on_retry: &dyn Fn(String, Duration),
    ) -> Result<Option<Vec<u8>>, Error> {
        with_retries(address, options, on_retry, || self.small_once(address, most))
    }

    fn small_once(&self, address: &str, most: u64) -> Result<Option<Vec<u8>>, Fault> {
        let Reply { address, response, .. } = self.send(address, &Request::default())?;
        if response.status().as_u16() == 404 {
            return Ok(None);
        }
        let response = expect(&address, response, &[200])?;
        let length = response.body().content_length();
        let mut bytes = vec![];
        let mut body = self.body(response).take(most + 1);
        body.read_to_end(&mut bytes).map_err(|error| broken(&address, &error))?;
        let found = bytes.len() as u64;
        if found > most {
            return Err(network(&address, format!("more than {most} bytes")).into());
        }
        if length.is_some_and(|length| length != found) {
            return Err(later(network(&address, format!("{found} bytes came"))));
        }
        Ok(Some(bytes))
    }
}

/// The certificates of a file, which has to have one.
fn certificates(path: &Path) -> Result<RootCerts, Error> {
    let text =
        read_regular(path, CERTIFICATES).map_err(|error| Error::io("read", path, 0, error))?;
    let certificate = |item| match item {
        Ok(PemItem::Certificate(certificate)) => Some(certificate),
        _ => None,
    };
    let found: Vec<_> = parse_pem(&text).filter_map(certificate).collect();
    if found.is_empty() {
        return Err(Error::NoCertificate { path: path.into() });
    }
    Ok(RootCerts::new_with_certs(&found))
}

/// The answer, if it has one of these statuses.
pub(crate) fn expect(
    address: &str,
    response: Response<Body>,
    good: &[u16],
) -> Result<Response<Body>, Fault> {
    let status = response.status().as_u16();
    if good.contains(&status) {
        return Ok(response);
    }
    let hint = match status {
        401 | 403 => ": it may need a token (HF_TOKEN) whose owner has accepted the model's terms",
        404 => ": there is no such file",
        _ => "",
    };
    let error = Error::HttpStatus { address: address.into(), status, hint };
    match status {
        408 | 425 | 429 | 500 | 502..=504 => {
            let wait = text(response.headers(), "retry-after");
            Err(Fault::Later { error, wait: wait.as_deref().and_then(retry_after) })
        }
        _ => Err(Fault::Final(error)),
    }
}

/// A header that is a text.
pub(crate) fn text(headers: &HeaderMap, name: &str) -> Option<String> {
    Some(headers.get(name)?.to_str().ok()?.trim().to_owned()).filter(|text| !text.is_empty())
}

pub(crate) fn network(address: &str, reason: String) -> Error {
    Error::Network { address: address.into(), reason }
}

/// A connection that broke while bytes came.
pub(crate) fn broken(address: &str, error: &std::io::Error) -> Fault {
    match error.get_ref().and_then(|error| error.downcast_ref::<ureq::Error>()) {
        Some(ureq::Error::Timeout(Timeout::Global)) => Fault::Final(Error::DeadlineExceeded),
        _ => later(network(address, error.to_string())),
    }
}

fn fault(address: &str, error: &ureq::Error) -> Fault {
    use ureq::Error;
    let reason = network(address, error.to_string());
    match error {
        Error::Timeout(Timeout::Global) => Fault::Final(crate::error::Error::DeadlineExceeded),
        Error::Io(_)
        | Error::Timeout(_)
        | Error::ConnectionFailed
        | Error::HostNotFound
        | Error::Protocol(_) => later(reason),
        _ => Fault::Final(reason),
    }
}
