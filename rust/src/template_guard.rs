//! The checks on values that a template makes. `template_code` calls them as filters, `template`
//! wraps filters and methods with them.

use crate::format_keys;
use crate::template_budget::{TEXT_PER_WORK, check_bytes, exceeded, spend_bytes, spend_work};
use minijinja::value::{DynObject, ValueKind};
use minijinja::{Error, ErrorKind, Value};

pub const MADE: &str = "octavo_made";
pub const SLICED: &str = "octavo_sliced";
pub const BUILT: &str = "octavo_built";
pub const CONCAT: &str = "octavo_concat";
pub const MULTIPLIED: &str = "octavo_multiplied";
pub const COMPARED: &str = "octavo_compared";
pub const STORED: &str = "octavo_stored";
pub const ATTRIBUTE: &str = "octavo_attribute";

const MAX_DEPTH: usize = 200;
const MAX_WIDTH: usize = 1000;
const MAX_ITEMS: usize = 1_000_000;
const ITEM_BYTES: usize = 32;
/// A list that a loop grows is copied when it is stored; most of the copies die at once.
const STORED_ITEM_BYTES: usize = 4;

/// Filters whose result is one of their arguments, or a number.
const PASSING: &[&str] = &[
    "abs", "attr", "bool", "count", "d", "default", "first", "float", "int", "last", "length",
    "max", "min", "round",
];
/// Filters that read lists without turning them into text.
const READING: &[&str] = &[
    "batch",
    "chain",
    "dictsort",
    "groupby",
    "items",
    "list",
    "map",
    "reject",
    "rejectattr",
    "reverse",
    "select",
    "selectattr",
    "slice",
    "sort",
    "sum",
    "unique",
    "zip",
];

fn is_list(value: &Value) -> bool {
    matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable)
}

fn is_structure(value: &Value) -> bool {
    is_list(value) || value.kind() == ValueKind::Map
}

fn check_items(items: usize) -> Result<(), Error> {
    if items > MAX_ITEMS {
        return Err(exceeded(format!(
            "the chat template made a list of more than {MAX_ITEMS} items"
        )));
    }
    Ok(())
}

/// Counts a value that was just made.
fn charge(value: &Value) -> Result<(), Error> {
    if let Some(text) = value.as_str() {
        return spend_bytes(text.len());
    }
    let items = match value.kind() {
        ValueKind::Seq | ValueKind::Map | ValueKind::Iterable => value.len().unwrap_or(0),
        _ => return Ok(()),
    };
    check_items(items)?;
    if value.kind() == ValueKind::Iterable {
        return spend_work(1 + items / TEXT_PER_WORK); // a view of other values
    }
    spend_bytes(items * ITEM_BYTES)
}

/// After `a + b`.
pub fn made(value: &Value) -> Result<Value, Error> {
    charge(value)?;
    Ok(value.clone())
}

/// After a slice or a product, which are views of their operands: reading nested views costs their
/// depth.
pub fn sliced(value: &Value) -> Result<Value, Error> {
    if value.kind() == ValueKind::Iterable && value.len().is_some() {
        return list(value, ITEM_BYTES);
    }
    made(value)
}

/// After a list, tuple or map.
pub fn built(value: &Value) -> Result<Value, Error> {
    walk(value, &mut |_| spend_work(1), false, 0)?;
    spend_bytes(value.len().unwrap_or(0) * ITEM_BYTES)?;
    Ok(value.clone())
}

/// `left ~ right`.
pub fn concat(left: &Value, right: &Value) -> Result<Value, Error> {
    let bytes = text_bytes(left)? + text_bytes(right)?;
    check_bytes(bytes)?;
    let text = format!("{left}{right}");
    spend_bytes(text.len())?;
    Ok(Value::from(text))
}

