//! A Hugging Face tokenizer without truncation and padding.

use crate::border::Failure;
use std::collections::HashSet;

pub struct Tokenizer {
    inner: tokenizers::Tokenizer,
    special: HashSet<u32>,
    vocab_size: usize,
}

impl Tokenizer {
    pub fn from_json(json: &[u8]) -> Result<Tokenizer, Failure> {
        let mut inner = tokenizers::Tokenizer::from_bytes(json).map_err(Failure::refused)?;
        inner.with_truncation(None).map_err(Failure::refused)?;
        inner.with_padding(None);

        let special = inner
            .get_added_tokens_decoder()
            .iter()
            .filter(|(_, token)| token.special)
            .map(|(id, _)| *id)
            .collect();
        let past_last_id = inner
            .get_vocab(true)
            .values()
            .max()
            .map_or(0, |&id| id as usize + 1);
        if past_last_id > i32::MAX as usize {
            return Err(Failure::refused("a token id exceeds 2^31"));
        }
        let vocab_size = past_last_id.max(inner.get_vocab_size(true));
        Ok(Tokenizer {
            inner,
            special,
            vocab_size,
        })
    }

    pub fn json(&self) -> Result<String, Failure> {
        self.inner.to_string(false).map_err(Failure::refused)
    }

    pub fn encode(&self, text: &str, add_special_tokens: bool) -> Result<Vec<u32>, Failure> {
        // "fast" omits the offsets; the ids are the same.
        let encoding = self
            .inner
            .encode_fast(text, add_special_tokens)
            .map_err(Failure::refused)?;
        Ok(encoding.get_ids().to_vec())
    }

    /// Ids outside the vocabulary are ignored.
    pub fn decode(&self, ids: &[u32], skip_special_tokens: bool) -> Result<String, Failure> {
        self.inner
            .decode(ids, skip_special_tokens)
            .map_err(Failure::refused)
    }

    pub fn token_to_id(&self, token: &str) -> Option<u32> {
        self.inner.token_to_id(token)
    }

    pub fn id_to_token(&self, id: u32) -> Option<String> {
        self.inner.id_to_token(id)
    }

    /// One past the largest id, added tokens included.
    pub fn vocab_size(&self) -> usize {
        self.vocab_size
    }

    /// The decoder in the form of tokenizer.json; null if there is none.
    pub fn decoder(&self) -> Result<serde_json::Value, Failure> {
        serde_json::to_value(self.inner.get_decoder()).map_err(Failure::refused)
    }

    pub fn is_special(&self, id: u32) -> bool {
        self.special.contains(&id)
    }
}
