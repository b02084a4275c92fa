//! A Hugging Face tokenizer without truncation and padding.

use crate::border::Failure;
use crate::growth_limits;
use crate::post_processor_limits;
use crate::token_pair::{Pair, longest_first, truncated};
use crate::word_limits;
use std::collections::HashSet;
use tokenizers::{Encoding, Model, OffsetType, PostProcessor, PreTokenizedString, PreTokenizer};

pub struct Tokenizer {
    inner: tokenizers::Tokenizer,
    special: HashSet<u32>,
    vocab_size: usize,
}

impl Tokenizer {
    pub fn from_json(json: &[u8]) -> Result<Tokenizer, Failure> {
        growth_limits::check(json)?;
        let mut inner = tokenizers::Tokenizer::from_bytes(json).map_err(Failure::refused)?;
        word_limits::check(inner.get_model())?;
        inner.with_truncation(None).map_err(Failure::refused)?;
        inner.with_padding(None);
        post_processor_limits::check(&inner)?;

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

    /// Encodes `text` without its markers. A marker inside the spelling of an added token keeps it
    /// from being recognised there, so it is encoded as text.
    pub fn encode_marked(
        &self,
        text: &str,
        marker: char,
        add_special_tokens: bool,
    ) -> Result<Vec<u32>, Failure> {
        let inner = &self.inner;
        let mut parts = inner
            .get_added_vocabulary()
            .extract_and_normalize(inner.get_normalizer(), text);
        parts
            .normalize(|part| {
                if part.get().contains(marker) {
                    part.filter(|c| c != marker);
                }
                Ok(())
            })
            .map_err(Failure::refused)?;
        let encoding = self
            .encoding(parts, 0)
            .and_then(|encoding| inner.post_process(encoding, None, add_special_tokens))
            .map_err(Failure::refused)?;
        Ok(encoding.get_ids().to_vec())
    }

    /// Joins the texts as the post-processor does, or the second after the first if there is none. If
    /// `max_tokens` is not 0 and the pair has more tokens, the longer text loses tokens at its end, then
    /// both do: "longest first".
    pub fn encode_pair(
        &self,
        first: &str,
        second: &str,
        max_tokens: usize,
    ) -> Result<Pair, Failure> {
        let inner = &self.inner;
        let encode = |text: &str, type_id: u32| {
            let parts = inner
                .get_added_vocabulary()
                .extract_and_normalize(inner.get_normalizer(), text);
            self.encoding(parts, type_id).map_err(Failure::refused)
        };
        let (mut first, mut second) = (encode(first, 0)?, encode(second, 1)?);
        if max_tokens != 0 {
            let added = inner
                .get_post_processor()
                .map_or(0, |processor| processor.added_tokens(true));
            let left = max_tokens.checked_sub(added).ok_or_else(|| {
                Failure::refused(format!(
                    "{max_tokens} tokens are less than the {added} special tokens of a pair"
                ))
            })?;
            let kept = longest_first(first.len(), second.len(), left);
            first = truncated(first, kept.0);
            second = truncated(second, kept.1);
        }
        let pair = inner
            .post_process(first, Some(second), true)
            .map_err(Failure::refused)?;
        let second_text = pair.get_type_ids().iter().position(|&id| id == 1);
        Ok(Pair {
            ids: pair.get_ids().to_vec(),
            second_text: second_text.unwrap_or(0),
        })
    }

    fn encoding(
        &self,
        mut parts: PreTokenizedString,
        type_id: u32,
    ) -> tokenizers::Result<Encoding> {
        if let Some(pre_tokenizer) = self.inner.get_pre_tokenizer() {
            pre_tokenizer.pre_tokenize(&mut parts)?;
        }
        self.inner
            .get_model()
            .tokenize_in_pretokenized(&mut parts, None)?;
        parts.into_encoding(None, type_id, OffsetType::None)
    }

    /// The spellings of the tokens marked `special`.
    pub fn special_tokens(&self) -> Vec<String> {
        let added = self.inner.get_added_tokens_decoder();
        let mut texts: Vec<String> = added
            .values()
            .filter(|token| token.special)
            .map(|token| token.content.clone())
            .collect();
        texts.sort_unstable();
        texts
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

#[cfg(test)]
mod tests {
    use crate::token_bytes::tests::byte_level_tokenizer;

    const MARKER: char = '\u{fdd0}';

    #[test]
    fn a_marker_keeps_a_token_from_being_recognised() {
        let tokenizer = byte_level_tokenizer();
        let encode = |text: &str| tokenizer.encode_marked(text, MARKER, false).unwrap();
        let bytes = |text: &str| text.bytes().map(u32::from).collect::<Vec<_>>();
        assert_eq!(encode("<|end|>"), [257]);
        assert_eq!(encode("<\u{fdd0}|end|>"), bytes("<|end|>"));
        assert_eq!(
            encode("a<|end|>b<\u{fdd0}|end|>c<a tool>\u{fdd0}"),
            [bytes("a"), vec![257], bytes("b<|end|>c"), vec![258]].concat()
        );
        // Merges and words reach across a marker.
        assert_eq!(encode("h\u{fdd0}e"), [256]);
    }

    #[test]
    fn text_without_markers_is_encoded_as_always() {
        let tokenizer = byte_level_tokenizer();
        for text in [
            "",
            "he said <|end|>  x\n<a tool>",
            "日本 🙂",
            "<|end|><|end|>",
        ] {
            for special in [false, true] {
                assert_eq!(
                    tokenizer.encode_marked(text, MARKER, special).unwrap(),
                    tokenizer.encode(text, special).unwrap()
                );
            }
        }
    }

    #[test]
    fn only_special_tokens_are_listed() {
        assert_eq!(byte_level_tokenizer().special_tokens(), ["<|end|>"]);
    }
}
