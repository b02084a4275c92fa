//! Converts a request's schema, regex, choices or grammar for llguidance, and refuses unsupported ones.

use crate::border::{Failure, Status};
use llguidance::api::TopLevelGrammar;
use serde_json::{Map, Value, json};

/// Limit for a schema, regex, grammar or list of choices.
pub const MAX_TEXT_BYTES: usize = 128 << 10;
/// Limits per object and per schema: the work is quadratic in the former.
const MAX_PROPERTIES: usize = 1_000;
const MAX_ALL_PROPERTIES: usize = 5_000;
/// `&` in a Lark grammar, and patterns within one `allOf`. Fewer may still be too much work, which
/// has limits of its own.
const MAX_INTERSECTIONS: usize = 64;
const MAX_JOINED_PATTERNS: usize = 16;
/// Options of llguidance that `%json` may set: they change the whitespace between JSON's values,
/// not whether the schema is enforced.
const JSON_OPTIONS: [&str; 2] = ["whitespace_pattern", "whitespace_flexible"];
/// Whitespace within JSON: a space, or a line break and indentation. Bounded, because a constrained
/// model may otherwise write whitespace endlessly.
const WHITESPACE: &str = r" |\r?\n[ \t]{0,32}";

/// Mirrors `octavo_grammar_kind` in the header.
#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    JsonSchema = 0,
    JsonObject = 1,
    Regex = 2,
    Choice = 3,
    Lark = 4,
}

/// Whitespace within JSON.
#[derive(Clone, Copy)]
pub enum Whitespace<'a> {
    Default,
    Forbidden,
    Pattern(&'a str),
}

pub fn source(kind: Kind, text: &str, whitespace: Whitespace) -> Result<TopLevelGrammar, Failure> {
    at_most(MAX_TEXT_BYTES, text.len(), "bytes")?;
    match kind {
        Kind::JsonSchema => {
            let schema: Value = serde_json::from_str(text).map_err(Failure::refused)?;
            json_grammar(schema, whitespace)
        }
        Kind::JsonObject => json_grammar(json!({"type": "object"}), whitespace),
        Kind::Regex => Ok(TopLevelGrammar::from_regex(text)),
        Kind::Choice => choice_grammar(text),
        Kind::Lark => lark_grammar(text),
    }
}

fn lark_grammar(text: &str) -> Result<TopLevelGrammar, Failure> {
    let rules = rules_of(text);
    // Sampling uses the request's temperature; a rule's own would be ignored.
    if has_own_temperature(&rules) {
        return Err(Failure::refused(
            "temperature= in a rule is not supported; set the request's temperature",
        ));
    }
    let intersections = rules.matches('&').count();
    at_most(MAX_INTERSECTIONS, intersections, "intersections (&)")?;
    let mut all = (0, 0);
    for schema in inner_schemas(text) {
        let options = schema.get("x-guidance");
        if options.is_some_and(|options| !only_json_options(options)) {
            return Err(Failure::refused("x-guidance is not supported in %json"));
        }
        check_intersections(&schema)?;
        all = larger(all, properties(&schema));
    }
    check_properties(all)?;
    Ok(TopLevelGrammar::from_lark(text.to_string()))
}

/// The values after each `%json`. Also those in strings and comments: what the grammar's own parser
/// takes for a schema must never be missed.
fn inner_schemas(lark: &str) -> impl Iterator<Item = Value> + '_ {
    lark.match_indices("%json").filter_map(|(start, keyword)| {
        serde_json::Deserializer::from_str(&lark[start + keyword.len()..])
            .into_iter::<Value>()
            .next()?
            .ok()
    })
}

fn only_json_options(options: &Value) -> bool {
    options
        .as_object()
        .is_some_and(|all| all.keys().all(|key| JSON_OPTIONS.contains(&key.as_str())))
}

/// The grammar without its strings, regexes and comments.
fn rules_of(lark: &str) -> String {
    let mut rules = String::new();
    let mut rest = lark.chars().peekable();
    while let Some(first) = rest.next() {
        let end = match first {
            '/' if rest.peek() == Some(&'/') => '\n',
            '/' | '"' => first,
            _ => {
                rules.push(first);
                continue;
            }
        };
        while let Some(inside) = rest.next() {
            if inside == end {
                break;
            }
            if inside == '\\' && end != '\n' {
                rest.next();
            }
        }
        rules.push(' ');
    }
    rules
}

