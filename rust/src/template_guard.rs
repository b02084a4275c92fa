//! Checks the values that a template assigns, because a limit on steps does not bound them: a string
//! can double in each of forty steps, a list be copied in each of a hundred thousand, a namespace
//! contain itself.
//!
//! `template_source` passes every assigned value through one of these filters.

use minijinja::value::{DynObject, Kwargs, Rest, StringInput, ValueKind, ValueOrKwargs};
use minijinja::{Error, ErrorKind, State, Value};
use std::cell::Cell;

pub const STORE: &str = "octavo_store";
pub const STORE_ATTRIBUTE: &str = "octavo_store_attribute";

const WORK_PER_STEP: u64 = 64;
const MAX_DEPTH: usize = 200;
const MAX_WIDTH: usize = 1000;

thread_local! {
    // A rendering runs on one thread from start to end.
    static WORK_LEFT: Cell<u64> = const { Cell::new(0) };
}

pub fn begin(steps: u64) {
    WORK_LEFT.set(steps.saturating_mul(WORK_PER_STEP));
}

fn spend(work: usize) -> Result<(), Error> {
    match WORK_LEFT.get().checked_sub(work as u64) {
        Some(left) => {
            WORK_LEFT.set(left);
            Ok(())
        }
        None => Err(Error::from(ErrorKind::OutOfFuel)),
    }
}

/// For `set x = value`.
pub fn store(value: &Value) -> Result<Value, Error> {
    if let Some(text) = value.as_str() {
        spend(text.len() / 8)?;
    }
    // A slice or a sum is a view of its operands, and reading nested views costs their depth.
    let value = match value.kind() {
        ValueKind::Iterable if value.len().is_some() => list(value)?,
        _ => value.clone(),
    };
    walk(&value, false, 0)?;
    Ok(value)
}

/// For `set namespace.x = value`. Namespaces are the only mutable values, so refusing to nest them
/// rules out cycles.
pub fn store_attribute(value: &Value) -> Result<Value, Error> {
    let value = match value.kind() {
        ValueKind::Iterable => list(value)?,
        _ => store(value)?,
    };
    walk(&value, true, 0)?;
    Ok(value)
}

fn list(value: &Value) -> Result<Value, Error> {
    let mut items = Vec::new();
    for item in value.try_iter()?.checked() {
        spend(1)?;
        items.push(item?);
    }
    Ok(Value::from(items))
}

fn walk(value: &Value, refuse_namespaces: bool, depth: usize) -> Result<(), Error> {
    spend(1)?;
    if !matches!(
        value.kind(),
        ValueKind::Seq | ValueKind::Map | ValueKind::Iterable
    ) {
        return Ok(());
    }
    if depth == MAX_DEPTH {
        return Err(refusal("a value is nested too deeply"));
    }
    let namespace = value.as_object().is_some_and(is_namespace);
    if namespace && refuse_namespaces {
        return Err(refusal("a namespace cannot contain a namespace"));
    }
    if value.len().is_none() {
        return Ok(()); // reading a one-shot iterator would exhaust it
    }
    for item in value.try_iter()?.checked() {
        let item = item?;
        if value.kind() == ValueKind::Map {
            walk(&value.get_item(&item)?, refuse_namespaces, depth + 1)?;
        } else {
            walk(&item, refuse_namespaces, depth + 1)?;
        }
    }
    Ok(())
}

/// The `indent` filter with a limit on the width.
pub fn indent(
    value: StringInput<'_>,
    width: Option<usize>,
    first: Option<bool>,
    blank: Option<bool>,
    kwargs: Kwargs,
) -> Result<Value, Error> {
    let named: Option<usize> = kwargs.peek("width")?;
    if width.or(named).is_some_and(|width| width > MAX_WIDTH) {
        return Err(refusal("an indentation is too wide"));
    }
    minijinja::filters::indent(value, width, first, blank, kwargs)
}

/// The `format` filter with a limit on field widths.
pub fn format(
    state: &mut State,
    pattern: &Value,
    args: Rest<ValueOrKwargs>,
) -> Result<Value, Error> {
    check_widths(pattern)?;
    minijinja::filters::format(state, pattern, args)
}

/// A width of five digits is of no use, and one of nine would allocate a gigabyte.
pub fn check_widths(pattern: &Value) -> Result<(), Error> {
    let text = pattern.as_str().unwrap_or_default();
    let wide = |part: &str| part.len() > 4 && part.trim_start_matches('0').len() > 3;
    // A width taken from an argument: "%*d", "%-5.*f".
    let from_argument = |field: &str| {
        let rest = field.trim_start_matches(|c: char| "-+ #.".contains(c) || c.is_ascii_digit());
        rest.starts_with('*')
    };
    let mut digits = text.split(|c: char| !c.is_ascii_digit());
    if digits.any(wide) || text.split('%').skip(1).any(from_argument) {
        return Err(refusal("a field of the format string is too wide"));
    }
    Ok(())
}

fn is_namespace(object: &DynObject) -> bool {
    object.type_name().ends_with("::Namespace")
}

fn refusal(why: &'static str) -> Error {
    Error::new(ErrorKind::InvalidOperation, why)
}
