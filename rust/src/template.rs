//! Chat templates: minijinja configured as transformers configures Jinja.

use crate::border::{Failure, Status};
use crate::template_budget::{self, Exceeded, Stopped};
use crate::{
    json_dumps, python, template_code, template_constants, template_guard, template_slice,
    template_source,
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
    env.add_filter(template_slice::BACKWARDS, template_slice::backwards);
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
    add("count", Value::from_function(python::length));
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
    add("items", Value::from_function(python::items));
    add("join", Value::from_function(filters::join));
    add("last", Value::from_function(filters::last));
    add("length", Value::from_function(python::length));
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
#[path = "template_tests.rs"]
mod tests;
