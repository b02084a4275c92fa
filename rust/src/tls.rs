//! The certificates that connections of this program trust.

use ureq::tls::{PemItem, RootCerts, TlsConfig, parse_pem};

/// Mozilla's certificates, or those in the file named by SSL_CERT_FILE or REQUESTS_CA_BUNDLE.
pub fn tls_config() -> Result<TlsConfig, String> {
    let named = |name| std::env::var(name).ok().filter(|path| !path.is_empty());
    let Some(path) = named("SSL_CERT_FILE").or_else(|| named("REQUESTS_CA_BUNDLE")) else {
        return Ok(TlsConfig::default());
    };
    let pem = std::fs::read(&path)
        .map_err(|error| format!("cannot read the certificates in {path}: {error}"))?;
    let certificates: Vec<_> = parse_pem(&pem)
        .filter_map(|item| match item {
            Ok(PemItem::Certificate(certificate)) => Some(certificate),
            _ => None,
        })
        .collect();
    if certificates.is_empty() {
        return Err(format!("{path}: contains no PEM certificate"));
    }
    Ok(TlsConfig::builder()
        .root_certs(RootCerts::new_with_certs(&certificates))
        .build())
}
