//! Bounds how much a tokenizer's normalizers, pre-tokenizers and decoders can lengthen a text. Normalizers
//! run when the file is loaded (on its added tokens) and on every text, and thirty that double it make
//! gigabytes of one character.

use crate::border::Failure;
use crate::charsmap;
use serde_json::Value;

const MAX_STEPS: usize = 32;
const MAX_GROWTH: usize = 256;

#[derive(serde::Deserialize)]
struct TokenizerFile {
    #[serde(default)]
    normalizer: Value,
    #[serde(default)]
    pre_tokenizer: Value,
    #[serde(default)]
    decoder: Value,
}

/// Refuses the steps of a tokenizer.json, and a file that has one of these keys twice: the tokenizer would
/// use the last one.
pub fn check(json: &[u8]) -> Result<(), Failure> {
    let file: TokenizerFile = serde_json::from_slice(json).map_err(Failure::refused)?;
    check_steps("normalizers", &file.normalizer)?;
    check_steps("pre-tokenizers", &file.pre_tokenizer)?;
    check_steps("decoders", &file.decoder)
}

fn check_steps(name: &str, steps: &Value) -> Result<(), Failure> {
    let mut count = 0;
    let growth = growth_of(steps, &mut count)?;
    if count > MAX_STEPS {
        return Err(Failure::refused(format!(
            "it has {count} {name}; at most {MAX_STEPS} are supported"
        )));
    }
    if growth > MAX_GROWTH {
        return Err(Failure::refused(format!(
            "its {name} can make a text more than {MAX_GROWTH} times as long"
        )));
    }
    Ok(())
}

/// The largest ratio of the bytes after to the bytes before. The tokenizer knows steps without a type, or
/// with an unknown one, by their fields, and ignores additional fields, so every field counts.
fn growth_of(step: &Value, count: &mut usize) -> Result<usize, Failure> {
    let mut growth: usize = 1;
    let mut multiply = |factor: usize| growth = growth.saturating_mul(factor);
    let lists = ["normalizers", "pretokenizers", "decoders"].map(|key| &step[key]);
    for part in lists.into_iter().filter_map(Value::as_array).flatten() {
        multiply(growth_of(part, count)?);
    }
    if step.is_object() && !lists.into_iter().any(Value::is_array) {
        *count += 1;
    }
    let text = |key: &str| step[key].as_str();
    if let Some(content) = text("content") {
        multiply(growth_of_replacement(&step["pattern"], content.len()));
    }
    multiply(1 + text("prepend").map_or(0, str::len));
    multiply(charsmap::growth(text("precompiled_charsmap"))?);
    // A space becomes a character of up to four bytes, and every word may begin with one.
    multiply(if text("replacement").is_some() { 8 } else { 1 });
    // Decoders that replace a text, which may be empty, by a space, or insert one in front of tokens.
    for key in ["suffix", "word_delimiter_token", "prefix"] {
        multiply(if text(key).is_some() { 2 } else { 1 });
    }
    let is_bert = !step["handle_chinese_chars"].is_null();
    multiply(match text("type").unwrap_or_default() {
        // The longest expansions of Unicode: U+FDFA in NFKC and NFKD, U+1F82 in NFC and NFD.
        "NFKC" | "NFKD" => 11,
        "NFC" | "NFD" => 4,
        "ByteLevel" | "Lowercase" => 2,
        // Spaces around Chinese characters, and accents as characters of their own.
        kind if is_bert || kind.starts_with("Bert") => 8,
        _ => 1,
    });
    Ok(growth)
}

/// Of a Replace. A step without a pattern is of another kind.
fn growth_of_replacement(pattern: &Value, content: usize) -> usize {
    if pattern.is_null() {
        return 1;
    }
    match (pattern["String"].as_str(), pattern["Regex"].as_str()) {
        (Some(text), None) if !text.is_empty() => content.div_ceil(text.len()).max(1),
        (None, Some(regex)) if takes_a_character(regex) => content.max(1),
        // It may match nothing, before every character.
        _ => content + 1,
    }
}

/// Whether no match of the regex is empty, as far as its beginning tells: a character or a class such as \s,
/// which is not optional. For Oniguruma's syntax, in which a quantifier may follow another one.
fn takes_a_character(regex: &str) -> bool {
    // With \K, the match begins there.
    if regex.contains('|') || regex.contains("\\K") {
        return false;
    }
    let mut characters = regex.chars();
    let first_is_sure = match characters.next() {
        Some('\\') => matches!(
            characters.next(),
            Some('s' | 'S' | 'd' | 'D' | 'w' | 'W' | 'n' | 'r' | 't')
        ),
        Some(first) => !"^$.[](){}*+?".contains(first),
        None => false,
    };
    first_is_sure && !after_quantifier(characters.as_str()).starts_with(['*', '+', '?', '{'])
}

