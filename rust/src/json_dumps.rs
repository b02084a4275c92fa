//! The `tojson` filter: Python's `json.dumps` with transformers' defaults.

use crate::python::{as_float, float_repr, named_arguments};
use minijinja::value::{Kwargs, Rest, ValueKind};
use minijinja::{Error, ErrorKind, Value};

struct Dumper {
    ensure_ascii: bool,
    indent: Option<String>,
    item_separator: String,
    key_separator: String,
    sort_keys: bool,
    out: String,
}

/// `tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False)`
pub fn tojson(value: &Value, args: Rest<Value>, kwargs: Kwargs) -> Result<String, Error> {
    let names = ["ensure_ascii", "indent", "separators", "sort_keys"];
    let [ensure_ascii, indent, separators, sort_keys] = named_arguments(names, &args, &kwargs)?;
    let indent = match indent {
        None => None,
        Some(width) if width.is_none() => None,
        Some(text) if text.as_str().is_some() => Some(text.to_string()),
        Some(width) => {
            let width = i64::try_from(width)?.clamp(0, 256);
            Some(" ".repeat(usize::try_from(width).unwrap_or(0)))
        }
    };
    let mut dumper = Dumper {
        ensure_ascii: ensure_ascii.is_some_and(|flag| flag.is_true()),
        item_separator: if indent.is_some() { "," } else { ", " }.into(),
        key_separator: ": ".into(),
        indent,
        sort_keys: sort_keys.is_some_and(|flag| flag.is_true()),
        out: String::new(),
    };
    if let Some(pair) = separators.filter(|pair| !pair.is_none()) {
        dumper.item_separator = pair.get_item_by_index(0)?.to_string();
        dumper.key_separator = pair.get_item_by_index(1)?.to_string();
    }
    dumper.value(value, 0)?;
    Ok(dumper.out)
}

fn json_float(value: f64) -> String {
    match float_repr(value).as_str() {
        "nan" => "NaN".into(),
        "inf" => "Infinity".into(),
        "-inf" => "-Infinity".into(),
        text => text.into(),
    }
}

impl Dumper {
    fn value(&mut self, value: &Value, depth: usize) -> Result<(), Error> {
        match value.kind() {
            ValueKind::None => self.out.push_str("null"),
            ValueKind::Bool => self
                .out
                .push_str(if value.is_true() { "true" } else { "false" }),
            ValueKind::Number => match as_float(value) {
                Some(float) => self.out.push_str(&json_float(float)),
                None => self.out.push_str(&value.to_string()),
            },
            ValueKind::String => self.string(value.as_str().unwrap_or_default()),
            ValueKind::Seq | ValueKind::Iterable => self.list(value, depth)?,
            ValueKind::Map => self.map(value, depth)?,
            kind => {
                return Err(Error::new(
                    ErrorKind::BadSerialization,
                    format!("{kind} is not JSON serializable"),
                ));
            }
        }
        Ok(())
    }

    fn list(&mut self, value: &Value, depth: usize) -> Result<(), Error> {
        self.out.push('[');
        let mut empty = true;
        for item in value.try_iter()?.checked() {
            self.begin_item(empty, depth + 1);
            empty = false;
            self.value(&item?, depth + 1)?;
        }
        self.end(empty, depth, ']');
        Ok(())
    }

    fn map(&mut self, value: &Value, depth: usize) -> Result<(), Error> {
        let mut keys = value.try_iter()?.checked().collect::<Result<Vec<_>, _>>()?;
        if self.sort_keys {
            keys.sort();
        }
        self.out.push('{');
        let empty = keys.is_empty();
        for (i, key) in keys.into_iter().enumerate() {
            self.begin_item(i == 0, depth + 1);
            self.key(&key)?;
            let separator = self.key_separator.clone();
            self.out.push_str(&separator);
            self.value(&value.get_item(&key)?, depth + 1)?;
        }
        self.end(empty, depth, '}');
        Ok(())
    }

    fn key(&mut self, key: &Value) -> Result<(), Error> {
        let text = match key.kind() {
            ValueKind::String => key.to_string(),
            ValueKind::None => "null".into(),
            ValueKind::Bool => if key.is_true() { "true" } else { "false" }.into(),
            ValueKind::Number => as_float(key).map_or_else(|| key.to_string(), json_float),
            kind => {
                return Err(Error::new(
                    ErrorKind::BadSerialization,
                    format!("a JSON key cannot be a {kind}"),
                ));
            }
        };
        self.string(&text);
        Ok(())
    }

    fn begin_item(&mut self, first: bool, depth: usize) {
        if !first {
            self.out.push_str(&self.item_separator);
        }
        self.new_line(depth);
    }

    fn end(&mut self, empty: bool, depth: usize, bracket: char) {
        if !empty {
            self.new_line(depth);
        }
        self.out.push(bracket);
    }

    fn new_line(&mut self, depth: usize) {
        if let Some(indent) = &self.indent {
            self.out.push('\n');
            self.out.push_str(&indent.repeat(depth));
        }
    }

    fn string(&mut self, text: &str) {
        self.out.push('"');
        for c in text.chars() {
            match c {
                '"' => self.out.push_str("\\\""),
                '\\' => self.out.push_str("\\\\"),
                '\n' => self.out.push_str("\\n"),
                '\r' => self.out.push_str("\\r"),
                '\t' => self.out.push_str("\\t"),
                '\u{8}' => self.out.push_str("\\b"),
                '\u{c}' => self.out.push_str("\\f"),
                c if c < ' ' || (self.ensure_ascii && c > '~') => {
                    for unit in c.encode_utf16(&mut [0; 2]) {
                        self.out.push_str(&format!("\\u{unit:04x}"));
                    }
                }
                c => self.out.push(c),
            }
        }
        self.out.push('"');
    }
}
