//! Grammars that constrain an answer token by token: llguidance over the tokenizer's bytes.

use crate::border::{Failure, Status};
use crate::grammar_source::{Kind, Whitespace, source};
use crate::time_limit::TimeLimit;
use crate::token_bytes::token_bytes;
use crate::tokenizer::Tokenizer;
use llguidance::api::{ParserLimits, StopReason};
use llguidance::toktrie::{ApproximateTokEnv, TokEnv, TokRxInfo, TokTrie};
use llguidance::{ParserFactory, TokenParser};
use std::sync::Arc;
use std::time::Duration;

/// Reserved, not committed, while a grammar is compiled: parsers of nested text recurse.
const STACK_BYTES: usize = 64 << 20;
/// Building a grammar's lexer consumes about 50,000 per millisecond.
const INITIAL_LEXER_FUEL: u64 = 1_000_000;
/// Computing a mask consumes about 14,000 per millisecond.
const STEP_LEXER_FUEL: u64 = 200_000;
const STEP_ITEMS: usize = 50_000;
/// An object with 1,000 optional properties needs four per property.
const ITEMS_IN_ROW: usize = 4_500;
/// One or two kilobytes each, per request.
const LEXER_STATES: usize = 16_384;
/// Symbols in productions.
const GRAMMAR_SIZE: usize = 200_000;
/// Processor time for the first mask, and for each token later. Unoptimised builds are slower.
const FIRST_MASK_TIME: Duration = Duration::from_millis(400 * SLOWNESS);
const STEP_TIME: Duration = Duration::from_millis(60 * SLOWNESS);
const SLOWNESS: u64 = if cfg!(debug_assertions) { 30 } else { 1 };
/// What a parser takes besides its lexer and productions.
const BASE_BYTES: usize = 64 << 10;
/// Estimated: the productions of a byte of source.
const BYTES_PER_SOURCE_BYTE: usize = 32;
const MAX_MESSAGE_CHARACTERS: usize = 300;

/// State shared by all grammars over one vocabulary.
pub struct GrammarEnv {
    factory: ParserFactory,
    stop_tokens: Vec<u32>,
}

impl GrammarEnv {
    pub fn new(
        tokenizer: &Tokenizer,
        vocab_size: usize,
        stop_tokens: &[u32],
    ) -> Result<GrammarEnv, Failure> {
        let stop_tokens: Vec<u32> = stop_tokens
            .iter()
            .copied()
            .filter(|&id| (id as usize) < vocab_size)
            .collect();
        if stop_tokens.is_empty() {
            return Err(Failure::refused("the model has no stop token"));
        }
        let words = token_bytes(tokenizer, vocab_size)?;
        let size = u32::try_from(vocab_size).map_err(Failure::refused)?;
        let trie = TokTrie::from(&TokRxInfo::new(size, stop_tokens[0]), &words)
            .with_eos_tokens(&stop_tokens);
        let env: TokEnv = Arc::new(ApproximateTokEnv::new(trie));
        let mut factory = ParserFactory::new_simple(&env).map_err(Failure::refused)?;
        factory.quiet();
        *factory.limits_mut() = ParserLimits {
            max_items_in_row: ITEMS_IN_ROW,
            initial_lexer_fuel: INITIAL_LEXER_FUEL,
            step_lexer_fuel: STEP_LEXER_FUEL,
            step_max_items: STEP_ITEMS,
            max_lexer_states: LEXER_STATES,
            max_grammar_size: GRAMMAR_SIZE,
            precompute_large_lexemes: true,
            verbose_errors: false,
        };
        Ok(GrammarEnv {
            factory,
            stop_tokens,
        })
    }
}

/// A compiled grammar that allows at least one token. Its matchers share one lexer, which grows
/// with use and fails for all of them if it reaches a limit.
pub struct Grammar {
    pub(crate) parser: TokenParser,
    pub(crate) stop_tokens: Vec<u32>,
    source_bytes: usize,
}

