//! What a template assigns is looked at, because steps alone do not bound it: a string doubled in forty
//! steps, a list copied in each of a hundred thousand, a namespace that holds itself.
//!
//! `template_source` sends every assigned value through one of the filters here.

use minijinja::value::{DynObject, Kwargs, Rest, StringInput, ValueKind, ValueOrKwargs};
use minijinja::{Error, ErrorKind, State, Value};
use std::cell::Cell;

pub const STORE: &str = "octavo_store";
pub const STORE_ATTRIBUTE: &str = "octavo_store_attribute";

const WORK_PER_STEP: u64 = 64;
const MAX_DEPTH: usize = 200;
const MAX_WIDTH: usize = 1000;

thread_local! {
    // A rendering runs on one thread, from start to end.
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
    // A slice or a sum is a view of what it was made from; views of views cost their depth to read.
    let value = match value.kind() {
        ValueKind::Iterable if value.len().is_some() => list(value)?,
        _ => value.clone(),
    };
    walk(&value, false, 0)?;
    Ok(value)
}

/// For `set namespace.x = value`. Namespaces are the only values that change, so keeping them out of
/// each other keeps every value free of cycles.
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
        return Err(refusal("a value is nested too deep"));
    }
    let namespace = value.as_object().is_some_and(is_namespace);
    if namespace && refuse_namespaces {
        return Err(refusal("a namespace cannot hold a namespace"));
    }
    if value.len().is_none() {
        return Ok(()); // reading a one-shot iterator would use it up
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

/// The `indent` filter, for widths that a template can mean.
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

/// The `format` filter, for widths that a template can mean.
pub fn format(
    state: &mut State,
    pattern: &Value,
    args: Rest<ValueOrKwargs>,
) -> Result<Value, Error> {
    check_widths(pattern)?;
    minijinja::filters::format(state, pattern, args)
}

/// A field width of five digits has no use and one of nine allocates a gigabyte.
pub fn check_widths(pattern: &Value) -> Result<(), Error> {
    let text = pattern.as_str().unwrap_or_default();
    let wide = |part: &str| part.len() > 4 && part.trim_start_matches('0').len() > 3;
    // A width that comes from an argument: "%*d", "%-5.*f".
    let from_argument = |field: &str| {
        let rest = field.trim_start_matches(|c: char| "-+ #.".contains(c) || c.is_ascii_digit());
        rest.starts_with('*')
    };
    let mut digits = text.split(|c: char| !c.is_ascii_digit());
    if digits.any(wide) || text.split('%').skip(1).any(from_argument) {
        return Err(refusal("a field of the format is too wide"));
    }
    Ok(())
}

fn is_namespace(object: &DynObject) -> bool {
    object.type_name().ends_with("::Namespace")
}

fn refusal(why: &'static str) -> Error {
    Error::new(ErrorKind::InvalidOperation, why)
}
