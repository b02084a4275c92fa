//! What octavo takes from Rust, behind the C functions of `include/*.h`.
//!
//! Handles are immutable once made and may be used from many threads at once. No panic leaves a
//! function: it comes back as `Status::Bug`.
#![deny(unsafe_op_in_unsafe_fn)]

mod border;
mod grammar;
mod grammar_ffi;
mod grammar_source;
mod hub;
mod hub_ffi;
mod json_dumps;
mod matcher;
mod python;
mod sha256_ffi;
mod template;
mod template_ffi;
mod template_guard;
mod template_source;
mod token_bytes;
mod tokenizer;
mod tokenizer_ffi;
