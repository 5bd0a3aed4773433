//! The HTTP client of an instance, as the case asks for it.

use ressac_http::{ClientConfig, TlsConfig, Version};

use crate::fault::Fault;
use crate::told::Told;

/// Without an anchor of the case there is one that signs nothing: reading the platform's for each
/// of hundreds of instances would be measured as this client's latency.
pub(crate) fn config(task: &Told, fault: &Fault) -> Result<ClientConfig, String> {
    let mut tls = TlsConfig {
        platform_roots: false,
        extra_ca_pem: include_bytes!("nobody.pem").to_vec(),
        ..TlsConfig::default()
    };
    if let Some(file) = task.get("ca_file") {
        tls.extra_ca_pem = std::fs::read(file).map_err(|e| format!("{file}: {e}"))?;
    }
    let mut config = ClientConfig {
        tls,
        max_response_body: 4 << 20,
        version: match is_http2(task) {
            true => Version::Http2,
            false => Version::Http1,
        },
        ..ClientConfig::default()
    };
    fault.transport(&mut config);
    Ok(config)
}

/// Whether the case is one of HTTP/2: by ALPN, or by prior knowledge.
pub(crate) fn is_http2(task: &Told) -> bool {
    matches!(task.get("http"), Some("2" | "h2c"))
}
