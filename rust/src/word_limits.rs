//! Bounds the time that a model takes for a long word. Published models are far below these limits.

use crate::border::Failure;
use tokenizers::models::ModelWrapper;

/// WordPiece takes time proportional to the square of a word's length, and longer words are unknown.
/// BERT has 100.
const MAX_WORD_CHARACTERS: usize = 256;
/// Unigram looks up every token that starts at a character. XLM-RoBERTa's tokens have up to 48 bytes.
const MAX_TOKEN_BYTES: usize = 1024;

pub fn check(model: &ModelWrapper) -> Result<(), Failure> {
    match model {
        ModelWrapper::WordPiece(model) if model.max_input_chars_per_word > MAX_WORD_CHARACTERS => {
            Err(Failure::refused(format!(
                "its max_input_chars_per_word is {}; at most {MAX_WORD_CHARACTERS} is supported",
                model.max_input_chars_per_word
            )))
        }
        ModelWrapper::Unigram(model) => {
            match model
                .iter()
                .position(|(token, _)| token.len() > MAX_TOKEN_BYTES)
            {
                Some(id) => Err(Failure::refused(format!(
                    "its token {id} has more than {MAX_TOKEN_BYTES} bytes"
                ))),
                None => Ok(()),
            }
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use crate::token_pair::tests::{loaded, word_pieces};
    use serde_json::{Value, json};

    #[test]
    fn models_that_take_long_for_a_word_are_refused() {
        assert!(loaded(word_pieces(256), Value::Null).is_ok());
        let slow = loaded(word_pieces(257), Value::Null).err().unwrap();
        assert!(slow.message.contains("max_input_chars_per_word"));
        let unigram = |longest: usize| {
            let vocab = json!([["<unk>", 0.0], ["a".repeat(longest), -1.0]]);
            json!({"type": "Unigram", "unk_id": 0, "byte_fallback": false, "vocab": vocab})
        };
        assert!(loaded(unigram(1024), Value::Null).is_ok());
        let slow = loaded(unigram(1025), Value::Null).err().unwrap();
        assert!(slow.message.contains("more than 1024 bytes"));
    }
}
