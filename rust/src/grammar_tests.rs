//! Tests of grammar.rs.

use super::*;
use crate::grammar_source::MAX_TEXT_BYTES;
use crate::matcher::Matcher;
use crate::time_limit::thread_time;
use crate::token_bytes::tests::byte_level_tokenizer;
use serde_json::{Value, json};

pub const STOP: u32 = 257;
const WORDS: usize = 9;

pub fn env() -> GrammarEnv {
    GrammarEnv::new(&byte_level_tokenizer(), 262, &[STOP]).unwrap()
}

fn compile(kind: Kind, text: &str) -> Result<Grammar, Failure> {
    Grammar::new(&env(), kind, text, Whitespace::Default)
}

pub fn begin(kind: Kind, text: &str) -> Matcher {
    Matcher::new(&compile(kind, text).unwrap())
}

pub fn allowed(matcher: &mut Matcher) -> Vec<u32> {
    let mut words = [0; WORDS];
    matcher.mask(&mut words).unwrap();
    let set = |id: &u32| words[*id as usize / 32] >> (id % 32) & 1 == 1;
    (0..WORDS as u32 * 32).filter(set).collect()
}

/// Whether the grammar accepts `answer` byte by byte, then the stop token.
fn takes(kind: Kind, text: &str, answer: &str) -> bool {
    let mut matcher = begin(kind, text);
    answer.bytes().map(u32::from).chain([STOP]).all(|token| {
        let may = allowed(&mut matcher).contains(&token);
        assert_eq!(matcher.accept(token).unwrap(), may);
        may
    })
}