impl Grammar {
    pub fn new(
        env: &GrammarEnv,
        kind: Kind,
        text: &str,
        whitespace: Whitespace,
    ) -> Result<Grammar, Failure> {
        stacker::grow(STACK_BYTES, || {
            let source = source(kind, text, whitespace)?;
            let mut parser = env
                .factory
                .create_parser(source)
                .map_err(|error| not_compiled(&error))?;
            parser.start_without_prompt();
            let mut grammar = Grammar {
                parser,
                stop_tokens: env.stop_tokens.clone(),
                source_bytes: text.len(),
            };
            let first = limited(&mut grammar.parser, FIRST_MASK_TIME, mask_of)?;
            if first.iter().all(|&word| word == 0) {
                return Err(Failure::refused(
                    "no text of this model's tokens matches it",
                ));
            }
            Ok(grammar)
        })
    }

    /// With a lexer of its own. Each request uses a copy, so that no request can use up the limits
    /// of another.
    pub fn copy(&self) -> Grammar {
        Grammar {
            parser: self.parser.deep_clone(),
            stop_tokens: self.stop_tokens.clone(),
            source_bytes: self.source_bytes,
        }
    }

    /// An estimate of the memory held now, the growth of the shared lexer included.
    pub fn bytes(&self) -> usize {
        let stats = self.parser.parser.lexer_stats();
        // Each state has a set of lexemes, which the lexer's own estimate leaves out.
        let sets = stats.num_states * (stats.num_regexps / 8 + 100);
        BASE_BYTES + stats.num_bytes + sets + self.source_bytes * BYTES_PER_SOURCE_BYTE
    }
}

/// Runs `work`; exceeding `time` is a `Failure`, after which the parser cannot be used.
fn limited<T>(
    parser: &mut TokenParser,
    time: Duration,
    work: impl FnOnce(&mut TokenParser) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let handle = parser.enable_cancellation();
    let limit = TimeLimit::start(&handle, time);
    let result = work(parser);
    drop(limit);
    if handle.is_cancelled() {
        let milliseconds = time.as_millis();
        return Err(Failure {
            status: Status::Limit,
            message: format!(
                "computing the allowed tokens took more than {milliseconds} ms; simplify the grammar"
            ),
        });
    }
    result
}

/// `limited` with the time of one token.
pub(crate) fn in_step_time<T>(
    parser: &mut TokenParser,
    work: impl FnOnce(&mut TokenParser) -> Result<T, Failure>,
) -> Result<T, Failure> {
    limited(parser, STEP_TIME, work)
}

/// Empty or all zero if no token is allowed.
pub(crate) fn mask_of(parser: &mut TokenParser) -> Result<Vec<u32>, Failure> {
    match parser.compute_mask() {
        Ok(mask) => Ok(mask.as_slice().to_vec()),
        Err(_) if parser.stop_reason() == StopReason::NoExtensionBias => Ok(Vec::new()),
        Err(error) => Err(limit(&error)),
    }
}

pub(crate) fn limit(error: &impl ToString) -> Failure {
    Failure {
        status: Status::Limit,
        ..refused(error)
    }
}

/// The engine's own messages about its fuel name settings that a client does not have.
fn not_compiled(error: &impl ToString) -> Failure {
    let message = error.to_string();
    if message.contains("fuel exhausted") || message.contains("initial_lexer_fuel") {
        return limit(&"its regular expressions or numbers take too much work");
    }
    refused(error)
}

/// Truncates the message, which may quote a long input.
fn refused(error: &impl ToString) -> Failure {
    let message = error.to_string();
    Failure::refused(
        message
            .chars()
            .take(MAX_MESSAGE_CHARACTERS)
            .collect::<String>(),
    )
}

/// C++ uses these handles from several threads at once.
const _: () = {
    const fn shared<T: Send + Sync>() {}
    shared::<GrammarEnv>();
    shared::<Grammar>();
};

#[cfg(test)]
#[path = "grammar_tests.rs"]
pub mod tests;
