//! URLs of images: parsed by hand and strictly, so that no two parsers can read a different host in one.

use ureq::http::Uri;

const LONGEST_URL: usize = 8192;

/// Returns an allowed host in the form in which URLs are compared with it: a name, in lower case. Fails with the reason.
pub fn checked_host(host: &str) -> Result<String, String> {
    let host = host.to_ascii_lowercase();
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && label
                .bytes()
                .all(|c| c.is_ascii_alphanumeric() || c == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    if !host.is_ascii() {
        return Err("write international names in their ASCII form (xn--...)".into());
    }
    if host.contains("://") || host.contains('/') {
        return Err("give only the host, without https:// and without a path".into());
    }
    if host.contains('*') {
        return Err("wildcards are not supported; name each host".into());
    }
    if host.contains(':') {
        return Err("give a host name without a port; only port 443 is used".into());
    }
    if host.ends_with('.') {
        return Err("leave the dot at the end out".into());
    }
    if host.len() > 253 || !host.split('.').all(label) {
        return Err("is not a host name".into());
    }
    // A name whose last label is a number is an IPv4 address, in one of its spellings.
    let last = host.rsplit('.').next().unwrap_or_default();
    let hexadecimal = last.strip_prefix("0x");
    if last.bytes().all(|c| c.is_ascii_digit())
        || hexadecimal.is_some_and(|digits| digits.bytes().all(|c| c.is_ascii_hexdigit()))
    {
        return Err("is an address; give a host name".into());
    }
    Ok(host)
}

/// The address of an image that may be fetched, without its fragment. Fails with the reason.
pub fn parse(url: &str, hosts: &[String]) -> Result<Uri, String> {
    if url.len() > LONGEST_URL {
        return Err(format!("has more than {LONGEST_URL} characters"));
    }
    if !url.bytes().all(|c| c.is_ascii_graphic() && c != b'\\') {
        return Err(
            "has a space, a backslash, a control character or a character outside ASCII; percent-encode it".into(),
        );
    }
    let Some(rest) = after_scheme(url) else {
        return Err("must start with https://".into());
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    if authority.contains('@') {
        return Err("must not contain a user name".into());
    }
    let host = match authority.split_once(':') {
        // Also "[::1]": an address in brackets.
        Some((host, port)) if port != "443" || host.is_empty() => {
            return Err("must name a host by its name, on port 443".into());
        }
        Some((host, _)) => host,
        None => authority,
    };
    let host = host.to_ascii_lowercase();
    if !hosts.contains(&host) {
        return Err("its host is not one of --allowed-media-domains".into());
    }
    let path = path.split('#').next().unwrap_or_default();
    let slash = if path.starts_with('/') { "" } else { "/" };
    let uri: Uri = format!("https://{host}{slash}{path}")
        .parse()
        .map_err(|error| format!("is not a valid URL: {error}"))?;
    // What connects and names the server to TLS reads this.
    if uri.host() != Some(host.as_str()) || uri.port().is_some() {
        return Err("is not a valid URL".into());
    }
    Ok(uri)
}

fn after_scheme(url: &str) -> Option<&str> {
    let (scheme, rest) = url.split_once("://")?;
    scheme.eq_ignore_ascii_case("https").then_some(rest)
}
