//! The C functions for `Template`.
//!
//! # Safety
//! For every function here: handles are live and made by `octavo_template_new`, pointers with a
//! size are readable for that size, out pointers are writable, `error` is writable or null, `stop` is
//! null or points to a flag that outlives the call.
#![allow(clippy::missing_safety_doc)]

use crate::border::{OwnedText, Status, free, guarded, slice, text};
use crate::template::{Limits, Template};
use std::sync::atomic::AtomicBool;

#[unsafe(no_mangle)]
pub unsafe extern "C" fn octavo_template_new(
    source: *const u8,
    source_size: usize,
    limits: Limits,
    out: *mut *mut Template,
    error: *mut OwnedText,
) -> Status {
    unsafe {
        guarded(error, || {
            let template = Template::new(text(source, source_size)?, limits)?;
            out.write(Box::into_raw(Box::new(template)));
            Ok(())
        })
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn octavo_template_free(handle: *mut Template) -> Status {
    unsafe { free(handle) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn octavo_template_render(
    handle: *const Template,
    context: *const u8,
    context_size: usize,
    steps: u64,
    stop: *const AtomicBool,
    out: *mut OwnedText,
    error: *mut OwnedText,
) -> Status {
    unsafe {
        guarded(error, || {
            let rendered = (*handle).render(slice(context, context_size), steps, stop.as_ref())?;
            out.write(OwnedText::from(rendered));
            Ok(())
        })
    }
}
