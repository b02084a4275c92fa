//! The C border: statuses, owned buffers that cross it, and the function that catches panics.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

/// Mirrors `octavo_rust_status` in the header.
#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    Ok = 0,
    Refused = 1,
    Raised = 2,
    Limit = 3,
    Bug = 4,
    Stopped = 5,
}

#[derive(Debug)]
pub struct Failure {
    pub status: Status,
    pub message: String,
}

impl Failure {
    pub fn refused(message: impl ToString) -> Failure {
        Failure {
            status: Status::Refused,
            message: message.to_string(),
        }
    }
}

/// UTF-8 text, or the bytes of an HTTP answer, owned by the receiver; mirrors `octavo_text`.
#[repr(C)]
pub struct OwnedText {
    data: *mut u8,
    size: usize,
}

/// Token ids owned by the receiver; mirrors `octavo_ids`.
#[repr(C)]
pub struct OwnedIds {
    data: *mut u32,
    size: usize,
}

fn leak<T>(values: Vec<T>) -> (*mut T, usize) {
    let size = values.len();
    (Box::into_raw(values.into_boxed_slice()).cast::<T>(), size)
}

/// # Safety
/// `data` and `size` came from `leak` and are reclaimed once.
unsafe fn reclaim<T>(data: *mut T, size: usize) {
    if !data.is_null() {
        drop(unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(data, size)) });
    }
}

impl From<String> for OwnedText {
    fn from(text: String) -> OwnedText {
        let (data, size) = leak(text.into_bytes());
        OwnedText { data, size }
    }
}

impl From<Vec<u8>> for OwnedText {
    fn from(bytes: Vec<u8>) -> OwnedText {
        let (data, size) = leak(bytes);
        OwnedText { data, size }
    }
}

impl From<Vec<u32>> for OwnedIds {
    fn from(ids: Vec<u32>) -> OwnedIds {
        let (data, size) = leak(ids);
        OwnedIds { data, size }
    }
}

/// Runs `body` and writes the message of a failure or panic to `error` unless that is null.
///
/// # Safety
/// `error` is null or writable.
pub unsafe fn guarded(error: *mut OwnedText, body: impl FnOnce() -> Result<(), Failure>) -> Status {
    silence_panics();
    let failure = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => return Status::Ok,
        Ok(Err(failure)) => failure,
        Err(panic) => Failure {
            status: Status::Bug,
            message: panic_message(panic.as_ref()),
        },
    };
    if !error.is_null() {
        unsafe { error.write(OwnedText::from(failure.message)) };
    }
    failure.status
}

/// The caller receives a panic's message as an error, so Rust's note on stderr would be redundant.
fn silence_panics() {
    static ONCE: Once = Once::new();
    if !cfg!(test) {
        ONCE.call_once(|| std::panic::set_hook(Box::new(|_| {})));
    }
}

fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let detail = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    detail.unwrap_or("panic without a message").to_string()
}

/// Destroys a handle that crossed the border; null is allowed.
///
/// # Safety
/// `handle` came from `Box::into_raw` in the matching `_new` function and is freed once.
pub unsafe fn free<T>(handle: *mut T) -> Status {
    unsafe {
        guarded(std::ptr::null_mut(), || {
            if !handle.is_null() {
                drop(Box::from_raw(handle));
            }
            Ok(())
        })
    }
}

/// # Safety
/// `data` points at `size` values that outlive the borrow; it may be null when `size` is 0.
pub unsafe fn slice<'a, T>(data: *const T, size: usize) -> &'a [T] {
    if size == 0 {
        &[]
    } else {
        unsafe { std::slice::from_raw_parts(data, size) }
    }
}

/// # Safety
/// As for `slice`.
pub unsafe fn text<'a>(data: *const u8, size: usize) -> Result<&'a str, Failure> {
    std::str::from_utf8(unsafe { slice(data, size) }).map_err(Failure::refused)
}

/// # Safety
/// `text` came from this library and is freed once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn octavo_text_free(text: OwnedText) -> Status {
    unsafe {
        guarded(std::ptr::null_mut(), || {
            reclaim(text.data, text.size);
            Ok(())
        })
    }
}

/// # Safety
/// `ids` came from this library and is freed once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn octavo_ids_free(ids: OwnedIds) -> Status {
    unsafe {
        guarded(std::ptr::null_mut(), || {
            reclaim(ids.data, ids.size);
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_a_status_and_a_message() {
        let mut error = OwnedText::from(String::new());
        let status = unsafe { guarded(&mut error, || panic!("broken {}", 7)) };
        assert_eq!(status, Status::Bug);
        let message = unsafe { text(error.data, error.size) }.unwrap().to_string();
        assert_eq!(message, "broken 7");
        unsafe { octavo_text_free(error) };
    }
}
