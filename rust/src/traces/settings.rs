//! Settings of the exporter: the endpoint of the command line, and OpenTelemetry's environment variables as far as the
//! SDK does not read them itself, or would ignore a mistake in them.

use std::time::Duration;

use super::log::Log;

pub const SERVICE_NAME: &str = "octavo";

const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

pub type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The process's own; an empty value counts as none.
pub fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

pub fn is_disabled(env: Environment) -> bool {
    env("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true"))
}

/// The URL that spans are sent to: an endpoint without a path gets OTLP's default path.
pub fn traces_url(endpoint: &str) -> Result<String, String> {
    let rest = endpoint
        .strip_prefix("http://")
        .or_else(|| endpoint.strip_prefix("https://"));
    let host = rest.and_then(|rest| rest.split(['/', '?', '#']).next());
    let Some(host) = host.filter(|host| !host.is_empty()) else {
        return Err(format!(
            "{endpoint}: octavo sends traces over HTTP; give the collector's HTTP address, for example \
             http://localhost:4318/v1/traces"
        ));
    };
    let path = rest.unwrap_or_default().strip_prefix(host);
    Ok(match path {
        Some("") => format!("{endpoint}/v1/traces"),
        Some("/") => format!("{endpoint}v1/traces"),
        _ => endpoint.to_string(),
    })
}

