//! The C functions for grammars.
//!
//! # Safety
//! For every function here: handles are live and made by the matching `_new`, pointers with a size
//! are readable for that size, out pointers are writable, `error` is writable or null. A matcher is
//! used by one thread at a time.
#![allow(clippy::missing_safety_doc)]

use crate::border::{Failure, OwnedText, Status, free, guarded, slice, text};
use crate::grammar::{Grammar, GrammarEnv};
use crate::grammar_source::{Kind, Whitespace};
use crate::matcher::Matcher;
use crate::tokenizer::Tokenizer;

/// Mirrors `octavo_grammar_source` in the header.
#[repr(C)]
pub struct Source {
    kind: i32,
    text: *const u8,
    text_size: usize,
    no_whitespace: bool,
    whitespace: *const u8,
    whitespace_size: usize,
}

impl Source {
    fn kind(&self) -> Result<Kind, Failure> {
        [
            Kind::JsonSchema,
            Kind::JsonObject,
            Kind::Regex,
            Kind::Choice,
            Kind::Lark,
        ]
        .into_iter()
        .find(|&kind| kind as i32 == self.kind)
        .ok_or_else(|| Failure::refused("unknown kind of grammar"))
    }

    unsafe fn whitespace(&self) -> Result<Whitespace<'_>, Failure> {
        if self.no_whitespace {
            return Ok(Whitespace::Forbidden);
        }
        if self.whitespace_size == 0 {
            return Ok(Whitespace::Default);
        }
        unsafe { text(self.whitespace, self.whitespace_size) }.map(Whitespace::Pattern)
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn octavo_grammar_env_new(
    tokenizer: *const Tokenizer,
    vocab_size: usize,
    stop_tokens: *const u32,
    stop_token_count: usize,
    out: *mut *mut GrammarEnv,
    error: *mut OwnedText,
) -> Status {
    unsafe {
        guarded(error, || {
            let stop_tokens = slice(stop_tokens, stop_token_count);
            let env = GrammarEnv::new(&*tokenizer, vocab_size, stop_tokens)?;
            out.write(Box::into_raw(Box::new(env)));
            Ok(())
        })
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn octavo_grammar_env_free(env: *mut GrammarEnv) -> Status {
    unsafe { free(env) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn octavo_grammar_new(
    env: *const GrammarEnv,
    source: *const Source,
    out: *mut *mut Grammar,
    error: *mut OwnedText,
) -> Status {
    unsafe {
        guarded(error, || {
            let source = &*source;
            let text = text(source.text, source.text_size)?;
            let grammar = Grammar::new(&*env, source.kind()?, text, source.whitespace()?)?;
            out.write(Box::into_raw(Box::new(grammar)));
            Ok(())
        })
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn octavo_grammar_free(grammar: *mut Grammar) -> Status {
    unsafe { free(grammar) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn octavo_grammar_copy(
    grammar: *const Grammar,
    out: *mut *mut Grammar,
    error: *mut OwnedText,
) -> Status {
    unsafe {
        guarded(error, || {
            out.write(Box::into_raw(Box::new((*grammar).copy())));
            Ok(())
        })
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn octavo_grammar_bytes(
    grammar: *const Grammar,
    out: *mut usize,
    error: *mut OwnedText,
) -> Status {
    unsafe {
        guarded(error, || {
            out.write((*grammar).bytes());
            Ok(())
        })
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn octavo_matcher_new(
    grammar: *const Grammar,
    out: *mut *mut Matcher,
    error: *mut OwnedText,
) -> Status {
    unsafe {
        guarded(error, || {
            out.write(Box::into_raw(Box::new(Matcher::new(&*grammar))));
            Ok(())
        })
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn octavo_matcher_free(matcher: *mut Matcher) -> Status {
    unsafe { free(matcher) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn octavo_matcher_mask(
    matcher: *mut Matcher,
    words: *mut u32,
    word_count: usize,
    error: *mut OwnedText,
) -> Status {
    unsafe {
        guarded(error, || {
            (*matcher).mask(std::slice::from_raw_parts_mut(words, word_count))
        })
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn octavo_matcher_accept(
    matcher: *mut Matcher,
    token: u32,
    accepted: *mut bool,
    error: *mut OwnedText,
) -> Status {
    unsafe {
        guarded(error, || {
            accepted.write((*matcher).accept(token)?);
            Ok(())
        })
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn octavo_matcher_take_back(
    matcher: *mut Matcher,
    tokens: usize,
    error: *mut OwnedText,
) -> Status {
    unsafe { guarded(error, || (*matcher).take_back(tokens)) }
}
