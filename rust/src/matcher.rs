//! The state of one answer under a grammar.

use crate::border::Failure;
use crate::grammar::{Grammar, in_step_time, limit, mask_of};
use llguidance::TokenParser;
use llguidance::api::StopReason;

/// Not shared between threads.
pub struct Matcher {
    parser: TokenParser,
    stop_tokens: Vec<u32>,
    /// A stop token was accepted: nothing may follow.
    ended: bool,
}

impl Matcher {
    pub fn new(grammar: &Grammar) -> Matcher {
        Matcher {
            // Not deep_clone: the lexer may take megabytes.
            parser: grammar.parser.clone(),
            stop_tokens: grammar.stop_tokens.clone(),
            ended: false,
        }
    }

    /// Sets the bits of the tokens allowed next and clears the rest of `words`.
    pub fn mask(&mut self, words: &mut [u32]) -> Result<(), Failure> {
        words.fill(0);
        if self.ended {
            return Ok(());
        }
        if self.parser.stop_reason() != StopReason::NotStopped {
            for &token in &self.stop_tokens {
                if let Some(word) = words.get_mut(token as usize / 32) {
                    *word |= 1 << (token % 32);
                }
            }
            return Ok(());
        }
        let mask = in_step_time(&mut self.parser, mask_of)?;
        for (word, allowed) in words.iter_mut().zip(mask) {
            *word = allowed;
        }
        Ok(())
    }

    /// Returns false, leaving the state unchanged, if `token` is not allowed.
    pub fn accept(&mut self, token: u32) -> Result<bool, Failure> {
        if self.ended {
            return Ok(false);
        }
        if self.stop_tokens.contains(&token) {
            self.ended =
                self.parser.stop_reason() != StopReason::NotStopped || self.parser.is_accepting();
            return Ok(self.ended);
        }
        in_step_time(&mut self.parser, |parser| {
            if !parser.validate_token(token).map_err(|e| limit(&e))? {
                return Ok(false);
            }
            parser.consume_token(token).map_err(|e| limit(&e))?;
            parser.check_stop().map_err(|e| limit(&e))?;
            Ok(true)
        })
    }

    /// Undoes the last `tokens` accepted tokens.
    pub fn take_back(&mut self, mut tokens: usize) -> Result<(), Failure> {
        if tokens > 0 && self.ended {
            self.ended = false;
            tokens -= 1;
        }
        self.parser.rollback(tokens).map_err(|e| limit(&e))
    }
}

/// C++ may move a matcher between threads.
const _: () = {
    const fn moved<T: Send>() {}
    moved::<Matcher>();
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grammar::tests::{STOP, allowed, begin, env};
    use crate::grammar_source::{Kind, Whitespace};

    #[test]
    fn nothing_is_allowed_after_the_stop_token() {
        let mut matcher = begin(Kind::Choice, r#"["a"]"#);
        assert_eq!(allowed(&mut matcher), [u32::from(b'a')]);
        assert!(!matcher.accept(STOP).unwrap());
        assert!(matcher.accept(u32::from(b'a')).unwrap());
        assert_eq!(allowed(&mut matcher), [STOP]);
        assert!(!matcher.accept(u32::from(b'a')).unwrap());
        assert!(matcher.accept(STOP).unwrap());
        assert!(allowed(&mut matcher).is_empty());
        assert!(!matcher.accept(STOP).unwrap());
    }

    #[test]
    fn taking_tokens_back_restores_the_earlier_mask() {
        let mut matcher = begin(Kind::Regex, "he(x|y)z");
        let fresh = allowed(&mut matcher);
        assert!(matcher.accept(256).unwrap());
        let after_he = allowed(&mut matcher);
        for token in [u32::from(b'x'), u32::from(b'z'), STOP] {
            assert!(matcher.accept(token).unwrap());
        }
        matcher.take_back(3).unwrap();
        assert_eq!(allowed(&mut matcher), after_he);
        matcher.take_back(1).unwrap();
        assert_eq!(allowed(&mut matcher), fresh);
    }

    #[test]
    fn whitespace_is_bounded_or_follows_the_pattern() {
        let schema = r#"{"type":"array","items":{"type":"null"}}"#;
        let begin = |whitespace| {
            let grammar = Grammar::new(&env(), Kind::JsonSchema, schema, whitespace).unwrap();
            Matcher::new(&grammar)
        };
        let spaces = |mut matcher: Matcher| {
            assert!(matcher.accept(u32::from(b'[')).unwrap());
            matcher.accept(u32::from(b'\n')).unwrap();
            (0..100)
                .take_while(|_| matcher.accept(u32::from(b' ')).unwrap())
                .count()
        };
        assert_eq!(spaces(begin(Whitespace::Default)), 32);
        assert_eq!(spaces(begin(Whitespace::Forbidden)), 0);
        assert_eq!(spaces(begin(Whitespace::Pattern(" {1,3}"))), 3);
    }
}
