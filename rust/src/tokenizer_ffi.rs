//! The C functions for `Tokenizer`.
//!
//! # Safety
//! For every function here: handles are live and made by `octavo_tokenizer_new`, pointers with a
//! size are readable for that size, out pointers are writable, `error` is writable or null.
#![allow(clippy::missing_safety_doc)]

use crate::border::{Failure, OwnedIds, OwnedText, Status, free, guarded, slice, text};
use crate::tokenizer::Tokenizer;
use std::ptr::null_mut;

#[unsafe(no_mangle)]
pub unsafe extern "C" fn octavo_tokenizer_new(
    json: *const u8,
    json_size: usize,
    out: *mut *mut Tokenizer,
    error: *mut OwnedText,
) -> Status {
    unsafe {
        guarded(error, || {
            let tokenizer = Tokenizer::from_json(slice(json, json_size))?;
            out.write(Box::into_raw(Box::new(tokenizer)));
            Ok(())
        })
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn octavo_tokenizer_free(tokenizer: *mut Tokenizer) -> Status {
    unsafe { free(tokenizer) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn octavo_tokenizer_json(
    tokenizer: *const Tokenizer,
    out: *mut OwnedText,
    error: *mut OwnedText,
) -> Status {
    unsafe {
        guarded(error, || {
            out.write(OwnedText::from((*tokenizer).json()?));
            Ok(())
        })
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn octavo_tokenizer_encode(
    tokenizer: *const Tokenizer,
    data: *const u8,
    size: usize,
    add_special_tokens: bool,
    out: *mut OwnedIds,
    error: *mut OwnedText,
) -> Status {
    unsafe {
        guarded(error, || {
            let ids = (*tokenizer).encode(text(data, size)?, add_special_tokens)?;
            out.write(OwnedIds::from(ids));
            Ok(())
        })
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn octavo_tokenizer_encode_marked(
    tokenizer: *const Tokenizer,
    data: *const u8,
    size: usize,
    marker: u32,
    add_special_tokens: bool,
    out: *mut OwnedIds,
    error: *mut OwnedText,
) -> Status {
    unsafe {
        guarded(error, || {
            let marker = char::from_u32(marker)
                .ok_or_else(|| Failure::refused("the marker is not a character"))?;
            let text = text(data, size)?;
            let ids = (*tokenizer).encode_marked(text, marker, add_special_tokens)?;
            out.write(OwnedIds::from(ids));
            Ok(())
        })
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn octavo_tokenizer_encode_pair(
    tokenizer: *const Tokenizer,
    texts: *const *const u8,
    sizes: *const usize,
    max_tokens: usize,
    out: *mut OwnedIds,
    second_text: *mut usize,
    error: *mut OwnedText,
) -> Status {
    unsafe {
        guarded(error, || {
            let first = text(*texts, *sizes)?;
            let second = text(*texts.add(1), *sizes.add(1))?;
            let pair = (*tokenizer).encode_pair(first, second, max_tokens)?;
            second_text.write(pair.second_text);
            out.write(OwnedIds::from(pair.ids));
            Ok(())
        })
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn octavo_tokenizer_special_tokens(
    tokenizer: *const Tokenizer,
    out: *mut OwnedText,
) -> Status {
    unsafe {
        guarded(null_mut(), || {
            let texts = serde_json::json!((*tokenizer).special_tokens());
            out.write(OwnedText::from(texts.to_string()));
            Ok(())
        })
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn octavo_tokenizer_decode(
    tokenizer: *const Tokenizer,
    ids: *const u32,
    count: usize,
    skip_special_tokens: bool,
    out: *mut OwnedText,
    error: *mut OwnedText,
) -> Status {
    unsafe {
        guarded(error, || {
            let decoded = (*tokenizer).decode(slice(ids, count), skip_special_tokens)?;
            out.write(OwnedText::from(decoded));
            Ok(())
        })
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn octavo_tokenizer_token_to_id(
    tokenizer: *const Tokenizer,
    data: *const u8,
    size: usize,
    found: *mut bool,
    id: *mut u32,
) -> Status {
    unsafe {
        guarded(null_mut(), || {
            let known = (*tokenizer).token_to_id(text(data, size)?);
            found.write(known.is_some());
            id.write(known.unwrap_or(0));
            Ok(())
        })
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn octavo_tokenizer_id_to_token(
    tokenizer: *const Tokenizer,
    id: u32,
    found: *mut bool,
    out: *mut OwnedText,
) -> Status {
    unsafe {
        guarded(null_mut(), || {
            let known = (*tokenizer).id_to_token(id);
            found.write(known.is_some());
            out.write(OwnedText::from(known.unwrap_or_default()));
            Ok(())
        })
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn octavo_tokenizer_vocab_size(
    tokenizer: *const Tokenizer,
    size: *mut usize,
) -> Status {
    unsafe {
        guarded(null_mut(), || {
            size.write((*tokenizer).vocab_size());
            Ok(())
        })
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn octavo_tokenizer_is_special(
    tokenizer: *const Tokenizer,
    id: u32,
    special: *mut bool,
) -> Status {
    unsafe {
        guarded(null_mut(), || {
            special.write((*tokenizer).is_special(id));
            Ok(())
        })
    }
}