/// Without a user name and password, for the log.
pub fn shown(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else {
        return url.to_string();
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let host = rest[..end].rsplit('@').next().unwrap_or_default();
    let path = rest[end..].split(['?', '#']).next().unwrap_or_default();
    format!("{scheme}://{host}{path}")
}

/// Of one attempt to send, and of all attempts for one batch.
pub fn timeout(env: Environment) -> Duration {
    for_traces(env, "TIMEOUT")
        .and_then(|(_, value)| value.parse().ok())
        .map_or(DEFAULT_TIMEOUT, Duration::from_millis)
}

pub fn names_service(env: Environment) -> bool {
    let listed = |list: String| {
        list.split(',').any(|pair| {
            let name = pair.split_once('=').map(|(name, _)| name.trim());
            name == Some("service.name")
        })
    };
    env("OTEL_SERVICE_NAME").is_some() || env("OTEL_RESOURCE_ATTRIBUTES").is_some_and(listed)
}

/// Refuses variables that this exporter cannot follow, and warns about those whose value has no meaning.
pub fn check(env: Environment, log: &Log) -> Result<(), String> {
    if let Some((name, value)) = for_traces(env, "PROTOCOL")
        && value != "http/protobuf"
    {
        return Err(format!(
            "{name}={value}: octavo sends traces as http/protobuf only; unset it, or set \
             OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=http/protobuf, and give the collector's HTTP address (port 4318)"
        ));
    }
    if let Some((name, value)) = for_traces(env, "COMPRESSION")
        && value != "none"
    {
        return Err(format!(
            "{name}={value}: octavo does not compress traces; unset it, or set \
             OTEL_EXPORTER_OTLP_TRACES_COMPRESSION=none"
        ));
    }
    check_sampler(env, log);
    Ok(())
}

fn check_sampler(env: Environment, log: &Log) {
    let Some(sampler) = env("OTEL_TRACES_SAMPLER") else {
        return;
    };
    let names = ["always_on", "always_off", "traceidratio"];
    let base = sampler.strip_prefix("parentbased_").unwrap_or(&sampler);
    if !names.contains(&base) {
        log.warn(&format!(
            "OTEL_TRACES_SAMPLER={sampler} is not supported, so parentbased_always_on is used; choose one of {}, \
             or parentbased_ with one of them",
            names.join(", ")
        ));
        return;
    }
    let ratio = env("OTEL_TRACES_SAMPLER_ARG").and_then(|value| value.parse::<f64>().ok());
    if base == "traceidratio" && !ratio.is_some_and(|ratio| (0.0..=1.0).contains(&ratio)) {
        log.warn(&format!(
            "OTEL_TRACES_SAMPLER={sampler} needs OTEL_TRACES_SAMPLER_ARG between 0 and 1; all traces are sampled"
        ));
    }
}

/// OTEL_EXPORTER_OTLP_TRACES_WHAT, otherwise OTEL_EXPORTER_OTLP_WHAT.
fn for_traces(env: Environment, what: &str) -> Option<(String, String)> {
    let names = [
        format!("OTEL_EXPORTER_OTLP_TRACES_{what}"),
        format!("OTEL_EXPORTER_OTLP_{what}"),
    ];
    names
        .into_iter()
        .find_map(|name| env(&name).map(|value| (name, value)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    fn env(pairs: &'static [(&str, &str)]) -> impl Fn(&str) -> Option<String> {
        move |name| {
            let found = pairs.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| value.to_string())
        }
    }

    fn checked(pairs: &'static [(&str, &str)]) -> (Result<(), String>, Vec<String>) {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let kept = lines.clone();
        let log = Log::new(move |_, line| kept.lock().unwrap().push(line.to_string()));
        let result = check(&env(pairs), &log);
        (result, lines.lock().unwrap().clone())
    }

    #[test]
    fn an_endpoint_without_a_path_gets_the_default_path() {
        let url = |endpoint| traces_url(endpoint).unwrap();
        assert_eq!(url("http://a:4318"), "http://a:4318/v1/traces");
        assert_eq!(url("http://a:4318/"), "http://a:4318/v1/traces");
        assert_eq!(url("https://a/otlp/x"), "https://a/otlp/x");
        for wrong in [
            "grpc://a:4317",
            "a:4317",
            "http://",
            "http:///v1/traces",
            "",
        ] {
            assert!(traces_url(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn passwords_are_not_shown() {
        assert_eq!(
            shown("https://me:secret@a:1/v1/traces?key=secret"),
            "https://a:1/v1/traces"
        );
    }

    #[test]
    fn the_variable_for_traces_takes_precedence() {
        let both = env(&[
            ("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "300"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "700"),
        ]);
        assert_eq!(timeout(&both), Duration::from_millis(300));
        let general = env(&[("OTEL_EXPORTER_OTLP_TIMEOUT", "700")]);
        assert_eq!(timeout(&general), Duration::from_millis(700));
        assert_eq!(timeout(&env(&[])), DEFAULT_TIMEOUT);
    }

    #[test]
    fn protocols_and_compression_that_do_not_exist_here_are_refused() {
        assert!(
            checked(&[("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")])
                .0
                .is_err()
        );
        assert!(
            checked(&[("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")])
                .0
                .is_err()
        );
        let (result, lines) = checked(&[
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
            ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/protobuf"),
            ("OTEL_EXPORTER_OTLP_COMPRESSION", "none"),
        ]);
        assert!(result.is_ok() && lines.is_empty());
    }

    #[test]
    fn samplers_without_meaning_are_warned_about() {
        assert_eq!(checked(&[("OTEL_TRACES_SAMPLER", "xray")]).1.len(), 1);
        assert_eq!(
            checked(&[("OTEL_TRACES_SAMPLER", "traceidratio")]).1.len(),
            1
        );
        let (_, lines) = checked(&[
            ("OTEL_TRACES_SAMPLER", "parentbased_traceidratio"),
            ("OTEL_TRACES_SAMPLER_ARG", "0.25"),
        ]);
        assert!(lines.is_empty());
    }

    #[test]
    fn the_service_may_have_a_name_in_two_variables() {
        assert!(!names_service(&env(&[("OTEL_RESOURCE_ATTRIBUTES", "a=1")])));
        assert!(names_service(&env(&[(
            "OTEL_RESOURCE_ATTRIBUTES",
            "a=1, service.name=x"
        )])));
        assert!(names_service(&env(&[("OTEL_SERVICE_NAME", "x")])));
    }
}
