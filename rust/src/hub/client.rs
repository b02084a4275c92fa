//! One request at a time to the hub and to where it redirects.

use std::time::Duration;

use ureq::http::{HeaderMap, Response, StatusCode};
use ureq::tls::{PemItem, RootCerts, TlsConfig, parse_pem};
use ureq::{Agent, Body};

use super::proxy::proxy_for;
use super::retry::{Patience, Trouble};

const MOST_REDIRECTS: usize = 5;
const MOST_API_BYTES: u64 = 256 << 20;

pub struct ClientOptions {
    /// Like "https://huggingface.co", without a slash at the end.
    pub endpoint: String,
    /// Goes to the endpoint's own host and port, and nowhere else.
    pub token: Option<String>,
    pub user_agent: String,
    /// For connecting, for an answer's head, and for each read.
    pub timeout: Duration,
    pub first_retry: Duration,
}

pub struct Client {
    options: ClientOptions,
    http: Agent,
    https: Agent,
}

/// An answer that is no redirect, and what the hub said of the file on the way to it.
pub struct Answer {
    pub response: Response<Body>,
    /// Where it came from: the hub, or a store the hub redirects to.
    pub url: String,
    /// The hub's entity tag of the file, without quotes.
    pub etag: Option<String>,
}

impl Client {
    pub fn new(options: ClientOptions) -> Result<Client, String> {
        if origin_of(&options.endpoint).is_none() {
            return Err(format!(
                "HF_ENDPOINT: {} is no address; it should be like https://huggingface.co",
                options.endpoint
            ));
        }
        Ok(Client {
            http: agent("http", &options)?,
            https: agent("https", &options)?,
            options,
        })
    }

    pub fn url_of(&self, path: &str) -> String {
        format!("{}{path}", self.options.endpoint)
    }

    /// Is this address the hub itself?
    pub fn is_hub(&self, url: &str) -> bool {
        origin_of(url) == origin_of(&self.options.endpoint)
    }

    pub fn patience(&self) -> Patience {
        Patience::new(self.options.first_retry)
    }

    /// The text at `path` of the hub. Asks again while that may help; blocks meanwhile.
    pub fn text(&self, path: &str) -> Result<String, Trouble> {
        let mut patience = self.patience();
        loop {
            let trouble = match self.text_once(path) {
                Ok(text) => return Ok(text),
                Err(trouble) => trouble,
            };
            std::thread::sleep(patience.wait_after(trouble)?);
        }
    }

    fn text_once(&self, path: &str) -> Result<String, Trouble> {
        let mut answer = self.get(&self.url_of(path), None)?;
        let body = answer.response.body_mut().with_config();
        body.limit(MOST_API_BYTES)
            .read_to_string()
            .map_err(Trouble::again)
    }

    /// Follows redirects. An answer is 200 or 206; anything else is trouble. `range`: first byte and one past the
    /// last.
    pub fn get(&self, url: &str, range: Option<(u64, u64)>) -> Result<Answer, Trouble> {
        let mut url = url.to_string();
        let mut etag = None;
        for _ in 0..=MOST_REDIRECTS {
            let response = self.get_once(&url, range)?;
            if self.is_hub(&url) {
                etag = etag_of(response.headers()).or(etag);
            }
            let status = response.status();
            if !status.is_redirection() {
                check_status(&response).map_err(|trouble| match trouble {
                    // The addresses the hub redirects to are signed and expire: ask the hub again.
                    Trouble::Final { reason, .. } if !self.is_hub(&url) => Trouble::again(reason),
                    other => other,
                })?;
                return Ok(Answer {
                    response,
                    url,
                    etag,
                });
            }
            let target = header(response.headers(), "location")
                .and_then(|location| resolve(&url, location))
                .ok_or_else(|| {
                    Trouble::again(format!("{status} without a location that makes sense"))
                })?;
            url = target;
        }
        Err(Trouble::again(format!(
            "more than {MOST_REDIRECTS} redirects, the last to {url}"
        )))
    }

