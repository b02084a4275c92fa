//! Selects the proxy from the environment by the URL's scheme, as curl and Python do.

use ureq::Proxy;

/// `scheme` is "http" or "https". None: connect directly.
pub fn proxy_for(scheme: &str) -> Result<Option<Proxy>, String> {
    choose(scheme, |name| std::env::var(name).ok())
}

fn choose(scheme: &str, env: impl Fn(&str) -> Option<String>) -> Result<Option<Proxy>, String> {
    let first = |names: &[String]| {
        let filled = |name: &String| env(name).filter(|value| !value.is_empty());
        names.iter().find_map(filled)
    };
    let both_cases = |name: &str| [name.to_lowercase(), name.to_uppercase()];
    let names = [
        both_cases(&format!("{scheme}_proxy")),
        both_cases("all_proxy"),
    ];
    let Some(url) = first(&names.concat()) else {
        return Ok(None);
    };
    let bad = |_| format!("the proxy {url} in the environment is not a valid proxy URL");
    let parsed = Proxy::new(&url).map_err(bad)?;
    let mut builder = Proxy::builder(parsed.protocol())
        .host(parsed.host())
        .port(parsed.port());
    if let Some(user) = parsed.username() {
        builder = builder.username(user);
    }
    if let Some(password) = parsed.password() {
        builder = builder.password(password);
    }
    if let Some(list) = first(&both_cases("no_proxy")) {
        for host in list.split(',').map(str::trim).filter(|h| !h.is_empty()) {
            builder = builder.no_proxy(host);
        }
    }
    builder.build().map(Some).map_err(bad)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(scheme: &str, env: &[(&str, &str)]) -> Option<Proxy> {
        let look_up = |name: &str| {
            let found = env.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| value.to_string())
        };
        choose(scheme, look_up).unwrap()
    }

    #[test]
    fn each_scheme_has_its_own_and_all_proxy_is_for_both() {
        let env = [
            ("HTTPS_PROXY", "http://secure:1"),
            ("ALL_PROXY", "http://all:2"),
        ];
        assert_eq!(chosen("https", &env).unwrap().host(), "secure");
        assert_eq!(chosen("http", &env).unwrap().host(), "all");
        assert!(chosen("https", &[("HTTP_PROXY", "http://plain:1")]).is_none());
        assert!(chosen("https", &[("HTTPS_PROXY", "")]).is_none());
    }

    #[test]
    fn no_proxy_names_hosts_that_are_reached_directly() {
        let env = [
            ("https_proxy", "http://user:word@proxy:8080"),
            ("NO_PROXY", "localhost, .example.org"),
        ];
        let proxy = chosen("https", &env).unwrap();
        assert_eq!(
            (proxy.port(), proxy.username(), proxy.password()),
            (8080, Some("user"), Some("word"))
        );
        assert!(proxy.is_no_proxy(&"https://localhost/x".parse().unwrap()));
        assert!(proxy.is_no_proxy(&"https://hub.example.org/x".parse().unwrap()));
        assert!(!proxy.is_no_proxy(&"https://huggingface.co/x".parse().unwrap()));
    }
}
