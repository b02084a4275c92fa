//! Chat templates: minijinja configured as transformers configures Jinja.

use crate::border::{Failure, Status};
use crate::template_budget::{self, Exceeded, Stopped};
use crate::{
    json_dumps, python, template_code, template_constants, template_guard, template_source,
};
use minijinja::machinery::{self, CompiledTemplate, Instructions, TemplateConfig};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Rest, Serde, ValueOrKwargs};
use minijinja::{AutoEscape, Environment, Error, ErrorKind, State, Value, filters};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

const NAME: &str = "chat_template";

/// Mirrors `octavo_template_limits` in the header.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Limits {
    pub output_bytes: u64,
    pub stack_bytes: u64,
}

pub struct Template {
    // Before `source`, which they point into.
    code: Instructions<'static>,
    blocks: BTreeMap<&'static str, Instructions<'static>>,
    environment: Environment<'static>,
    limits: Limits,
    _source: Box<str>,
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
        let syntax = syntax().map_err(Failure::refused)?;
        let source = template_source::prepare(source).into_boxed_str();
        template_constants::check(&source, &syntax)?;
        // SAFETY: the text is on the heap, does not change, and is freed after everything that points
        // into it: fields are dropped in the order of their declaration.
        let text: &'static str = unsafe { &*std::ptr::from_ref::<str>(&source) };
        let config = TemplateConfig {
            syntax_config: syntax.clone(),
            default_auto_escape: Arc::new(|_| AutoEscape::None),
        };
        let (code, blocks) = on_large_stack(limits, || {
            let compiled = CompiledTemplate::new(NAME, text, &config).map_err(Failure::refused)?;
            let blocks = compiled.blocks.iter();
            let blocks = blocks.map(|(name, code)| (*name, template_code::with_checks(code)));
            Ok((
                template_code::with_checks(&compiled.instructions),
                blocks.collect(),
            ))
        })?;
        Ok(Template {
            code,
            blocks,
            environment: environment(syntax),
            limits,
            _source: source,
        })
    }

    /// `context` is a JSON object with the template's variables. Ends soon after `stop` is set.
    pub fn render(
        &self,
        context: &[u8],
        steps: u64,
        stop: Option<&AtomicBool>,
    ) -> Result<String, Failure> {
        let context_bytes = context.len();
        let context: serde_json::Value =
            serde_json::from_slice(context).map_err(Failure::refused)?;
        on_large_stack(self.limits, || {
            // Fuel belongs to the environment.
            let mut environment = self.environment.clone();
            environment.set_fuel(Some(steps));
            let _budget = template_budget::Scope::begin(steps, context_bytes, stop);
            let mut text = String::new();
            let root = Value::from(Serde(context));
            self.run(&environment, root, &mut text)
                .map_err(|error| failure(&error, steps))?;
            if text.len() as u64 > self.limits.output_bytes {
                return Err(Failure {
                    status: Status::Limit,
                    message: "the rendered text exceeds the limit on its size".into(),
                });
            }
            Ok(text)
        })
    }

    fn run<'a>(
        &'a self,
        environment: &'a Environment<'a>,
        root: Value,
        text: &mut String,
    ) -> Result<(), Error> {
        let mut out = machinery::make_string_output(text);
        machinery::eval(
            environment,
            &self.code,
            root,
            &self.blocks,
            &mut out,
            AutoEscape::None,
        )
        .map(|_| ())
    }
}

/// A template can nest values (`x = [x]`) once per step, and values are dropped, printed and compared
/// recursively, which would overflow the caller's stack.
fn on_large_stack<T>(limits: Limits, body: impl FnOnce() -> T) -> T {
    let bytes = usize::try_from(limits.stack_bytes).unwrap_or(usize::MAX);
    stacker::grow(bytes, body)
}

fn syntax() -> Result<SyntaxConfig, Error> {
    SyntaxConfig::builder()
        .trim_blocks(true)
        .lstrip_blocks(true)
        .build()
}

