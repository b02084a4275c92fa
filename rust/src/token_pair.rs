//! What a pair of texts needs besides the tokenizer.

use tokenizers::Encoding;

/// Two texts with the special tokens of a pair.
pub struct Pair {
    pub ids: Vec<u32>,
    /// The index of the first token of type 1; 0: all are of type 0.
    pub second_text: usize,
}

/// How many tokens of two texts to keep, `most` together.
pub fn longest_first(first: usize, second: usize, most: usize) -> (usize, usize) {
    if first + second <= most {
        return (first, second);
    }
    let (shorter, half) = (first.min(second), most / 2);
    if shorter > half {
        let longer = most - half;
        return if first > second {
            (longer, half)
        } else {
            (half, longer)
        };
    }
    if first > second {
        (most - shorter, shorter)
    } else {
        (shorter, most - shorter)
    }
}

/// Encoding::truncate() would keep the rest in pieces of this size, and a pair would get them all.
pub fn truncated(encoding: Encoding, kept: usize) -> Encoding {
    if encoding.len() <= kept {
        return encoding;
    }
    Encoding::new(
        encoding.get_ids()[..kept].to_vec(),
        encoding.get_type_ids()[..kept].to_vec(),
        encoding.get_tokens()[..kept].to_vec(),
        encoding.get_word_ids()[..kept].to_vec(),
        encoding.get_offsets()[..kept].to_vec(),
        encoding.get_special_tokens_mask()[..kept].to_vec(),
        encoding.get_attention_mask()[..kept].to_vec(),
        vec![],
        Default::default(),
    )
}

#[cfg(test)]
pub mod tests {
    use super::longest_first;
    use crate::border::Failure;
    use crate::token_bytes::tests::byte_level_tokenizer;
    use crate::tokenizer::Tokenizer;
    use serde_json::{Value, json};

    pub fn loaded(model: Value, post_processor: Value) -> Result<Tokenizer, Failure> {
        let json = json!({
            "version": "1.0", "truncation": null, "padding": null, "added_tokens": [],
            "normalizer": {"type": "Lowercase"}, "pre_tokenizer": {"type": "BertPreTokenizer"},
            "post_processor": post_processor,
            "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": true}, "model": model,
        });
        Tokenizer::from_json(json.to_string().as_bytes())
    }

    /// "a" is 4, "b" is 5.
    pub fn word_pieces(longest_word: usize) -> Value {
        let vocab =
            json!({"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3, "a": 4, "b": 5, "##b": 6});
        json!({"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
               "max_input_chars_per_word": longest_word, "vocab": vocab})
    }

    fn pair_of(tokenizer: &Tokenizer, texts: [&str; 2], max_tokens: usize) -> (Vec<u32>, usize) {
        let pair = tokenizer
            .encode_pair(texts[0], texts[1], max_tokens)
            .unwrap();
        (pair.ids, pair.second_text)
    }

    #[test]
    fn a_pair_has_the_special_tokens_of_its_template() {
        let bert = json!({"type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2]});
        let bert = loaded(word_pieces(100), bert).unwrap();
        assert_eq!(
            pair_of(&bert, ["A ab", "b x"], 0),
            (vec![2, 4, 4, 6, 3, 5, 1, 3], 5)
        );
        assert_eq!(pair_of(&bert, ["", ""], 0), (vec![2, 3, 3], 2));
        let roberta = json!({"type": "RobertaProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2],
                             "trim_offsets": true, "add_prefix_space": false});
        let roberta = loaded(word_pieces(100), roberta).unwrap();
        assert_eq!(
            pair_of(&roberta, ["a", "b"], 0),
            (vec![2, 4, 3, 3, 5, 3], 0)
        );
        let plain = loaded(word_pieces(100), Value::Null).unwrap();
        assert_eq!(pair_of(&plain, ["a", "b"], 0), (vec![4, 5], 0));
        assert_eq!(
            pair_of(&byte_level_tokenizer(), ["a<|end|>", "he"], 0),
            (vec![97, 257, 256], 0)
        );
    }

    #[test]
    fn a_long_pair_loses_the_end_of_its_longer_text() {
        let bert = json!({"type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2]});
        let bert = loaded(word_pieces(100), bert).unwrap();
        assert_eq!(
            pair_of(&bert, ["a", "b b a a"], 6),
            (vec![2, 4, 3, 5, 5, 3], 3)
        );
        assert_eq!(
            pair_of(&bert, ["a a b", "b a"], 5),
            (vec![2, 4, 3, 5, 3], 3)
        );
        assert_eq!(pair_of(&bert, ["a", "b"], 3), (vec![2, 3, 3], 2));
        assert!(bert.encode_pair("a", "b", 2).is_err());
    }

    #[test]
    fn the_longer_text_is_cut_first() {
        assert_eq!(longest_first(3, 4, 7), (3, 4));
        assert_eq!(longest_first(3, 9, 8), (3, 5));
        assert_eq!(longest_first(9, 3, 8), (5, 3));
        assert_eq!(longest_first(9, 8, 7), (4, 3));
        assert_eq!(longest_first(8, 9, 7), (3, 4));
        assert_eq!(longest_first(5, 5, 7), (3, 4));
        assert_eq!(longest_first(5, 0, 0), (0, 0));
    }
}