#[test]
fn each_kind_accepts_only_matching_text() {
    let schema = r#"{"type":"object","properties":{"a":{"type":"integer","minimum":3,
            "maximum":12},"b":{"enum":["x","日本"]}},"required":["a"],"additionalProperties":false}"#;
    for (kind, text, fits, does_not) in [
        (
            Kind::JsonSchema,
            schema,
            r#"{"a": 10,"b":"日本"}"#,
            r#"{"a": 13}"#,
        ),
        (
            Kind::JsonSchema,
            schema,
            "{\n  \"a\": 3\n}",
            "{\n\n\"a\": 3}",
        ),
        (Kind::JsonSchema, "true", "[1, {}]", "[1,, 2]"),
        (Kind::JsonObject, "", r#"{"k":[null]}"#, "[1]"),
        (Kind::Regex, "(a|b/)+[0-9]{2}", "ab/12", "ab1"),
        (Kind::Choice, r#"["yes", "no\n\"", "日"]"#, "no\n\"", "n"),
        (Kind::Choice, r#"["yes", "yes, sir"]"#, "yes, sir", "yes, "),
        (Kind::Choice, r#"["yes, sir", "yes"]"#, "yes", "ye"),
        (
            Kind::Lark,
            "start: \"a\" b\nb: \"b\" | \"c\" b",
            "accb",
            "acc",
        ),
        (
            Kind::Lark,
            "start: \"temperature=\" /\\/?\"[0-9]\"/ // temperature=1",
            "temperature=/\"7\"",
            "temperature=",
        ),
    ] {
        assert!(takes(kind, text, fits), "{text} {fits}");
        assert!(!takes(kind, text, does_not), "{text} {does_not}");
    }
}

#[test]
fn unsupported_and_invalid_grammars_are_refused() {
    for (kind, text) in [
        (Kind::JsonSchema, r#"{"type":"array","uniqueItems":true}"#),
        (Kind::JsonSchema, r#"{"not":{"type":"string"}}"#),
        (
            Kind::JsonSchema,
            r#"{"type":"string","format":"of my own"}"#,
        ),
        (
            Kind::JsonSchema,
            r#"{"type":"object","x-guidance":{"lenient":true},"not":{}}"#,
        ),
        (
            Kind::JsonSchema,
            r#"{"type":"integer","minimum":3,"maximum":2}"#,
        ),
        (Kind::JsonSchema, "false"),
        (Kind::JsonSchema, "[1]"),
        (Kind::JsonSchema, "{"),
        (Kind::Regex, "(a"),
        (Kind::Regex, "(?=a)b"),
        (Kind::Regex, "[^\\x00-\\x{10FFFF}]"),
        (Kind::Choice, "[]"),
        (Kind::Choice, "[1]"),
        (Kind::Choice, "\"a\""),
        (Kind::Lark, "begin: \"a\""),
        (Kind::Lark, "start: \"a\" b\nb[temperature=0.7]: /c+/"),
        (
            Kind::Lark,
            "start: b\nb[temperature = 0, max_tokens=3]: /c+/",
        ),
        (Kind::Lark, "start: start \"a\""),
    ] {
        let refused = compile(kind, text).err();
        assert!(refused.is_some(), "{text}");
        assert_ne!(refused.unwrap().status, Status::Bug, "{text}");
    }
}

#[test]
fn grammars_that_are_too_large_or_deep_are_refused() {
    let deep = |open: &str, close: &str, inner: &str| {
        let levels = 40_000 / (open.len() + close.len());
        open.repeat(levels) + inner + &close.repeat(levels)
    };
    let many = |count: usize| {
        let all = (0..count).map(|i| (format!("p{i}"), json!({}))).collect();
        json!({"type": "object", "properties": Value::Object(all)})
    };
    for (kind, text) in [
        (Kind::Regex, deep("(", ")", "a")),
        (Kind::Regex, deep("(?:a|", ")*", "a")),
        (Kind::Lark, format!("start: {}", deep("(", ")", "\"a\""))),
        (Kind::Lark, format!("start: {}", deep("[", "]", "\"a\""))),
        (Kind::JsonSchema, deep("[", "]", "1")),
        (Kind::JsonSchema, deep("{\"items\":", "}", "true")),
        (Kind::JsonSchema, many(1_001).to_string()),
        (
            Kind::JsonSchema,
            json!({"anyOf": vec![many(900); 6]}).to_string(),
        ),
        (
            Kind::JsonSchema,
            format!("{{\"title\":\"{}\"}}", "a".repeat(MAX_TEXT_BYTES)),
        ),
    ] {
        let failure = compile(kind, &text).err();
        assert!(failure.is_some(), "{kind:?} of {} bytes", text.len());
        assert!(failure.unwrap().message.chars().count() <= MAX_MESSAGE_CHARACTERS);
    }
}

/// The Lark grammar of the terminals `Ri: R(i+1) & ...`, whose product grows with each of them.
fn intersections(count: usize) -> String {
    let rest: String = (0..count)
        .map(|i| {
            let (letters, any) = (i % 17, i % 13);
            format!("R{i}: R{} & /(.*[a-z]{{{letters}}}.{{{any}}})*/\n", i + 1)
        })
        .collect();
    format!("start: R0\n{rest}R{count}: /.*/\n")
}

/// Refused or not, neither compiling it nor a step takes more than its time and memory.
fn assert_bounded(kind: Kind, text: &str) {
    let mut started = thread_time();
    let mut check = |what: &str, limit: Duration| {
        let used = thread_time() - started;
        println!("{} bytes: {what} took {used:?}", text.len());
        assert!(used < limit, "{what} {used:?} {text}");
        started = thread_time();
    };
    let compiled = compile(kind, text);
    check("compiling", Duration::from_millis(1_500 * SLOWNESS));
    let Ok(grammar) = compiled else { return };
    let mut matcher = Matcher::new(&grammar);
    let mut words = [0; WORDS];
    for token in b"\"aaaaaaaaaaaaaaaaaaaaaaaa".map(u32::from) {
        let done = matcher
            .mask(&mut words)
            .and_then(|()| matcher.accept(token));
        check("a step", 4 * STEP_TIME);
        assert!(grammar.bytes() < 100 << 20);
        if done.is_err() {
            return;
        }
    }
}

#[test]
fn intersections_are_bounded() {
    let allof = |count: usize| {
        let parts: Vec<Value> = (0..count)
            .map(|i| json!({"pattern": format!("^(.*[a-z]{{{i}}}.{{{}}})*$", i + 2)}))
            .collect();
        json!({"type": "string", "allOf": parts}).to_string()
    };
    let lark = [10, 16, 64, 200].map(|count| (Kind::Lark, intersections(count)));
    let schemas = [8, 16, 100].map(|count| (Kind::JsonSchema, allof(count)));
    for (kind, text) in lark.into_iter().chain(schemas) {
        assert_bounded(kind, &text);
    }
    assert!(compile(Kind::Lark, &intersections(200)).is_err());
    assert!(compile(Kind::JsonSchema, &allof(100)).is_err());
    let both = "start: A\nA: /[a-z]+/ & /.{3}/";
    assert!(takes(Kind::Lark, both, "abc"));
    assert!(!takes(Kind::Lark, both, "ab"));
}

#[test]
fn large_divisors_are_refused_quickly() {
    let multiple = |of: u32| json!({"type": "integer", "multipleOf": of}).to_string();
    let started = thread_time();
    let refused = compile(Kind::JsonSchema, &multiple(999_983)).err().unwrap();
    assert_eq!(refused.status, Status::Limit, "{}", refused.message);
    assert!(thread_time() - started < Duration::from_millis(5_000 * SLOWNESS));
    assert!(takes(Kind::JsonSchema, &multiple(25), "150"));
    assert!(!takes(Kind::JsonSchema, &multiple(25), "151"));
}

#[test]
fn an_ambiguous_grammar_fails_alone_and_soon() {
    let grammar = compile(Kind::Lark, "start: s\ns: s s | \"a\"").unwrap();
    let mut matcher = Matcher::new(&grammar);
    let mut words = [0; WORDS];
    let mut longest = Duration::ZERO;
    for _ in 0..3_000 {
        let started = thread_time();
        let done = matcher
            .mask(&mut words)
            .and_then(|()| matcher.accept(u32::from(b'a')));
        longest = longest.max(thread_time() - started);
        if done.is_err() {
            break;
        }
    }
    assert!(longest < 4 * STEP_TIME);
    // The other choices of the request continue.
    assert_eq!(allowed(&mut Matcher::new(&grammar)), [u32::from(b'a')]);
}

#[test]
fn a_thousand_optional_properties_can_be_answered() {
    let all = (0..1_000)
        .map(|i| (format!("p{i}"), json!({"type": "integer"})))
        .collect();
    let schema = json!({"type": "object", "properties": Value::Object(all)}).to_string();
    assert!(takes(
        Kind::JsonSchema,
        &schema,
        r#"{"p3":1,"p998":2,"p999":3}"#
    ));
    assert!(takes(Kind::JsonSchema, &schema, "{}"));
    assert!(!takes(Kind::JsonSchema, &schema, r#"{"p5":"a"}"#));
}

#[test]
fn schemas_within_lark_are_checked_like_schemas() {
    let many = (0..1_001).map(|i| (format!("p{i}"), json!({}))).collect();
    let many = json!({"properties": Value::Object(many)});
    let lenient = json!({"x-guidance": {"lenient": true}, "not": {}});
    let patterns = json!({"properties": {"a": {"allOf": vec![json!({"pattern": "a"}); 17]}}});
    for schema in [many, lenient, patterns] {
        let text = format!("start: \"a\" inner\ninner: %json {schema}");
        assert!(compile(Kind::Lark, &text).is_err(), "{text}");
    }
    let spaced = r#"start: %json {"type":"boolean","x-guidance":{"whitespace_pattern":" "}}"#;
    assert!(takes(Kind::Lark, spaced, "true"));
}

#[test]
fn choices_share_the_lexer_and_requests_do_not() {
    let grammar = compile(Kind::Regex, "(a|b)*a(a|b){8}").unwrap();
    let copy = grammar.copy();
    let before = grammar.bytes();
    assert_eq!(copy.bytes(), before);
    let mut matcher = Matcher::new(&grammar);
    for token in b"abbabaab".map(u32::from) {
        allowed(&mut matcher);
        assert!(matcher.accept(token).unwrap());
    }
    assert!(grammar.bytes() > before);
    assert_eq!(copy.bytes(), before);
    // Another choice starts from the beginning and finds the states of the first.
    let grown = grammar.bytes();
    let mut second = Matcher::new(&grammar);
    for token in b"abbabaab".map(u32::from) {
        allowed(&mut second);
        assert!(second.accept(token).unwrap());
    }
    assert_eq!(grammar.bytes(), grown);
}

#[test]
fn large_repetitions_are_cheap() {
    for (kind, text) in [
        (Kind::Regex, "((a{1,1000}){1,1000}){1,1000}"),
        (Kind::Regex, "(a|b)*a(a|b){5000}"),
        (Kind::JsonSchema, r#"{"type":"string","minLength":1000000}"#),
        (
            Kind::JsonSchema,
            r#"{"type":"array","minItems":1000000,"items":{}}"#,
        ),
    ] {
        let mut matcher = begin(kind, text);
        for _ in 0..20 {
            let token = allowed(&mut matcher)[0];
            assert!(matcher.accept(token).unwrap(), "{text}");
        }
    }
}
