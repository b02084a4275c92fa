//! Python's behaviour for strings, numbers and dates where minijinja and its pycompat differ.

use crate::template_guard;
use minijinja::value::{Rest, Tuple, ValueKind, from_args};
use minijinja::{Error, ErrorKind, State, Value, filters};

/// What `str.strip()` removes: White_Space and the four separators U+001C to U+001F.
fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c)
}

/// `repr(float)`.
pub fn float_repr(value: f64) -> String {
    if value.is_nan() {
        return "nan".into();
    }
    if value.is_infinite() {
        return if value > 0.0 { "inf" } else { "-inf" }.into();
    }
    let scientific = format!("{value:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..16).contains(&exponent) {
        let plain = value.to_string();
        if plain.contains('.') {
            plain
        } else {
            plain + ".0"
        }
    } else {
        let sign = if exponent < 0 { '-' } else { '+' };
        format!("{digits}e{sign}{:02}", exponent.abs())
    }
}

/// The value as a float if it is one (and not an integer or a boolean).
pub fn as_float(value: &Value) -> Option<f64> {
    if value.kind() == ValueKind::Number && !value.is_integer() {
        f64::try_from(value.clone()).ok()
    } else {
        None
    }
}

/// Jinja's undefined value is empty: tools may have a schema without `properties`.
pub fn items(value: &Value) -> Result<Value, Error> {
    if value.is_undefined() {
        return Ok(Value::from(Vec::<Value>::new()));
    }
    filters::items(value)
}

/// As `items`.
pub fn length(value: &Value) -> Result<usize, Error> {
    if value.is_undefined() {
        return Ok(0);
    }
    filters::length(value)
}

/// Python's methods: ours where pycompat lacks one or differs, otherwise pycompat's.
pub fn call_method(
    state: &mut State,
    value: &Value,
    method: &str,
    args: &[Value],
) -> Result<Value, Error> {
    // Methods of lists and maps only find or view what is there.
    if value.as_str().is_none() {
        template_guard::before_call("list", args)?;
        return minijinja_contrib::pycompat::unknown_method_callback(state, value, method, args);
    }
    let mut all = vec![value.clone()];
    all.extend_from_slice(args);
    template_guard::before_call(method, &all)?;
    let text = value.as_str().unwrap_or_default();
    let result = match string_method(text, method, args)? {
        Some(result) => result,
        None => minijinja_contrib::pycompat::unknown_method_callback(state, value, method, args)?,
    };
    template_guard::after_call(method, &result)?;
    Ok(result)
}

fn string_method(text: &str, method: &str, args: &[Value]) -> Result<Option<Value>, Error> {
    Ok(Some(match method {
        "strip" | "lstrip" | "rstrip" => {
            let (chars,): (Option<&str>,) = from_args(args)?;
            Value::from(strip(text, method, chars))
        }
        "split" if args.is_empty() => text
            .split(is_space)
            .filter(|part| !part.is_empty())
            .collect(),
        "rsplit" => {
            let (separator, count): (&str, Option<i64>) = from_args(args)?;
            refuse_empty(separator)?;
            rsplit(text, separator, count.unwrap_or(-1))
        }
        "partition" | "rpartition" => {
            let (separator,): (&str,) = from_args(args)?;
            refuse_empty(separator)?;
            partition(text, separator, method == "partition")
        }
        "index" => {
            let (wanted,): (&str,) = from_args(args)?;
            let at = text
                .find(wanted)
                .ok_or_else(|| Error::new(ErrorKind::InvalidOperation, "substring not found"))?;
            Value::from(text[..at].chars().count())
        }
        "removeprefix" => {
            let (prefix,): (&str,) = from_args(args)?;
            Value::from(text.strip_prefix(prefix).unwrap_or(text))
        }
        "removesuffix" => {
            let (suffix,): (&str,) = from_args(args)?;
            Value::from(text.strip_suffix(suffix).unwrap_or(text))
        }
        _ => return Ok(None),
    }))
}

fn strip<'a>(text: &'a str, method: &str, chars: Option<&str>) -> &'a str {
    let wanted = |c: char| chars.map_or_else(|| is_space(c), |set| set.contains(c));
    match method {
        "strip" => text.trim_matches(wanted),
        "lstrip" => text.trim_start_matches(wanted),
        _ => text.trim_end_matches(wanted),
    }
}