fn environment(syntax: SyntaxConfig) -> Environment<'static> {
    let mut env = Environment::new();
    env.set_syntax(syntax);
    env.set_auto_escape_callback(|_| AutoEscape::None);
    env.set_debug(false);
    env.set_unknown_method_callback(python::call_method);
    env.set_formatter(|out, state, value| {
        template_guard::printed(value)?;
        match python::as_float(value) {
            Some(float) => out
                .write_str(&python::float_repr(float))
                .map_err(Error::from),
            None => minijinja::escape_formatter(out, state, value),
        }
    });
    add_filters(&mut env);
    env.add_filter(template_guard::MADE, template_guard::made);
    env.add_filter(template_guard::SLICED, template_guard::sliced);
    env.add_filter(template_guard::BUILT, template_guard::built);
    env.add_filter(template_guard::CONCAT, template_guard::concat);
    env.add_filter(template_guard::MULTIPLIED, template_guard::multiplied);
    env.add_filter(template_guard::COMPARED, template_guard::compared);
    env.add_filter(template_guard::STORED, template_guard::stored);
    env.add_filter(template_guard::ATTRIBUTE, template_guard::attribute);
    env.add_test("sequence", python::is_sequence);
    env.add_test("iterable", python::is_iterable);
    env.add_function("raise_exception", raise_exception);
    env.add_function("strftime_now", python::strftime_now);
    env.remove_global("debug"); // Jinja has no such function, and it prints all variables
    env
}

/// All filters of minijinja, ours where transformers' differ, with the checks on their arguments and
/// results. Filters that call others (`map`) find these too.
fn add_filters(env: &mut Environment<'static>) {
    let mut add = |name: &'static str, filter: Value| {
        env.add_filter(
            name,
            move |state: &mut State, args: Rest<ValueOrKwargs>| -> Result<Value, Error> {
                let args = args.into_values();
                template_guard::before_call(name, &args)?;
                let result = filter.call(state, &args)?;
                template_guard::after_call(name, &result)?;
                Ok(result)
            },
        );
    };
    add("abs", Value::from_function(filters::abs));
    add("attr", Value::from_function(filters::attr));
    add("batch", Value::from_function(filters::batch));
    add("bool", Value::from_function(filters::bool));
    add("capitalize", Value::from_function(filters::capitalize));
    add("chain", Value::from_function(filters::chain));
    add("count", Value::from_function(filters::length));
    add("d", Value::from_function(filters::default));
    add("default", Value::from_function(filters::default));
    add("dictsort", Value::from_function(filters::dictsort));
    add("e", Value::from_function(filters::escape));
    add("escape", Value::from_function(filters::escape));
    add("first", Value::from_function(filters::first));
    add("float", Value::from_function(filters::float));
    add("format", Value::from_function(filters::format));
    add("groupby", Value::from_function(filters::groupby));
    add("indent", Value::from_function(filters::indent));
    add("int", Value::from_function(filters::int));
    add("items", Value::from_function(filters::items));
    add("join", Value::from_function(filters::join));
    add("last", Value::from_function(filters::last));
    add("length", Value::from_function(filters::length));
    add("lines", Value::from_function(filters::lines));
    add("list", Value::from_function(filters::list));
    add("lower", Value::from_function(filters::lower));
    add("map", Value::from_function(filters::map));
    add("max", Value::from_function(filters::max));
    add("min", Value::from_function(filters::min));
    add("pprint", Value::from_function(filters::pprint));
    add("reject", Value::from_function(filters::reject));
    add("rejectattr", Value::from_function(filters::rejectattr));
    add("replace", Value::from_function(filters::replace));
    add("reverse", Value::from_function(filters::reverse));
    add("round", Value::from_function(filters::round));
    add("safe", Value::from_function(filters::safe));
    add("select", Value::from_function(filters::select));
    add("selectattr", Value::from_function(filters::selectattr));
    add("slice", Value::from_function(filters::slice));
    add("sort", Value::from_function(filters::sort));
    add("split", Value::from_function(filters::split));
    add("string", Value::from_function(filters::string));
    add("sum", Value::from_function(filters::sum));
    add("title", Value::from_function(filters::title));
    add("tojson", Value::from_function(json_dumps::tojson));
    add("trim", Value::from_function(python::trim));
    add("unique", Value::from_function(filters::unique));
    add("upper", Value::from_function(filters::upper));
    add("zip", Value::from_function(filters::zip));
}

