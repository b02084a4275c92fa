//! The bytes of each token, derived from the tokenizer's decoder.

use crate::border::Failure;
use crate::tokenizer::Tokenizer;
use serde_json::Value;
use std::collections::HashMap;

/// Precedes a special token's name. Text never contains this byte, so no grammar over text allows it.
const SPECIAL_MARK: u8 = 0xFF;
/// Longer tokens (such as a thousand spaces) are excluded from grammars; shorter ones can express them.
const MAX_TOKEN_BYTES: usize = 512;

/// The parts of a tokenizer.json's decoder that affect a token's bytes.
#[derive(Default, Debug, PartialEq)]
struct Spelling {
    byte_level: bool,
    byte_fallback: bool,
    replaced: Vec<(String, String)>,
}

impl Spelling {
    fn read(&mut self, decoder: &Value) -> Result<(), Failure> {
        let unknown = || Failure::refused(format!("the decoder {decoder} is not supported"));
        let text = |name: &str| decoder[name].as_str().map(str::to_string);
        match decoder["type"].as_str().ok_or_else(unknown)? {
            "ByteLevel" => self.byte_level = true,
            "ByteFallback" => self.byte_fallback = true,
            "Fuse" => {}
            // Affects only the ends of a whole text.
            "Strip" => {}
            "Replace" => {
                let pattern = decoder["pattern"]["String"].as_str().ok_or_else(unknown)?;
                let content = text("content").ok_or_else(unknown)?;
                self.replaced.push((pattern.to_string(), content));
            }
            "Metaspace" => {
                let mark = text("replacement").ok_or_else(unknown)?;
                self.replaced.push((mark, " ".to_string()));
            }
            "Sequence" => {
                for part in decoder["decoders"].as_array().ok_or_else(unknown)? {
                    self.read(part)?;
                }
            }
            _ => return Err(unknown()),
        }
        Ok(())
    }

    fn bytes_of(&self, token: &str, alphabet: &HashMap<char, u8>) -> Vec<u8> {
        let mut text = token.to_string();
        for (pattern, content) in &self.replaced {
            text = text.replace(pattern, content);
        }
        if self.byte_level {
            // An added token with characters outside the alphabet is its own text.
            let bytes: Option<Vec<u8>> = text.chars().map(|c| alphabet.get(&c).copied()).collect();
            return bytes.unwrap_or_else(|| text.into_bytes());
        }
        if let Some(byte) = fallback_byte(&text).filter(|_| self.byte_fallback) {
            return vec![byte];
        }
        text.into_bytes()
    }
}

/// `<0x0A>` stands for a single byte that is not covered by other tokens.
fn fallback_byte(token: &str) -> Option<u8> {
    let digits = token.strip_prefix("<0x")?.strip_suffix('>')?;
    if digits.len() != 2 {
        return None;
    }
    u8::from_str_radix(digits, 16).ok()
}

/// GPT-2's table: printable bytes map to themselves, the others to U+0100 and up.
fn byte_alphabet() -> HashMap<char, u8> {
    let mut next = 256;
    let mut alphabet = HashMap::new();
    for byte in 0..=255u8 {
        let own = matches!(byte, b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF);
        let code = if own { u32::from(byte) } else { next };
        next += u32::from(!own);
        alphabet.extend(char::from_u32(code).map(|c| (c, byte)));
    }
    alphabet
}

