//! Requests to the hub and to the addresses it redirects to.

use std::time::Duration;

use ureq::http::{HeaderMap, Response, StatusCode};
use ureq::{Agent, Body};

use super::proxy::proxy_for;
use super::retry::{Backoff, FetchError};
use crate::tls::tls_config;

const MAX_REDIRECTS: usize = 5;
const MAX_API_BYTES: u64 = 256 << 20;
/// A user learns within this time that the network is down.
const LONGEST_CONNECT: Duration = Duration::from_secs(4);

pub struct ClientOptions {
    /// For example "https://huggingface.co", without a trailing slash.
    pub endpoint: String,
    /// Sent only to the endpoint's own host and port.
    pub token: Option<String>,
    pub user_agent: String,
    /// Applies to connecting, to receiving the response headers, and to each read.
    pub timeout: Duration,
    pub first_retry: Duration,
}

pub struct Client {
    options: ClientOptions,
    http: Agent,
    https: Agent,
}

/// The final response after redirects, with the hub's metadata of the file.
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
                "HF_ENDPOINT: {} is not a valid URL; use a form like https://huggingface.co",
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

    /// Whether this URL is on the hub itself.
    pub fn is_hub(&self, url: &str) -> bool {
        origin_of(url) == origin_of(&self.options.endpoint)
    }

    pub fn backoff(&self) -> Backoff {
        Backoff::new(self.options.first_retry)
    }

    /// Fetches the text at `path` of the hub, retrying transient errors; calls `on_retry` with the reason and the
    /// delay before each retry. Blocks.
    pub fn text(
        &self,
        path: &str,
        on_retry: &mut dyn FnMut(&str, Duration),
    ) -> Result<String, FetchError> {
        let mut backoff = Backoff::first_contact(self.options.first_retry);
        loop {
            let error = match self.text_once(path) {
                Ok(text) => return Ok(text),
                Err(error) => error,
            };
            let reason = error.reason().to_string();
            let wait = backoff.wait_after(error)?;
            on_retry(&reason, wait);
            std::thread::sleep(wait);
        }
    }

    fn text_once(&self, path: &str) -> Result<String, FetchError> {
        let mut answer = self.get(&self.url_of(path), None)?;
        let body = answer.response.body_mut().with_config();
        body.limit(MAX_API_BYTES)
            .read_to_string()
            .map_err(FetchError::retry)
    }

    /// Follows redirects. Any final status other than 200 and 206 is an error. `range`: the first byte and one past
    /// the last.
    pub fn get(&self, url: &str, range: Option<(u64, u64)>) -> Result<Answer, FetchError> {
        let mut url = url.to_string();
        let mut etag = None;
        for _ in 0..=MAX_REDIRECTS {
            let response = self.get_once(&url, range)?;
            if self.is_hub(&url) {
                etag = etag_of(response.headers()).or(etag);
            }
            let status = response.status();
            if !status.is_redirection() {
                check_status(&response).map_err(|error| match error {
                    // The URLs the hub redirects to are signed and expire, so request a new one.
                    FetchError::Final { reason, .. } if !self.is_hub(&url) => {
                        FetchError::retry(reason)
                    }
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
                    FetchError::retry(format!("{status} without a valid Location header"))
                })?;
            url = target;
        }
        Err(FetchError::retry(format!(
            "more than {MAX_REDIRECTS} redirects, the last to {url}"
        )))
    }

    fn get_once(&self, url: &str, range: Option<(u64, u64)>) -> Result<Response<Body>, FetchError> {
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
                FetchError::fatal(format!("{url}: {error}"))
            }
            // Retrying does not make a certificate valid.
            ureq::Error::Tls(_) | ureq::Error::Rustls(_) => FetchError::fatal(format!(
                "{}: {error} (set SSL_CERT_FILE to a file of certificates to trust)",
                origin_of(url).unwrap_or_default()
            )),
            _ => {
                let host = origin_of(url).unwrap_or_else(|| url.to_string());
                let reason = format!("{host}: {error}");
                if is_unreachable(&error) {
                    FetchError::Unreachable { reason }
                } else {
                    FetchError::retry(reason)
                }
            }
        })
    }
}

/// Whether there was no connection, as opposed to one that broke.
fn is_unreachable(error: &ureq::Error) -> bool {
    use std::io::ErrorKind;
    match error {
        ureq::Error::HostNotFound | ureq::Error::ConnectionFailed => true,
        ureq::Error::Timeout(timeout) => {
            matches!(timeout, ureq::Timeout::Resolve | ureq::Timeout::Connect)
        }
        ureq::Error::Io(error) => !matches!(
            error.kind(),
            ErrorKind::ConnectionReset
                | ErrorKind::ConnectionAborted
                | ErrorKind::BrokenPipe
                | ErrorKind::UnexpectedEof
                | ErrorKind::TimedOut
                | ErrorKind::WouldBlock
                | ErrorKind::Interrupted
                | ErrorKind::InvalidData
        ),
        _ => false,
    }
}

fn agent(scheme: &str, options: &ClientOptions) -> Result<Agent, String> {
    let timeout = Some(options.timeout);
    let connect = Some(options.timeout.min(LONGEST_CONNECT));
    let config = Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .user_agent(&options.user_agent)
        .accept_encoding("identity")
        .proxy(proxy_for(scheme)?)
        .tls_config(tls_config()?)
        .timeout_resolve(connect)
        .timeout_connect(connect)
        .timeout_recv_response(timeout)
        .timeout_per_read(timeout)
        .build();
    Ok(config.new_agent())
}

fn check_status(response: &Response<Body>) -> Result<(), FetchError> {
    let status = response.status();
    if status == StatusCode::OK || status == StatusCode::PARTIAL_CONTENT {
        return Ok(());
    }
    // The hub explains its status in a header of its own.
    let said = header(response.headers(), "x-error-message").map(|text| format!(": {text}"));
    let reason = format!(
        "the server answered {status}{}",
        said.as_deref().unwrap_or("")
    );
    let passing = [408, 416, 425, 429].contains(&status.as_u16()) || !status.is_client_error();
    if !passing {
        return Err(FetchError::Final {
            status: status.as_u16(),
            reason,
        });
    }
    let seconds = header(response.headers(), "retry-after").and_then(|value| value.parse().ok());
    Err(FetchError::Retry {
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

/// Scheme, host and port in lower case.
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
    fn a_relative_location_is_resolved() {
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
