//! Mutual TLS between a cluster's processes.
//!
//! Whoever reaches a scheduler or an executor may run queries there. With TLS each process shows a certificate that the
//! cluster's authority has signed, and talks to nobody without one.

use std::{
    error::Error as StdError,
    fmt, fs, io,
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use ballista_core::extension::{EndpointOverrideFn, SessionConfigExt};
use datafusion::prelude::SessionConfig;
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    time::{sleep, timeout},
};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        RootCertStore, ServerConfig,
        crypto::ring::default_provider,
        pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
        server::WebPkiClientVerifier,
    },
};
use tonic::transport::{Certificate, ClientTlsConfig, Endpoint, Identity, ServerTlsConfig};
use tracing::{debug, warn};

use crate::error::Error;

/// A process's certificate, its key, and the authority that signs those of the cluster, all in PEM.
#[derive(Clone)]
pub struct Tls {
    authority: Vec<u8>,
    certificate: Vec<u8>,
    key: Vec<u8>,
}

/// Without the key.
impl fmt::Debug for Tls {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Tls").finish_non_exhaustive()
    }
}

impl Tls {
    /// Reads the files.
    ///
    /// # Errors
    ///
    /// If a file cannot be read, or the key does not fit the certificate.
    pub fn read(authority: &Path, certificate: &Path, key: &Path) -> Result<Self, Error> {
        let read = |path: &Path| {
            let wrong = |error: io::Error| tls_error(path, &error);
            fs::read(path).map_err(wrong)
        };
        let tls =
            Self { authority: read(authority)?, certificate: read(certificate)?, key: read(key)? };
        tls.server_config().map_err(|error| tls_error(certificate, error.as_ref()))?;
        Ok(tls)
    }

    /// A session whose connections go by TLS.
    pub(super) fn for_client(&self, config: SessionConfig) -> SessionConfig {
        let config = config.with_ballista_use_tls(true);
        config.with_ballista_override_create_grpc_client_endpoint(self.for_endpoint())
    }

    /// Makes an endpoint one of TLS.
    pub(super) fn for_endpoint(&self) -> EndpointOverrideFn {
        let tls = ClientTlsConfig::new()
            .ca_certificate(Certificate::from_pem(&self.authority))
            .identity(Identity::from_pem(&self.certificate, &self.key));
        Arc::new(move |endpoint| {
            // Ballista writes `http` for what it does not know to be otherwise.
            let address = endpoint.uri().to_string().replacen("http://", "https://", 1);
            let endpoint = Endpoint::from_shared(address)?
                .connect_timeout(WAIT)
                .tcp_nodelay(true)
                .tcp_keepalive(Some(WAIT))
                .http2_keep_alive_interval(WAIT)
                .keep_alive_timeout(WAIT)
                .keep_alive_while_idle(true);
            Ok(endpoint.tls_config(tls.clone())?)
        })
    }

    /// TLS of a server of tonic.
    pub(super) fn for_server(&self) -> ServerTlsConfig {
        ServerTlsConfig::new()
            .identity(Identity::from_pem(&self.certificate, &self.key))
            .client_ca_root(Certificate::from_pem(&self.authority))
    }

    /// Answers TLS on `listener`, and passes what it reads to a port of this machine, for a server that has no TLS itself.
    pub(super) async fn pass_on(self, listener: TcpListener, port: u16) -> io::Result<()> {
        let config = self.server_config().map_err(|error| io::Error::other(error.to_string()))?;
        let acceptor = TlsAcceptor::from(Arc::new(config));
        loop {
            let (stream, peer) = match listener.accept().await {
                Ok(accepted) => accepted,
                Err(error) => {
                    warn!(%error, "a connection was not accepted");
                    sleep(PAUSE).await;
                    continue;
                }
            };
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                if let Err(error) = pass(acceptor, stream, port).await {
                    debug!(%peer, %error, "a connection has ended");
                }
            });
        }
    }

    fn server_config(&self) -> Result<ServerConfig, Box<dyn StdError + Send + Sync>> {
        let mut roots = RootCertStore::empty();
        for authority in CertificateDer::pem_slice_iter(&self.authority) {
            roots.add(authority?)?;
        }
        let provider = Arc::new(default_provider());
        let clients =
            WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
        let certificates = CertificateDer::pem_slice_iter(&self.certificate);
        let certificates = certificates.collect::<Result<Vec<_>, _>>()?;
        let key = PrivateKeyDer::from_pem_slice(&self.key)?;
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_client_cert_verifier(clients.build()?)
            .with_single_cert(certificates, key)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(config)
    }
}

/// Longest time for a connection to be made or to be silent.
const WAIT: Duration = Duration::from_secs(20);

/// Time after a connection that could not be accepted.
const PAUSE: Duration = Duration::from_secs(1);

fn tls_error(path: &Path, reason: &dyn fmt::Display) -> Error {
    Error::Tls { file: PathBuf::from(path), reason: reason.to_string() }
}

async fn pass(acceptor: TlsAcceptor, stream: TcpStream, port: u16) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut outer = timeout(WAIT, acceptor.accept(stream)).await??;
    let mut inner = TcpStream::connect(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).await?;
    inner.set_nodelay(true)?;
    copy_bidirectional(&mut outer, &mut inner).await.map(drop)
}
