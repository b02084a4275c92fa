//! Bounds how much a tokenizer's normalizers can lengthen a text. They run when the file is loaded (on
//! its added tokens) and on every text, and thirty that double it make gigabytes of one character.

use crate::border::Failure;
use crate::charsmap;
use serde_json::Value;

const MAX_NORMALIZERS: usize = 32;
const MAX_GROWTH: usize = 256;

#[derive(serde::Deserialize)]
struct TokenizerFile {
    #[serde(default)]
    normalizer: Value,
}

/// Refuses the normalizers of a tokenizer.json. A file that cannot be read is left to the tokenizer.
pub fn check(json: &[u8]) -> Result<(), Failure> {
    let Ok(file) = serde_json::from_slice::<TokenizerFile>(json) else {
        return Ok(());
    };
    let mut count = 0;
    let growth = growth_of(&file.normalizer, &mut count)?;
    if count > MAX_NORMALIZERS {
        return Err(Failure::refused(format!(
            "it has {count} normalizers; at most {MAX_NORMALIZERS} are supported"
        )));
    }
    if growth > MAX_GROWTH {
        return Err(Failure::refused(format!(
            "its normalizers can make a text more than {MAX_GROWTH} times as long"
        )));
    }
    Ok(())
}

/// The largest ratio of the bytes after to the bytes before.
fn growth_of(normalizer: &Value, count: &mut usize) -> Result<usize, Failure> {
    if let Some(parts) = normalizer["normalizers"].as_array() {
        let mut growth: usize = 1;
        for part in parts {
            growth = growth.saturating_mul(growth_of(part, count)?);
        }
        return Ok(growth);
    }
    let Some(kind) = normalizer["type"].as_str() else {
        return Ok(1);
    };
    *count += 1;
    Ok(match kind {
        "Replace" => {
            let content = normalizer["content"].as_str().map_or(0, str::len);
            match normalizer["pattern"]["String"].as_str() {
                Some("") => content + 1,
                Some(pattern) => content.div_ceil(pattern.len()).max(1),
                // A regex may match a single byte.
                None => content.max(1),
            }
        }
        "Prepend" => 1 + normalizer["prepend"].as_str().map_or(0, str::len),
        // The longest expansions of Unicode: U+FDFA in NFKC and NFKD, U+1F82 in NFC and NFD.
        "NFKC" | "NFKD" => 11,
        "NFC" | "NFD" => 4,
        "Precompiled" => charsmap::growth(normalizer["precompiled_charsmap"].as_str())?,
        "ByteLevel" | "Lowercase" => 2,
        // Spaces around Chinese characters, and accents as characters of their own.
        "BertNormalizer" => 8,
        _ => 1,
    })
}

#[cfg(test)]
mod tests {
    use super::check;
    use serde_json::{Value, json};

    fn replace(pattern: Value, content: &str) -> Value {
        json!({"type": "Replace", "pattern": pattern, "content": content})
    }

    fn refused(normalizers: Vec<Value>) -> Option<String> {
        let file = json!({"normalizer": {"type": "Sequence", "normalizers": normalizers}});
        check(file.to_string().as_bytes()).err().map(|e| e.message)
    }

    #[test]
    fn normalizers_that_double_are_refused() {
        let double = replace(json!({"String": "a"}), "aa");
        assert!(
            refused(vec![double.clone(); 32])
                .unwrap()
                .contains("256 times")
        );
        assert!(refused(vec![replace(json!({"Regex": "."}), "aa"); 9]).is_some());
        assert!(refused(vec![replace(json!({"String": ""}), "aa"); 9]).is_some());
        let nested = json!({"type": "Sequence", "normalizers": vec![double; 5]});
        assert!(refused(vec![nested; 2]).is_some());
        let same = replace(json!({"String": "a"}), "b");
        assert!(refused(vec![same; 33]).unwrap().contains("33 normalizers"));
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
    fn normalizers_of_models_are_accepted() {
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
        assert!(check(b"{\"normalizer\": null}").is_ok());
        assert!(check(b"{").is_ok());
    }
}
