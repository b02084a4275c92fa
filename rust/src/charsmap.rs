//! Checks the table of SentencePiece's normalizer: the size of a trie (4 bytes, little-endian), the
//! trie, and the replacements that it points into, which end with a zero byte. The file decides about
//! all of it, and the normalizer reserves memory for the trie before it looks for its bytes.

use crate::border::Failure;

/// SentencePiece's own tables come from NFKC, whose longest replacement has 33 bytes, for 3.
const USUAL_REPLACEMENT: usize = 48;
const USUAL_GROWTH: usize = 11;

/// The largest ratio of the bytes after the normalizer to the bytes before.
pub fn growth(base64: Option<&str>) -> Result<usize, Failure> {
    let Some(text) = base64.filter(|text| !text.is_empty()) else {
        return Ok(1);
    };
    let damaged = || Failure::refused("its precompiled_charsmap is damaged");
    let table = decoded(text).ok_or_else(damaged)?;
    let (size, rest) = table.split_first_chunk::<4>().ok_or_else(damaged)?;
    let replacements = rest
        .get(u32::from_le_bytes(*size) as usize..)
        .ok_or_else(damaged)?;
    let longest = replacements
        .split(|&byte| byte == 0)
        .map(<[u8]>::len)
        .max()
        .unwrap_or(0);
    Ok(if longest <= USUAL_REPLACEMENT {
        USUAL_GROWTH
    } else {
        longest
    })
}

fn decoded(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut held) = (0u32, 0);
    for c in text.trim_end_matches('=').bytes() {
        let digit = match c {
            b'A'..=b'Z' => c - b'A',
            b'a'..=b'z' => c - b'a' + 26,
            b'0'..=b'9' => c - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(digit);
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.push((bits >> held & 0xFF) as u8);
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::{decoded, growth};

    #[test]
    fn base64_is_decoded() {
        assert_eq!(decoded("").unwrap(), b"");
        assert_eq!(decoded("Zm8=").unwrap(), b"fo");
        assert_eq!(decoded("Zm9vYg==").unwrap(), b"foob");
        assert_eq!(decoded("//+/").unwrap(), [0xFF, 0xFF, 0xBF]);
        assert_eq!(decoded("Zm9*"), None);
    }

    #[test]
    fn the_longest_replacement_counts() {
        assert_eq!(growth(None).unwrap(), 1);
        assert_eq!(growth(Some("")).unwrap(), 1);
        // An empty trie, "a" and "bc".
        assert_eq!(growth(Some("AAAAAGEAYmMA")).unwrap(), 11);
        // An empty trie and 300 times "a".
        let long = format!("AAAA{}", "AGFh".to_string() + &"YWFh".repeat(100));
        assert_eq!(growth(Some(&long)).unwrap(), 302);
    }

    #[test]
    fn a_trie_that_is_not_there_is_refused() {
        // The sizes are 2^32 - 1 and 4.
        for text in ["/////w==", "BAAAAA==", "BAAAAAAA", "AAA=", "?"] {
            assert!(growth(Some(text)).unwrap_err().message.contains("damaged"));
        }
    }
}