    fn get_once(&self, url: &str, range: Option<(u64, u64)>) -> Result<Response<Body>, Trouble> {
        let secure = url.starts_with("https:");
        let agent = if secure { &self.https } else { &self.http };
        let mut request = agent.get(url);
        if let Some((begin, end)) = range {
            request = request.header("range", format!("bytes={begin}-{}", end - 1));
        }
        if let Some(token) = &self.options.token
            && self.is_hub(url)
        {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        request.call().map_err(|error| match error {
            ureq::Error::Http(_) | ureq::Error::BadUri(_) => {
                Trouble::finally(format!("{url}: {error}"))
            }
            // A certificate does not become right by asking again.
            ureq::Error::Tls(_) | ureq::Error::Rustls(_) => Trouble::finally(format!(
                "{}: {error} (SSL_CERT_FILE names a file of certificates to trust instead)",
                origin_of(url).unwrap_or_default()
            )),
            _ => Trouble::again(format!(
                "{}: {error}",
                origin_of(url).unwrap_or_else(|| url.to_string())
            )),
        })
    }
}

fn agent(scheme: &str, options: &ClientOptions) -> Result<Agent, String> {
    let timeout = Some(options.timeout);
    let config = Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .user_agent(&options.user_agent)
        .accept_encoding("identity")
        .proxy(proxy_for(scheme)?)
        .tls_config(tls_config()?)
        .timeout_resolve(timeout)
        .timeout_connect(timeout)
        .timeout_recv_response(timeout)
        .timeout_per_read(timeout)
        .build();
    Ok(config.new_agent())
}

/// Mozilla's certificates, or those of the file that SSL_CERT_FILE or REQUESTS_CA_BUNDLE names.
fn tls_config() -> Result<TlsConfig, String> {
    let named = |name| std::env::var(name).ok().filter(|path| !path.is_empty());
    let Some(path) = named("SSL_CERT_FILE").or_else(|| named("REQUESTS_CA_BUNDLE")) else {
        return Ok(TlsConfig::default());
    };
    let pem =
        std::fs::read(&path).map_err(|error| format!("the certificates of {path}: {error}"))?;
    let certificates: Vec<_> = parse_pem(&pem)
        .filter_map(|item| match item {
            Ok(PemItem::Certificate(certificate)) => Some(certificate),
            _ => None,
        })
        .collect();
    if certificates.is_empty() {
        return Err(format!("{path}: holds no certificate in PEM form"));
    }
    Ok(TlsConfig::builder()
        .root_certs(RootCerts::new_with_certs(&certificates))
        .build())
}

fn check_status(response: &Response<Body>) -> Result<(), Trouble> {
    let status = response.status();
    if status == StatusCode::OK || status == StatusCode::PARTIAL_CONTENT {
        return Ok(());
    }
    // The hub says in a header of its own what its status means.
    let said = header(response.headers(), "x-error-message").map(|text| format!(": {text}"));
    let reason = format!(
        "the server answered {status}{}",
        said.as_deref().unwrap_or("")
    );
    let passing = [408, 416, 425, 429].contains(&status.as_u16()) || !status.is_client_error();
    if !passing {
        return Err(Trouble::Final {
            status: status.as_u16(),
            reason,
        });
    }
    let seconds = header(response.headers(), "retry-after").and_then(|value| value.parse().ok());
    Err(Trouble::Again {
        wait: seconds.map(Duration::from_secs),
        reason,
    })
}

pub fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

fn etag_of(headers: &HeaderMap) -> Option<String> {
    let tag = header(headers, "x-linked-etag").or_else(|| header(headers, "etag"))?;
    Some(tag.trim_start_matches("W/").trim_matches('"').to_string())
}

/// Scheme, host and port, in small letters.
fn origin_of(url: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let host = authority.rsplit('@').next()?;
    let scheme = scheme.to_lowercase();
    if host.is_empty() || (scheme != "http" && scheme != "https") {
        return None;
    }
    let default_port = if scheme == "http" { ":80" } else { ":443" };
    let host = host.to_lowercase();
    let host = host.strip_suffix(default_port).unwrap_or(&host);
    Some(format!("{scheme}://{host}"))
}

fn resolve(base: &str, location: &str) -> Option<String> {
    if origin_of(location).is_some() {
        return Some(location.to_string());
    }
    let (scheme, rest) = base.split_once("://")?;
    if location.starts_with("//") {
        return Some(format!("{scheme}:{location}"));
    }
    let authority = rest.split(['/', '?', '#']).next()?;
    let path = location.starts_with('/').then_some(location)?;
    Some(format!("{scheme}://{authority}{path}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_scheme_host_and_port() {
        assert_eq!(
            origin_of("https://Hub.co:443/a/b"),
            origin_of("https://hub.co")
        );
        assert_ne!(
            origin_of("http://127.0.0.1:1/a"),
            origin_of("http://127.0.0.1:2/a")
        );
        assert_ne!(origin_of("http://hub.co"), origin_of("https://hub.co"));
        assert_ne!(
            origin_of("https://hub.co@evil.org/"),
            origin_of("https://hub.co")
        );
        assert_eq!(origin_of("file:///etc/passwd"), None);
        assert_eq!(origin_of("hub.co"), None);
    }

    #[test]
    fn a_location_may_leave_out_what_the_address_had() {
        let base = "https://hub.co/a/resolve/main/x?y=1";
        assert_eq!(resolve(base, "/b").unwrap(), "https://hub.co/b");
        assert_eq!(resolve(base, "//cdn.co/b").unwrap(), "https://cdn.co/b");
        assert_eq!(
            resolve(base, "http://cdn.co/b?k=/").unwrap(),
            "http://cdn.co/b?k=/"
        );
        assert_eq!(resolve(base, "ftp://x/"), None);
    }
}