/// Before `a * b`, for strings and lists.
pub fn multiplied(operands: &Value) -> Result<Value, Error> {
    let (left, right) = pair(operands)?;
    for (value, count) in [(&left, &right), (&right, &left)] {
        let Some(count) = count.as_usize() else {
            continue;
        };
        if let Some(text) = value.as_str() {
            check_bytes(text.len().saturating_mul(count))?;
        } else if is_list(value) {
            check_items(value.len().unwrap_or(0).saturating_mul(count))?;
        }
    }
    Ok(operands.clone())
}

/// Before a comparison or a search.
pub fn compared(operands: &Value) -> Result<Value, Error> {
    let (left, right) = pair(operands)?;
    for value in [&left, &right] {
        match value.as_str() {
            Some(text) => spend_work(text.len() / TEXT_PER_WORK)?,
            None if is_structure(value) => spend_work(value.len().unwrap_or(0))?,
            None => {}
        }
    }
    Ok(operands.clone())
}

fn pair(operands: &Value) -> Result<(Value, Value), Error> {
    Ok((
        operands.get_item_by_index(0)?,
        operands.get_item_by_index(1)?,
    ))
}

/// Before a value is assigned.
pub fn stored(value: &Value) -> Result<Value, Error> {
    let value = match value.kind() {
        ValueKind::Iterable if value.len().is_some() => list(value, STORED_ITEM_BYTES)?,
        _ => value.clone(),
    };
    walk(&value, &mut |_| spend_work(1), false, 0)?;
    Ok(value)
}

/// Before a value is assigned to a namespace. Namespaces are the only mutable values, so refusing to
/// nest them rules out cycles.
pub fn attribute(value: &Value) -> Result<Value, Error> {
    let value = match value.kind() {
        ValueKind::Iterable => list(value, STORED_ITEM_BYTES)?,
        _ => value.clone(),
    };
    walk(&value, &mut |_| spend_work(1), true, 0)?;
    Ok(value)
}

/// Before a value is written as text.
pub fn printed(value: &Value) -> Result<(), Error> {
    spend_bytes(text_bytes(value)?)
}

/// About the bytes of the value as text; what is more than a string counts as work.
fn text_bytes(value: &Value) -> Result<usize, Error> {
    if let Some(text) = value.as_str() {
        return Ok(text.len());
    }
    if !is_structure(value) {
        return Ok(0);
    }
    let mut bytes = 0;
    let mut count = |part: &Value| {
        bytes += 4 + part.as_str().map_or(4, str::len);
        spend_work(1)?;
        check_bytes(bytes)
    };
    walk(value, &mut count, false, 0)?;
    Ok(bytes)
}

fn list(value: &Value, item_bytes: usize) -> Result<Value, Error> {
    let mut items = Vec::new();
    for item in value.try_iter()?.checked() {
        spend_work(1)?;
        spend_bytes(item_bytes)?;
        check_items(items.len())?;
        items.push(item?);
    }
    Ok(Value::from(items))
}

/// Visits a value and all it holds. Visits a value once for each way to reach it, as printing and
/// comparing do.
fn walk(
    value: &Value,
    visit: &mut dyn FnMut(&Value) -> Result<(), Error>,
    refuse_namespaces: bool,
    depth: usize,
) -> Result<(), Error> {
    visit(value)?;
    if !is_structure(value) {
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
            walk(&value.get_item(&item)?, visit, refuse_namespaces, depth + 1)?;
        }
        walk(&item, visit, refuse_namespaces, depth + 1)?;
    }
    Ok(())
}

