//! Chat templates: minijinja configured as transformers configures Jinja.

use crate::border::{Failure, Status};
use crate::{json_dumps, python, template_guard, template_source};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, Error, ErrorKind, Value};
use std::io;

const NAME: &str = "chat_template";

/// Mirrors `octavo_template_limits` in the header.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Limits {
    pub output_bytes: u64,
    pub stack_bytes: u64,
}

pub struct Template {
    environment: Environment<'static>,
    limits: Limits,
}

/// Marks an error that the template itself raised.
#[derive(Debug)]
struct Raised(String);

impl std::fmt::Display for Raised {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Raised {}

fn raise_exception(message: &Value) -> Result<Value, Error> {
    let message = message.to_string();
    Err(Error::new(ErrorKind::InvalidOperation, message.clone()).with_source(Raised(message)))
}

impl Template {
    pub fn new(source: &str, limits: Limits) -> Result<Template, Failure> {
        let mut environment = environment().map_err(Failure::refused)?;
        let prepared = template_source::prepare(source);
        on_large_stack(limits, || environment.add_template_owned(NAME, prepared))
            .map_err(Failure::refused)?;
        Ok(Template {
            environment,
            limits,
        })
    }

    /// `context` is a JSON object with the template's variables.
    pub fn render(&self, context: &[u8], steps: u64) -> Result<String, Failure> {
        let context: serde_json::Value =
            serde_json::from_slice(context).map_err(Failure::refused)?;
        on_large_stack(self.limits, || {
            let mut out = BoundedText {
                text: Vec::new(),
                capacity: usize::try_from(self.limits.output_bytes).unwrap_or(usize::MAX),
            };
            // Fuel belongs to the environment; a clone shares the compiled template.
            let mut environment = self.environment.clone();
            environment.set_fuel(Some(steps));
            template_guard::begin(steps);
            environment
                .get_template(NAME)
                .and_then(|template| {
                    template.render_captured_to(Value::from(Serde(context)), &mut out)
                })
                .map_err(|error| failure(&error))?;
            String::from_utf8(out.text).map_err(Failure::refused)
        })
    }
}

/// A template can nest values (`x = [x]`) once per step, and values are dropped, printed and compared
/// recursively, which would overflow the caller's stack.
fn on_large_stack<T>(limits: Limits, body: impl FnOnce() -> T) -> T {
    let bytes = usize::try_from(limits.stack_bytes).unwrap_or(usize::MAX);
    stacker::grow(bytes, body)
}

fn environment() -> Result<Environment<'static>, Error> {
    let mut env = Environment::new();
    env.set_syntax(
        SyntaxConfig::builder()
            .trim_blocks(true)
            .lstrip_blocks(true)
            .build()?,
    );
    env.set_auto_escape_callback(|_| AutoEscape::None);
    env.set_debug(false);
    env.set_unknown_method_callback(python::call_method);
    env.set_formatter(|out, state, value| match python::as_float(value) {
        Some(float) => out
            .write_str(&python::float_repr(float))
            .map_err(Error::from),
        None => minijinja::escape_formatter(out, state, value),
    });
    env.add_filter("tojson", json_dumps::tojson);
    env.add_filter("trim", python::trim);
    env.add_filter("indent", template_guard::indent);
    env.add_filter("format", template_guard::format);
    env.add_filter(template_guard::STORE, template_guard::store);
    env.add_filter(
        template_guard::STORE_ATTRIBUTE,
        template_guard::store_attribute,
    );
    env.add_test("sequence", python::is_sequence);
    env.add_test("iterable", python::is_iterable);
    env.add_function("raise_exception", raise_exception);
    env.add_function("strftime_now", python::strftime_now);
    Ok(env)
}

/// An error inside a macro or a call is wrapped, so the whole chain is searched.
fn failure(error: &Error) -> Failure {
    let mut link: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(cause) = link {
        if let Some(raised) = cause.downcast_ref::<Raised>() {
            return Failure {
                status: Status::Raised,
                message: raised.0.clone(),
            };
        }
        let kind = cause.downcast_ref::<Error>().map(Error::kind);
        if matches!(kind, Some(ErrorKind::OutOfFuel | ErrorKind::WriteFailure)) {
            return Failure {
                status: Status::Limit,
                message: match kind {
                    Some(ErrorKind::OutOfFuel) => "the template exceeds the limit on steps".into(),
                    _ => "the rendered text exceeds the limit on its size".into(),
                },
            };
        }
        link = cause.source();
    }
    Failure::refused(error)
}

struct BoundedText {
    text: Vec<u8>,
    capacity: usize,
}

impl io::Write for BoundedText {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() > self.capacity - self.text.len() {
            return Err(io::Error::other("too long"));
        }
        self.text.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn render(source: &str, context: &str) -> Result<String, Failure> {
        let limits = Limits {
            output_bytes: 1000,
            stack_bytes: 64 << 20,
        };
        Template::new(source, limits)?.render(context.as_bytes(), 100_000)
    }

    #[test]
    fn raise_exception_inside_a_macro_keeps_its_message() {
        let source = "{% macro m() %}{{ raise_exception('no ' ~ x) }}{% endmacro %}{{ m() }}";
        let failure = render(source, r#"{"x": "system"}"#).unwrap_err();
        assert_eq!(failure.status, Status::Raised);
        assert_eq!(failure.message, "no system");
    }

    #[test]
    fn steps_and_output_are_bounded() {
        for source in [
            "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
            "{% for i in range(2000) %}x{% endfor %}",
        ] {
            assert_eq!(render(source, "{}").unwrap_err().status, Status::Limit);
        }
    }

    #[test]
    fn assigned_values_are_bounded() {
        for source in [
            "{% set x = 'ab' %}HERE".replace("HERE", &"{% set x = x ~ x %}".repeat(40)),
            "{% set n = namespace() %}{% set n.x = n %}{{ n }}".into(),
            "{{ '%999999999d'|format(1) }}".into(),
            "{{ '%-*d'|format(999999999, 1) }}".into(),
            "{{ '{:>999999999}'.format(1) }}".into(),
            "{{ 'a\nb'|indent(999999999) }}{{ 'a\nb'|indent(width=999999999) }}".into(),
            "{% set n = namespace() %}{% set n.x = [{'a': n}] %}{{ n }}".into(),
            "{% set n = namespace() %}{% set n.x|default(n, true) %}{% endset %}{{ n }}".into(),
            "{% set n = namespace(x=[]) %}{% for i in range(999) %}{% set n.x = [n.x] %}{% endfor %}"
                .into(),
        ] {
            render(&source, "{}").unwrap_err();
        }
        let slices = "{% set n = namespace(x=[1]) %}{% for i in range(2000) %}\
                      {% set n.x = n.x[0:] + [i] %}{% set n.x = n.x[1:] %}{% endfor %}{{ n.x }}";
        assert_eq!(render(slices, "{}").unwrap(), "[1999]");
    }

    #[test]
    fn json_is_written_as_python_writes_it() {
        assert_eq!(
            render(
                "{{ x|tojson }}",
                r#"{"x": {"b": [1, 2.0, "é\n"], "a": null}}"#
            )
            .unwrap(),
            r#"{"b": [1, 2.0, "é\n"], "a": null}"#
        );
    }
}