fn refuse_empty(separator: &str) -> Result<(), Error> {
    if separator.is_empty() {
        return Err(Error::new(ErrorKind::InvalidOperation, "empty separator"));
    }
    Ok(())
}

fn rsplit(text: &str, separator: &str, count: i64) -> Value {
    let mut parts: Vec<&str> = match usize::try_from(count) {
        Ok(count) => text.rsplitn(count.saturating_add(1), separator).collect(),
        Err(_) => text.rsplit(separator).collect(),
    };
    parts.reverse();
    parts.into_iter().collect()
}

fn partition(text: &str, separator: &str, first: bool) -> Value {
    let cut = if first {
        text.split_once(separator)
    } else {
        text.rsplit_once(separator)
    };
    let parts = match (cut, first) {
        (Some((before, after)), _) => [before, separator, after],
        (None, true) => [text, "", ""],
        (None, false) => ["", "", text],
    };
    Value::from(Tuple::from(parts.map(Value::from)))
}

/// The `trim` filter.
pub fn trim(value: &Value, chars: Option<&str>) -> String {
    strip(&value.to_string(), "strip", chars).to_string()
}

/// Jinja's `sequence` test: has a length and can be indexed, so strings and mappings are sequences.
pub fn is_sequence(value: &Value) -> bool {
    match value.kind() {
        ValueKind::Undefined | ValueKind::String | ValueKind::Seq | ValueKind::Map => true,
        ValueKind::Iterable => value.len().is_some(),
        _ => false,
    }
}

/// Jinja's `iterable` test: None is not iterable.
pub fn is_iterable(value: &Value) -> bool {
    !value.is_none() && value.try_iter().is_ok()
}

/// `datetime.now().strftime(format)`.
pub fn strftime_now(format: &str) -> Result<String, Error> {
    // The added dot distinguishes an empty result from a buffer that is too small.
    let marked = std::ffi::CString::new(format!("{format}.")).map_err(|_| {
        Error::new(
            ErrorKind::InvalidOperation,
            "strftime_now: the format contains NUL",
        )
    })?;
    let mut buffer = vec![0u8; 256 + 16 * format.len().min(4096)];
    // SAFETY: all pointers are to live locals, and the size is the buffer's.
    let written = unsafe {
        let now = libc::time(std::ptr::null_mut());
        let mut parts: libc::tm = std::mem::zeroed();
        libc::localtime_r(&now, &mut parts);
        libc::strftime(
            buffer.as_mut_ptr().cast(),
            buffer.len(),
            marked.as_ptr(),
            &parts,
        )
    };
    if written == 0 {
        return Err(Error::new(
            ErrorKind::InvalidOperation,
            "strftime_now: the result is too long",
        ));
    }
    buffer.truncate(written - 1);
    Ok(String::from_utf8_lossy(&buffer).into_owned())
}

/// A filter's arguments in the order of `names`, positional or by keyword.
pub fn named_arguments<const N: usize>(
    names: [&str; N],
    positional: &Rest<Value>,
    keywords: &minijinja::value::Kwargs,
) -> Result<[Option<Value>; N], Error> {
    if positional.len() > N {
        return Err(Error::from(ErrorKind::TooManyArguments));
    }
    let mut values: [Option<Value>; N] = std::array::from_fn(|i| positional.get(i).cloned());
    for (name, value) in names.iter().zip(values.iter_mut()) {
        if keywords.has(name) {
            *value = Some(keywords.get(name)?);
        }
    }
    keywords.assert_all_used()?;
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_print_as_python_prints_them() {
        for (value, expected) in [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1.5, "1.5"),
            (1e15, "1000000000000000.0"),
            (1e16, "1e+16"),
            (1.25e22, "1.25e+22"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (f64::INFINITY, "inf"),
        ] {
            assert_eq!(float_repr(value), expected);
        }
    }

    #[test]
    fn strip_knows_pythons_whitespace() {
        assert_eq!(strip("\u{1c} a\u{a0}\n", "strip", None), "a");
        assert_eq!(strip("xxaxx", "rstrip", Some("x")), "xxa");
    }

    #[test]
    fn the_year_has_four_digits() {
        assert_eq!(strftime_now("%Y").unwrap().len(), 4);
        assert_eq!(strftime_now("").unwrap(), "");
    }
}