/// What follows "+", "{2}" or "{2,}" at the beginning of the text; the text if there is none of them.
fn after_quantifier(text: &str) -> &str {
    if let Some(rest) = text.strip_prefix('+') {
        return rest;
    }
    let Some((count, rest)) = text.strip_prefix('{').and_then(|rest| rest.split_once('}')) else {
        return text;
    };
    let digits = count.strip_suffix(',').unwrap_or(count);
    let is_count = !digits.starts_with('0') && digits.bytes().all(|byte| byte.is_ascii_digit());
    if is_count && !digits.is_empty() {
        rest
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::{check, takes_a_character};
    use serde_json::{Value, json};

    fn replace(pattern: Value, content: &str) -> Value {
        json!({"type": "Replace", "pattern": pattern, "content": content})
    }

    fn double() -> Value {
        replace(json!({"String": "a"}), "aa")
    }

    fn refused_file(file: Value) -> Option<String> {
        check(file.to_string().as_bytes()).err().map(|e| e.message)
    }

    fn refused(normalizers: Vec<Value>) -> Option<String> {
        refused_file(json!({"normalizer": {"type": "Sequence", "normalizers": normalizers}}))
    }

    #[test]
    fn normalizers_that_double_are_refused() {
        assert!(refused(vec![double(); 32]).unwrap().contains("256 times"));
        assert!(refused(vec![replace(json!({"Regex": "."}), "aa"); 9]).is_some());
        assert!(refused(vec![replace(json!({"String": ""}), "aa"); 9]).is_some());
        let nested = json!({"type": "Sequence", "normalizers": vec![double(); 5]});
        assert!(refused(vec![nested; 2]).is_some());
        let same = replace(json!({"String": "a"}), "b");
        assert!(refused(vec![same; 33]).unwrap().contains("33 normalizers"));
    }

    #[test]
    fn a_type_that_is_absent_or_unknown_hides_nothing() {
        let with = |key: &str, value: Value| {
            let mut step = double();
            step[key] = value;
            step
        };
        for step in [
            with("type", Value::Null),
            with("type", json!("Other")),
            with("type", json!("NFX")),
            with("normalizers", json!([])),
            json!({"prepend": "a"}),
            json!({"precompiled_charsmap": "AAAAAGEAYmMA"}),
            json!({"clean_text": true, "handle_chinese_chars": true}),
        ] {
            assert!(refused(vec![step.clone(); 9]).is_some(), "{step}");
        }
    }

    #[test]
    fn a_regex_that_can_match_nothing_doubles() {
        for regex in ["", "x*", "(?=a)", "a\\K", "\\b", "a|", "a?", "a{0,}"] {
            let insert = replace(json!({"Regex": regex}), "a");
            assert!(refused(vec![insert; 9]).is_some(), "{regex}");
        }
        for regex in [" {2,}", "a{3}", "a", "\\s+", "\\n", "ab*", "\u{e9}+(x?)"] {
            assert!(takes_a_character(regex), "{regex}");
        }
        for regex in ["a{2}?", "a{2,0}", "a+*", "a{2}*", "a{,3}", "a{}", ".", "\\"] {
            assert!(!takes_a_character(regex), "{regex}");
        }
    }

    #[test]
    fn a_key_that_is_there_twice_is_refused() {
        let file = format!(r#"{{"normalizer": null, "normalizer": {}}}"#, double());
        assert!(
            check(file.as_bytes())
                .unwrap_err()
                .message
                .contains("duplicate")
        );
    }

    #[test]
    fn pre_tokenizers_and_decoders_that_double_are_refused() {
        let bytes = json!({"type": "ByteLevel", "add_prefix_space": false, "use_regex": false});
        let file = json!({"pre_tokenizer": {"type": "Sequence", "pretokenizers": vec![bytes; 9]}});
        assert!(refused_file(file).unwrap().contains("its pre-tokenizers"));
        for step in [
            double(),
            json!({"type": "BPEDecoder", "suffix": ""}),
            json!({"type": "CTC", "pad_token": "p", "word_delimiter_token": "", "cleanup": true}),
            json!({"type": "WordPiece", "prefix": "##", "cleanup": true}),
        ] {
            let file = json!({"decoder": {"type": "Sequence", "decoders": vec![step; 9]}});
            assert!(refused_file(file).unwrap().contains("its decoders"));
        }
    }

    #[test]
    fn tables_of_long_replacements_are_refused() {
        let table = format!("AAAAAGFh{}", "YWFh".repeat(100));
        let long = json!({"type": "Precompiled", "precompiled_charsmap": table});
        assert!(refused(vec![long]).unwrap().contains("256 times"));
        let damaged = json!({"type": "Precompiled", "precompiled_charsmap": "/////w=="});
        assert!(refused(vec![damaged]).unwrap().contains("damaged"));
    }

    #[test]
    fn the_steps_of_models_are_accepted() {
        let albert = vec![
            replace(json!({"String": "``"}), "\""),
            replace(json!({"String": "''"}), "\""),
            json!({"type": "NFKD"}),
            json!({"type": "StripAccents"}),
            json!({"type": "Lowercase"}),
            json!({"type": "Precompiled", "precompiled_charsmap": "AAAAAGEAYmMA"}),
            replace(json!({"Regex": " {2,}"}), " "),
        ];
        assert_eq!(refused(albert), None);
        let gemma = vec![replace(json!({"String": " "}), "▁")];
        assert_eq!(refused(gemma), None);
        assert_eq!(refused(vec![json!({"type": "BertNormalizer"})]), None);
        let llama = json!({"normalizer": null, "decoder": {"type": "Sequence", "decoders": [
            replace(json!({"String": "▁"}), " "), {"type": "ByteFallback"}, {"type": "Fuse"},
            {"type": "Strip", "content": " ", "start": 1, "stop": 0}]}});
        assert_eq!(refused_file(llama), None);
        let t5 = json!({"pre_tokenizer": {"type": "Sequence", "pretokenizers": [
            {"type": "WhitespaceSplit"},
            {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always"}]}});
        assert_eq!(refused_file(t5), None);
        assert!(check(b"{\"normalizer\": null}").is_ok());
    }
}