/// Before a filter or method: the cost of reading its arguments, and the size of what a few of them
/// make.
pub fn before_call(name: &str, args: &[Value]) -> Result<(), Error> {
    if PASSING.contains(&name) {
        return spend_work(1);
    }
    let mut bytes = 0usize;
    for arg in args {
        if let Some(text) = arg.as_str() {
            spend_work(1 + text.len() / TEXT_PER_WORK)?;
            bytes += text.len();
        } else if READING.contains(&name) {
            spend_work(1 + arg.len().unwrap_or(0))?;
        } else if name != "get" {
            bytes += text_bytes(arg)?;
        }
    }
    match name {
        "replace" => check_replace(args),
        "join" => {
            let items = args.iter().filter_map(Value::len).max().unwrap_or(0);
            check_bytes(bytes.saturating_add(longest_text(args).saturating_mul(items)))
        }
        "indent" => {
            let width = largest_number(args);
            if width > MAX_WIDTH {
                return Err(refusal("an indentation is too wide"));
            }
            let text = args.first().and_then(Value::as_str).unwrap_or_default();
            check_bytes(bytes + text.matches('\n').count().saturating_add(1) * width)
        }
        "format" => {
            let pattern = args.first().cloned().unwrap_or_default();
            check_widths(&pattern)?;
            let text = pattern.as_str().unwrap_or_default();
            if !format_keys::are_ascii(text) {
                return Err(refusal("a key in the format string is not ASCII"));
            }
            let fields = text.matches(['%', '{']).count();
            check_bytes(fields.saturating_mul(MAX_WIDTH + bytes))
        }
        "batch" | "slice" => check_items(largest_number(args)),
        _ => Ok(()),
    }
}

/// After a filter or method.
pub fn after_call(name: &str, result: &Value) -> Result<(), Error> {
    if PASSING.contains(&name) || name == "get" {
        return Ok(());
    }
    // Lists of the same list: their text can grow with the power of their depth.
    if matches!(name, "batch" | "slice" | "groupby") {
        walk(result, &mut |_| spend_work(1), false, 0)?;
    }
    charge(result)
}

fn check_replace(args: &[Value]) -> Result<(), Error> {
    let text = |index: usize| args.get(index).and_then(Value::as_str);
    let (Some(value), Some(from), Some(to)) = (text(0), text(1), text(2)) else {
        // Other values are written as text first.
        let bytes = |index: usize| args.get(index).map_or(Ok(0), text_bytes);
        return check_bytes((bytes(0)? + 1).saturating_mul(bytes(2)? + 1));
    };
    let found = if from.is_empty() {
        value.len() + 1
    } else {
        value.matches(from).count()
    };
    check_bytes(value.len() + found.saturating_mul(to.len()))
}

fn keyword_values(value: &Value) -> Vec<Value> {
    if value.kind() != ValueKind::Map {
        return Vec::new();
    }
    let Ok(keys) = value.try_iter() else {
        return Vec::new();
    };
    keys.filter_map(|key| value.get_item(&key).ok()).collect()
}

fn longest_text(args: &[Value]) -> usize {
    let own = args.iter().skip(1).filter_map(Value::as_str).map(str::len);
    let named = args.last().map(keyword_values).unwrap_or_default();
    let named = named.iter().filter_map(Value::as_str).map(str::len);
    // As a method, the separator is the first argument.
    let first = args.first().and_then(Value::as_str).map_or(0, str::len);
    own.chain(named).max().unwrap_or(0).max(first)
}

fn largest_number(args: &[Value]) -> usize {
    let own = args.iter().skip(1).filter_map(Value::as_usize);
    let named = args.last().map(keyword_values).unwrap_or_default();
    own.chain(named.iter().filter_map(Value::as_usize))
        .max()
        .unwrap_or(0)
}

/// A width of five digits is of no use, and one of nine would allocate a gigabyte.
fn check_widths(pattern: &Value) -> Result<(), Error> {
    let text = pattern.as_str().unwrap_or_default();
    let wide = |part: &str| part.len() > 4 && part.trim_start_matches('0').len() > 3;
    // A width taken from an argument: "%*d", "%-5.*f", "{:{}}".
    let from_argument = |field: &str| {
        let rest = field.trim_start_matches(|c: char| "-+ #.".contains(c) || c.is_ascii_digit());
        rest.starts_with('*')
    };
    let nested = |field: &str| {
        field
            .split('}')
            .next()
            .is_some_and(|spec| spec.ends_with(':'))
    };
    let mut digits = text.split(|c: char| !c.is_ascii_digit());
    if digits.any(wide)
        || text.split('%').skip(1).any(from_argument)
        || text.split('{').skip(1).any(nested)
    {
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