/// An error inside a macro or a call is wrapped, so the whole chain is searched.
fn failure(error: &Error, steps: u64) -> Failure {
    let mut link: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(cause) = link {
        if let Some(raised) = cause.downcast_ref::<Raised>() {
            return Failure {
                status: Status::Raised,
                message: raised.0.clone(),
            };
        }
        if let Some(exceeded) = cause.downcast_ref::<Exceeded>() {
            return Failure {
                status: Status::Limit,
                message: exceeded.0.clone(),
            };
        }
        if cause.downcast_ref::<Stopped>().is_some() {
            return Failure {
                status: Status::Stopped,
                message: "the rendering was stopped".into(),
            };
        }
        let kind = cause.downcast_ref::<Error>().map(Error::kind);
        if matches!(kind, Some(ErrorKind::OutOfFuel)) {
            return Failure {
                status: Status::Limit,
                message: format!("the chat template took more than {steps} steps"),
            };
        }
        link = cause.source();
    }
    Failure::refused(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn render(source: &str, context: &str) -> Result<String, Failure> {
        let limits = Limits {
            output_bytes: 1000,
            stack_bytes: 64 << 20,
        };
        Template::new(source, limits)?.render(context.as_bytes(), 100_000, None)
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
        for (source, message) in [
            (
                "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
                "the chat template took more than 100000 steps",
            ),
            (
                "{% for i in range(2000) %}x{% endfor %}",
                "the rendered text exceeds the limit on its size",
            ),
        ] {
            let failure = render(source, "{}").unwrap_err();
            assert_eq!(failure.status, Status::Limit);
            assert_eq!(failure.message, message);
        }
    }

    /// Values that double forty times, by every construct that can carry one value to the next.
    #[test]
    fn values_that_double_are_refused() {
        let nested = |open: &str, close: &str| {
            format!(
                "{{% set x = 'ab' %}}{}{{{{ x|length }}}}{}",
                open.repeat(40),
                close.repeat(40)
            )
        };
        let grown = |by: &str| {
            format!("{{% set n = namespace(x='ab') %}}{{% for i in range(60) %}}{by}{{% endfor %}}")
        };
        for source in [
            nested("{% set x = x ~ x %}", ""),
            nested("{% set x %}{{ x }}{{ x }}{% endset %}", ""),
            nested("{% set x = x + x %}", ""),
            nested("{% set x = x * 2 %}", ""),
            nested("{% set x = [x, x]|join %}", ""),
            nested("{% set x = x|replace('a', 'aa')|replace('b', 'bb') %}", ""),
            nested("{% set x = x.replace('', x) %}", ""),
            nested("{% set x = x.join([x, x]) %}", ""),
            nested("{% set x = '%s%s'|format(x, x) %}", ""),
            nested("{% set x = '{}{}'.format(x, x) %}", ""),
            nested("{% with x = x ~ x %}", "{% endwith %}"),
            nested("{% for x in [x ~ x] %}", "{% endfor %}"),
            nested("{% filter replace('a', 'aa') %}", "{% endfilter %}")
                .replace("{{ x|length }}", "a"),
            grown("{% set n.x = n.x ~ n.x %}"),
            grown("{% set n.x %}{{ n.x }}{{ n.x }}{% endset %}"),
            grown("{% set n.x = [n.x, n.x]|map('string')|list|tojson %}"),
            "{% macro m(x, d) %}{% if d %}{{ m(x ~ x, d - 1) }}{% endif %}{% endmacro %}{{ m('ab', 60) }}"
                .into(),
        ] {
            let start = std::time::Instant::now();
            let failure = render(&source, "{}").unwrap_err();
            assert_eq!(failure.status, Status::Limit, "{source}: {}", failure.message);
            assert!(start.elapsed().as_secs() < 5, "{source}");
        }
    }

    #[test]
    fn a_limit_is_named() {
        let source = format!("{{% set x = 'ab' %}}{}", "{% set x = x ~ x %}".repeat(40));
        assert_eq!(
            render(&source, "{}").unwrap_err().message,
            "the chat template made more than 64 MiB of text"
        );
    }

    #[test]
    fn large_values_of_one_step_are_refused() {
        for source in [
            "{% set n = 9999 %}{{ (('x' * n) * n)|length }}",
            "{% set n = 99999999 %}{{ ((1,) * n)|length }}",
            "{% set n = 99999999 %}{{ ([1] * n)|list|length }}",
            "{{ [1]|batch(99999999, 0)|list|length }}",
            "{{ [1]|slice(99999999)|list|length }}",
            "{{ range(99999)|join('x' * 9999)|length }}",
            "{{ '%999999999d'|format(1) }}",
            "{{ '%-*d'|format(999999999, 1) }}",
            "{{ '{:>999999999}'.format(1) }}",
            "{{ '{:>{}}'.format(1, 999999999) }}",
            "{{ 'a\nb'|indent(999999999) }}",
            "{{ 'a\nb'|indent(width=999999999) }}",
            "{% set x = range(9999)|join %}{% for i in range(9999) %}{% set y %}{{ x }}{% endset %}{% endfor %}",
            "{{ 'x' * 100000000 }}",
            "{{ debug() }}",
            "{% include 'chat_template' %}",
        ] {
            render(source, "{}").unwrap_err();
        }
    }

    #[test]
    fn values_that_hold_themselves_many_times_are_refused() {
        for source in [
            "{% set n = namespace() %}{% set n.x = n %}{{ n }}".to_string(),
            "{% set n = namespace() %}{% set n.x = [{'a': n}] %}{{ n }}".into(),
            "{% set n = namespace() %}{% set n.x|default(n, true) %}{% endset %}{{ n }}".into(),
            "{% set n = namespace(x=[]) %}{% for i in range(999) %}{% set n.x = [n.x] %}{% endfor %}"
                .into(),
            format!("{{% set x = [] %}}{}{{{{ x == x }}}}", "{% set x = [x, x] %}".repeat(60)),
            format!(
                "{{% set x = [] %}}{}{{{{ x == x }}}}{}",
                "{% for x in [[x, x]] %}".repeat(60),
                "{% endfor %}".repeat(60)
            ),
        ] {
            render(&source, "{}").unwrap_err();
        }
        let slices = "{% set n = namespace(x=[1]) %}{% for i in range(2000) %}\
                      {% set n.x = n.x[0:] + [i] %}{% set n.x = n.x[1:] %}{% endfor %}{{ n.x }}";
        assert_eq!(render(slices, "{}").unwrap(), "[1999]");
    }

    #[test]
    fn time_spent_searching_is_bounded() {
        let text = "a".repeat(1 << 20);
        for by in [
            "'b' in x",
            "x == x ~ ''",
            "x.find('b') > 0",
            "x|trim == 'b'",
        ] {
            let source =
                format!("{{% for i in range(9999) %}}{{% if {by} %}}{{% endif %}}{{% endfor %}}");
            let start = std::time::Instant::now();
            let failure = render(&source, &format!(r#"{{"x": "{text}"}}"#)).unwrap_err();
            assert_eq!(failure.status, Status::Limit, "{by}: {}", failure.message);
            assert!(start.elapsed().as_secs() < 10, "{by}");
        }
    }

    #[test]
    fn the_flag_stops_a_rendering() {
        let limits = Limits {
            output_bytes: 1000,
            stack_bytes: 64 << 20,
        };
        let template = Template::new("{% for i in range(9) %}x{% endfor %}", limits).unwrap();
        let stop = AtomicBool::new(true);
        let failure = template.render(b"{}", 100_000, Some(&stop)).unwrap_err();
        assert_eq!(failure.status, Status::Stopped);
        assert_eq!(template.render(b"{}", 100_000, None).unwrap(), "xxxxxxxxx");
    }

    #[test]
    fn checks_do_not_change_results() {
        for (source, expected) in [
            ("{{ 1 + 2 * 3 }}{{ [1] * 2 }}{{ 2 * 'ab' }}", "7[1, 1]abab"),
            (
                "{{ 'a' ~ 1.0 ~ none ~ [1] }}{{ 'abc'[1:] }}",
                "a1.0None[1]bc",
            ),
            (
                "{{ 1 < 2 < 3 }}{{ 'a' in 'abc' }}{{ 3 in [1] }}{{ 5 - 2 * 2 }}",
                "TrueTrueFalse1",
            ),
            (
                "{% for m in [1, 2, 3, 4] if m > 1 and m != 3 %}{{ m }}{{ ',' if not loop.last }}{% endfor %}",
                "2,4",
            ),
            (
                "{% for a, b in [(1, 2), (3, 4)] %}{{ a }}{{ b }}{% else %}none{% endfor %}",
                "1234",
            ),
            (
                "{% for i in range(5) %}{% if i == 3 %}{% break %}{% endif %}{% if i == 1 %}{% continue %}{% endif %}{{ i }}{% endfor %}",
                "02",
            ),
            (
                "{% macro m(a, b='x') %}{{ a }}{{ b }}{% endmacro %}{{ m(1) }}{{ m(1, b=2) }}",
                "1x12",
            ),
            (
                "{% for x in [[1, [2]]] recursive %}{% if x is number %}{{ x }}{% else %}({{ loop(x) }}){% endif %}{% endfor %}",
                "(1(2))",
            ),
            (
                "{% set a, b = 1, 2 %}{{ a }}{{ b }}{% set n = namespace(x=1) %}{% set n.x = n.x + 1 %}{{ n.x }}",
                "122",
            ),
            (
                "{{ [3, 1, 2]|sort|map('string')|join(',') }}{{ {'a': 1}|items|list }}",
                "1,2,3[('a', 1)]",
            ),
            ("{{ x.y is defined }}{{ ('a' or 'b') and 'c' }}", "Falsec"),
        ] {
            assert_eq!(
                render(source, r#"{"x": {}}"#).unwrap(),
                expected,
                "{source}"
            );
        }
    }

    #[test]
    fn filters_take_positional_and_named_arguments() {
        let context =
            r#"{"t": [{"n": "a", "v": 2}, {"n": "b", "v": 1}], "m": {"k": 1}, "s": "a\nb"}"#;
        let mut wrong = Vec::new();
        for (source, expected) in [
            ("{{ m|tojson(indent=2) }}", "{\n  \"k\": 1\n}"),
            (
                "{{ no|default('d') }}{{ ''|default('e', true) }}{{ ''|d('f', true) }}",
                "def",
            ),
            (
                "{{ t|map(attribute='n')|join(', ') }}{{ t|join('-', attribute='n') }}",
                "a, ba-b",
            ),
            ("{{ t|selectattr('n', 'equalto', 'b')|list|length }}", "1"),
            (
                "{{ (t|selectattr('v', '>', 1)|first).n }}{{ (t|sort(attribute='v')|first).n }}",
                "ab",
            ),
            (
                "{{ s|indent(2) }}|{{ s|indent(width=1, first=true) }}",
                "a\n  b| a\n b",
            ),
            (
                "{{ '%s-%d'|format('x', 3) }}{{ '{}{}'.format(1, 'y') }}",
                "x-31y",
            ),
            (
                "{% for k, v in m.items() %}{{ k }}{{ v }}{% endfor %}{{ m.get('k') }}{{ m.get('z', 0) }}",
                "k110",
            ),
            (
                "{% for k, v in m|dictsort %}{{ k }}{{ v }}{% endfor %}{{ m|items|list|length }}",
                "k11",
            ),
            (
                "{{ s.split('\n')[-1] }}{{ s.replace('a', 'c')|upper }}{{ ' x '.strip() }}",
                "bC\nBx",
            ),
            (
                "{{ t[1:]|length }}{{ t[::-1][0].n }}{{ (t + t)|length }}{{ t|last|attr('n') }}",
                "1b4b",
            ),
            (
                "{% filter upper %}x{{ s }}{% endfilter %}{% set b %}y{% endset %}{{ b }}",
                "XA\nBy",
            ),
            (
                "{{ [1, 2, 3]|sum }}{{ [2, 1]|max }}{{ 3.7|int }}{{ '5'|int + 1 }}{{ 2.5|round }}",
                "62362.0",
            ),
            (
                "{{ 'a' 'b' if true }}{{ [1, 2]|batch(1)|list }}{{ 'ab'|list }}",
                "ab[[1], [2]]['a', 'b']",
            ),
        ] {
            let rendered = render(source, context).map_err(|f| f.message);
            if rendered.as_deref() != Ok(expected) {
                wrong.push((source, rendered));
            }
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
    }

    /// Without the checks in the code; the filters have them.
    fn render_plainly(source: &str, context: &str) -> Result<String, Error> {
        let mut environment = environment(syntax()?);
        environment.set_fuel(Some(1_000_000));
        let _budget = template_budget::Scope::begin(1_000_000, context.len(), None);
        environment.add_template_owned(NAME, template_source::prepare(source))?;
        let context: serde_json::Value = serde_json::from_str(context).unwrap_or_default();
        environment
            .get_template(NAME)?
            .render(Value::from(Serde(context)))
    }

    #[test]
    fn checks_do_not_change_what_models_templates_render() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/e2e/templates");
        let chats = [
            r#"[{"role": "user", "content": "hi"}]"#,
            r#"[{"role": "system", "content": " s "}, {"role": "user", "content": "a"},
                {"role": "assistant", "content": "<think>t</think>b", "tool_calls": [{"type": "function",
                 "id": "abcdefghi", "function": {"name": "f", "arguments": {"x": [1, {"y": null}]}}}]},
                {"role": "tool", "content": "7", "name": "f", "tool_call_id": "abcdefghi"},
                {"role": "user", "content": "c"}]"#,
        ];
        let tools = r#"[{"type": "function", "function": {"name": "f", "description": "d", "parameters":
            {"type": "object", "properties": {"x": {"type": "array", "description": "e"}}, "required": []}}}]"#;
        let mut rendered = 0;
        for file in std::fs::read_dir(folder).unwrap() {
            let source = std::fs::read_to_string(file.unwrap().path()).unwrap();
            let limits = Limits {
                output_bytes: 1 << 20,
                stack_bytes: 64 << 20,
            };
            let template = Template::new(&source, limits).unwrap();
            for chat in chats {
                for tools in ["null", tools] {
                    let context = format!(
                        r#"{{"messages": {chat}, "tools": {tools}, "add_generation_prompt": true,
                            "bos_token": "<s>", "eos_token": "</s>"}}"#
                    );
                    let checked = template.render(context.as_bytes(), 1_000_000, None);
                    let plain = render_plainly(&source, &context);
                    match plain {
                        Ok(plain) => assert_eq!(checked.unwrap(), plain),
                        Err(_) => assert_ne!(checked.unwrap_err().status, Status::Limit),
                    }
                    rendered += 1;
                }
            }
        }
        assert!(rendered >= 24);
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
