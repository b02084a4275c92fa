//! The Rust part of octavo, called through the C functions of `include/*.h`.
//!
//! Handles are immutable and may be used from several threads at once, except matchers. No panic
//! crosses the border: it is returned as `Status::Bug`.
#![deny(unsafe_op_in_unsafe_fn)]

mod border;
mod charsmap;
mod format_keys;
mod grammar;
mod grammar_ffi;
mod grammar_source;
mod growth_limits;
mod http_ffi;
mod hub;
mod hub_ffi;
mod images;
mod images_ffi;
mod json_dumps;
mod matcher;
mod media;
mod media_ffi;
mod post_processor_limits;
mod python;
mod sha256_ffi;
mod template;
mod template_budget;
mod template_code;
mod template_constants;
mod template_ffi;
mod template_guard;
mod template_slice;
mod template_source;
mod time_limit;
mod tls;
mod token_bytes;
mod token_pair;
mod tokenizer;
mod tokenizer_ffi;
mod traces;
mod tracing_ffi;
mod word_limits;
