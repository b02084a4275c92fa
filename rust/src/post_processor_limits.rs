//! Bounds the tokens that a tokenizer's post-processor adds: a template in the file can name a text or a list
//! of special tokens any number of times.

use crate::border::Failure;
use tokenizers::{Encoding, PostProcessor, Tokenizer};

/// Special tokens around a text or a pair of texts. Models have up to four.
const MAX_ADDED: usize = 256;

/// Call after truncation has been removed.
pub fn check(tokenizer: &Tokenizer) -> Result<(), Failure> {
    let Some(processor) = tokenizer.get_post_processor() else {
        return Ok(());
    };
    // Before the trial below, which makes them.
    let most = processor
        .added_tokens(false)
        .max(processor.added_tokens(true));
    if most > MAX_ADDED {
        return Err(Failure::refused(format!(
            "its post-processor adds {most} tokens to a text; at most {MAX_ADDED} are supported"
        )));
    }
    for second in [None, Some(one_token())] {
        let texts = 1 + usize::from(second.is_some());
        // Processors may refuse pairs; then requests with a pair are refused.
        if let Ok(encoding) = tokenizer.post_process(one_token(), second, true)
            && encoding.len() > texts + MAX_ADDED
        {
            return Err(Failure::refused("its post-processor repeats the text"));
        }
    }
    Ok(())
}

fn one_token() -> Encoding {
    Encoding::new(
        vec![0],
        vec![0],
        vec![String::new()],
        vec![None],
        vec![(0, 0)],
        vec![0],
        vec![1],
        vec![],
        Default::default(),
    )
}

#[cfg(test)]
mod tests {
    use crate::token_pair::tests::{loaded, word_pieces};
    use serde_json::{Value, json};

    fn refused(single: Vec<Value>, ids: usize) -> Option<String> {
        let special = json!({"id": "a", "ids": vec![4; ids], "tokens": vec!["a"; ids]});
        let template = json!({"type": "TemplateProcessing", "single": single,
            "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {"a": special}});
        loaded(word_pieces(100), template).err().map(|e| e.message)
    }

    #[test]
    fn templates_that_repeat_are_refused() {
        let text = json!({"Sequence": {"id": "A", "type_id": 0}});
        let special = json!({"SpecialToken": {"id": "a", "type_id": 0}});
        assert_eq!(
            refused(vec![special.clone(), text.clone(), special.clone()], 1),
            None
        );
        let message = refused(vec![special.clone(); 20], 20).unwrap();
        assert!(message.contains("adds 400 tokens"), "{message}");
        let message = refused(vec![text; 300], 1).unwrap();
        assert!(message.contains("repeats the text"), "{message}");
    }
}
