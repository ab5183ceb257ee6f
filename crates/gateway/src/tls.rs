//! Certificates: given, or made up at start for this host.

use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::TlsAcceptor;

/// Names under which a development server is reached on its own machine.
const LOCAL_NAMES: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// A certificate with its key, ready to serve.
#[derive(Clone)]
pub struct Tls {
    config: Arc<ServerConfig>,
    certificate_pem: Option<String>,
}

/// Why a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// No certificate could be made.
    #[error("no certificate could be made for this host: {0}")]
    Generate(#[from] rcgen::Error),
    /// A file does not hold what it should.
    #[error("the PEM file does not hold a {what}: {source}")]
    Pem {
        /// What was looked for.
        what: &'static str,
        /// What the reader said.
        source: rustls::pki_types::pem::Error,
    },
    /// Certificate and key do not fit together.
    #[error("the certificate cannot be served: {0}")]
    Unusable(#[from] rustls::Error),
}

impl Tls {
    /// Makes a certificate for this machine and `host_names`, signed by itself. Clients have to
    /// be told to trust it: [`Tls::certificate_pem`].
    pub fn self_signed(host_names: &[String]) -> Result<Tls, TlsError> {
        let mut names: Vec<String> = LOCAL_NAMES.map(str::to_owned).to_vec();
        names.extend(host_names.iter().cloned());
        names.sort();
        names.dedup();
        let made = rcgen::generate_simple_self_signed(names)?;
        let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
        let mut tls = Tls::new(vec![made.cert.der().clone()], key.into())?;
        tls.certificate_pem = Some(made.cert.pem());
        Ok(tls)
    }

    /// Takes a certificate chain and its private key from the contents of PEM files.
    pub fn from_pem(certificates: &[u8], key: &[u8]) -> Result<Tls, TlsError> {
        let what = "certificate";
        let chain = CertificateDer::pem_slice_iter(certificates).collect::<Result<Vec<_>, _>>();
        let chain = chain.map_err(|source| TlsError::Pem { what, source })?;
        let what = "private key";
        let key = PrivateKeyDer::from_pem_slice(key);
        Tls::new(chain, key.map_err(|source| TlsError::Pem { what, source })?)
    }

    fn new(
        chain: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
    ) -> Result<Tls, TlsError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(chain, key)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Tls { config: Arc::new(config), certificate_pem: None })
    }

    /// The certificate we made, for clients to trust; `None` if it was given.
    pub fn certificate_pem(&self) -> Option<&str> {
        self.certificate_pem.as_deref()
    }

    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        self.config.clone().into()
    }
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tls(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn made_and_given_certificates() {
        let host = ["database.internal".to_owned(), "localhost".to_owned()];
        let tls = Tls::self_signed(&host).unwrap();
        assert!(tls.certificate_pem().unwrap().starts_with("-----BEGIN CERTIFICATE"));
        let made = rcgen::generate_simple_self_signed(["x".to_owned()]).unwrap();
        let (cert, key) = (made.cert.pem(), made.signing_key.serialize_pem());
        assert!(Tls::from_pem(cert.as_bytes(), key.as_bytes()).is_ok());
        assert!(Tls::from_pem(b"", key.as_bytes()).is_err());
        assert!(Tls::from_pem(cert.as_bytes(), b"").is_err());
        let other = rcgen::generate_simple_self_signed(["x".to_owned()]).unwrap();
        let other = other.signing_key.serialize_pem();
        assert!(Tls::from_pem(cert.as_bytes(), other.as_bytes()).is_err());
    }
}