/// One entry per id below `vocab_size`; empty for ids without text.
pub fn token_bytes(tokenizer: &Tokenizer, vocab_size: usize) -> Result<Vec<Vec<u8>>, Failure> {
    let mut spelling = Spelling::default();
    spelling.read(&tokenizer.decoder()?)?;
    let alphabet = byte_alphabet();
    let known = vocab_size.min(tokenizer.vocab_size());
    let ids = u32::try_from(known).map_err(Failure::refused)?;
    let mut words: Vec<Vec<u8>> = (0..ids)
        .map(|id| {
            let token = tokenizer.id_to_token(id).unwrap_or_default();
            let bytes = if tokenizer.is_special(id) {
                [&[SPECIAL_MARK], token.as_bytes()].concat()
            } else {
                let bytes = spelling.bytes_of(&token, &alphabet);
                // UTF-8 never contains this byte, and grammars treat it as a special token's.
                if bytes.contains(&SPECIAL_MARK) {
                    return Vec::new();
                }
                bytes
            };
            if bytes.len() > MAX_TOKEN_BYTES {
                Vec::new()
            } else {
                bytes
            }
        })
        .collect();
    words.resize(vocab_size, Vec::new());
    Ok(words)
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use serde_json::json;

    /// Bytes (ids 0 to 255), "he", a special and an added token: 259 ids.
    pub fn byte_level_tokenizer() -> Tokenizer {
        let mut vocab = serde_json::Map::new();
        let mut characters: Vec<(u8, char)> =
            byte_alphabet().into_iter().map(|(c, b)| (b, c)).collect();
        characters.sort_unstable();
        for (byte, character) in characters {
            vocab.insert(character.to_string(), json!(byte));
        }
        vocab.insert("he".into(), json!(256));
        let added = |id: u32, content: &str, special: bool| {
            json!({"id": id, "content": content, "special": special, "single_word": false,
                   "lstrip": false, "rstrip": false, "normalized": false})
        };
        let byte_level = json!({"type": "ByteLevel", "add_prefix_space": false,
                                "trim_offsets": true, "use_regex": true});
        from_json(json!({
            "version": "1.0", "truncation": null, "padding": null, "normalizer": null,
            "added_tokens": [added(257, "<|end|>", true), added(258, "<a tool>", false)],
            "pre_tokenizer": byte_level, "post_processor": null, "decoder": byte_level,
            "model": {"type": "BPE", "vocab": vocab, "merges": ["h e"]},
        }))
    }

    fn sentence_piece_tokenizer(decoder: Value) -> Tokenizer {
        let mut vocab = serde_json::Map::new();
        vocab.insert("<unk>".into(), json!(0));
        for byte in 0..256 {
            vocab.insert(format!("<0x{byte:02X}>"), json!(1 + byte));
        }
        for (i, piece) in ["▁", "a", "b", "▁ab"].iter().enumerate() {
            vocab.insert((*piece).into(), json!(257 + i));
        }
        from_json(json!({
            "version": "1.0", "truncation": null, "padding": null, "added_tokens": [],
            "normalizer": {"type": "Replace", "pattern": {"String": " "}, "content": "▁"},
            "pre_tokenizer": null, "post_processor": null, "decoder": decoder,
            "model": {"type": "BPE", "vocab": vocab, "merges": [], "unk_token": "<unk>",
                      "byte_fallback": true, "fuse_unk": true},
        }))
    }

    fn from_json(json: Value) -> Tokenizer {
        Tokenizer::from_json(json.to_string().as_bytes()).unwrap()
    }

    fn joined(tokenizer: &Tokenizer, text: &str) -> Vec<u8> {
        let words = token_bytes(tokenizer, tokenizer.vocab_size()).unwrap();
        let ids = tokenizer.encode(text, false).unwrap();
        ids.iter()
            .flat_map(|&id| words[id as usize].clone())
            .collect()
    }

    const TEXT: &str = "he said: {\"naïve\": \"日本 \\n 🙂\"}\n\tab ab";

    #[test]
    fn the_tokens_of_a_text_hold_its_bytes() {
        let decoder = json!({"type": "Sequence", "decoders": [
            {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
            {"type": "ByteFallback"}, {"type": "Fuse"},
            {"type": "Strip", "content": " ", "start": 1, "stop": 0}]});
        for tokenizer in [byte_level_tokenizer(), sentence_piece_tokenizer(decoder)] {
            assert_eq!(joined(&tokenizer, TEXT), TEXT.as_bytes());
        }
    }

    #[test]
    fn special_tokens_are_marked_and_added_ones_are_their_text() {
        let words = token_bytes(&byte_level_tokenizer(), 262).unwrap();
        assert_eq!(words.len(), 262);
        assert_eq!(words[256], b"he");
        assert_eq!(words[257], b"\xFF<|end|>");
        assert_eq!(words[258], b"<a tool>");
        assert_eq!(words[0xFE], b"\xFE");
        assert!(words[0xFF].is_empty() && words[261].is_empty());
    }

    #[test]
    fn replacements_come_before_bytes() {
        let alphabet = byte_alphabet();
        let replaced = vec![("\u{10FFFF}".to_string(), String::new())];
        let byte_level = Spelling {
            byte_level: true,
            replaced: replaced.clone(),
            ..Default::default()
        };
        assert_eq!(byte_level.bytes_of("Ġhe\u{10FFFF}", &alphabet), b" he");
        let fallback = Spelling {
            byte_fallback: true,
            replaced,
            ..Default::default()
        };
        assert_eq!(fallback.bytes_of("<0xE4>\u{10FFFF}", &alphabet), b"\xE4");
    }

    #[test]
    fn metaspace_is_a_space_and_an_unknown_decoder_is_refused() {
        let metaspace = json!({"type": "Metaspace", "replacement": "▁", "prepend_scheme": "never",
                               "split": false});
        assert_eq!(
            token_bytes(&sentence_piece_tokenizer(metaspace), 261).unwrap()[260],
            b" ab"
        );
        let word_piece = json!({"type": "WordPiece", "prefix": "##", "cleanup": true});
        assert!(token_bytes(&sentence_piece_tokenizer(word_piece), 261).is_err());
        assert!(token_bytes(&sentence_piece_tokenizer(Value::Null), 261).is_err());
    }
}