/// Whether a rule has the attribute `temperature=`.
fn has_own_temperature(rules: &str) -> bool {
    rules
        .split("temperature")
        .skip(1)
        .any(|after| after.trim_start().starts_with('='))
}

fn json_grammar(schema: Value, whitespace: Whitespace) -> Result<TopLevelGrammar, Failure> {
    let mut schema = match schema {
        Value::Object(members) => members,
        Value::Bool(true) => Map::new(),
        _ => return Err(Failure::refused("the schema must be an object")),
    };
    // llguidance's own options, which could make it ignore unsupported keywords.
    if schema.contains_key("x-guidance") {
        return Err(Failure::refused("x-guidance is not supported"));
    }
    let (most, all) = schema
        .values()
        .map(properties)
        .fold(own_properties(&schema), larger);
    check_properties((most, all))?;
    for value in schema.values() {
        check_intersections(value)?;
    }
    intersections_of(&schema)?;
    let options = match whitespace {
        Whitespace::Default => json!({"whitespace_pattern": WHITESPACE}),
        Whitespace::Forbidden => json!({"whitespace_flexible": false}),
        Whitespace::Pattern(pattern) => json!({"whitespace_pattern": pattern}),
    };
    schema.insert("x-guidance".to_string(), options);
    Ok(TopLevelGrammar::from_json_schema(Value::Object(schema)))
}

fn check_properties((most, all): (usize, usize)) -> Result<(), Failure> {
    at_most(MAX_PROPERTIES, most, "properties in one object")?;
    at_most(MAX_ALL_PROPERTIES, all, "properties")
}

/// Refuses a schema with an `allOf` of too many patterns.
fn check_intersections(schema: &Value) -> Result<(), Failure> {
    match schema {
        Value::Object(members) => {
            intersections_of(members)?;
            members.values().try_for_each(check_intersections)
        }
        Value::Array(items) => items.iter().try_for_each(check_intersections),
        _ => Ok(()),
    }
}

fn intersections_of(members: &Map<String, Value>) -> Result<(), Failure> {
    let patterns = members.get("allOf").map_or(0, patterns);
    at_most(MAX_JOINED_PATTERNS, patterns, "patterns in one allOf")
}

/// The regular expressions that `schema` intersects, those of its alternatives included.
fn patterns(schema: &Value) -> usize {
    match schema {
        Value::Object(members) => members
            .iter()
            .map(|(key, value)| match key.as_str() {
                "pattern" | "format" | "multipleOf" => 1,
                "allOf" | "anyOf" | "oneOf" => patterns(value),
                _ => 0,
            })
            .sum(),
        Value::Array(items) => items.iter().map(patterns).sum(),
        _ => 0,
    }
}

/// The number of properties of the largest object, and in total.
fn properties(schema: &Value) -> (usize, usize) {
    match schema {
        Value::Object(members) => members
            .values()
            .map(properties)
            .fold(own_properties(members), larger),
        Value::Array(items) => items.iter().map(properties).fold((0, 0), larger),
        _ => (0, 0),
    }
}

fn own_properties(members: &Map<String, Value>) -> (usize, usize) {
    let own = members.get("properties").and_then(Value::as_object);
    let count = own.map_or(0, Map::len);
    (count, count)
}

fn larger(a: (usize, usize), b: (usize, usize)) -> (usize, usize) {
    (a.0.max(b.0), a.1 + b.1)
}

fn choice_grammar(text: &str) -> Result<TopLevelGrammar, Failure> {
    let choices: Vec<String> = serde_json::from_str(text).map_err(Failure::refused)?;
    if choices.is_empty() {
        return Err(Failure::refused("the list of choices is empty"));
    }
    let quoted: Vec<String> = choices
        .into_iter()
        .map(|choice| json!(choice).to_string())
        .collect();
    // A single terminal, because thousands of them would be slow.
    Ok(TopLevelGrammar::from_lark(format!(
        "start: CHOICE\nCHOICE: {}",
        quoted.join("\n  | ")
    )))
}

fn at_most(limit: usize, count: usize, what: &str) -> Result<(), Failure> {
    if count <= limit {
        return Ok(());
    }
    Err(Failure {
        status: Status::Limit,
        message: format!("it has {count} {what}; the limit is {limit}"),
    })
}
