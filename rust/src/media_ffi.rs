//! The C functions of `include/octavo_media.h`.
//!
//! # Safety
//! For every function here: handles are live and made by `octavo_media_new`, pointers with a size are readable for
//! that size, out pointers are writable, `error` is writable or null, `stop` is null or points to a flag that outlives
//! the call.
#![allow(clippy::missing_safety_doc)]

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use serde::Deserialize;

use crate::border::{Failure, OwnedText, Status, free, guarded, text};
use crate::media::{FetchError, FetchLimits, Fetcher};

#[derive(Deserialize)]
struct Options {
    hosts: Vec<String>,
    most_bytes: u64,
    timeout_ms: u64,
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn octavo_media_new(
    options: *const u8,
    options_size: usize,
    out: *mut *mut Fetcher,
    error: *mut OwnedText,
) -> Status {
    unsafe {
        guarded(error, || {
            let options: Options =
                serde_json::from_str(text(options, options_size)?).map_err(Failure::refused)?;
            let limits = FetchLimits {
                bytes: options.most_bytes,
                time: Duration::from_millis(options.timeout_ms),
            };
            let fetcher = Fetcher::new(&options.hosts, limits).map_err(Failure::refused)?;
            out.write(Box::into_raw(Box::new(fetcher)));
            Ok(())
        })
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn octavo_media_free(handle: *mut Fetcher) -> Status {
    unsafe { free(handle) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn octavo_media_fetch(
    handle: *const Fetcher,
    url: *const u8,
    url_size: usize,
    stop: *const AtomicBool,
    out: *mut OwnedText,
    error: *mut OwnedText,
) -> Status {
    unsafe {
        guarded(error, || {
            let file = (*handle).fetch(text(url, url_size)?, stop.as_ref());
            out.write(OwnedText::from(file.map_err(|error| match error {
                FetchError::Refused(reason) => Failure::refused(reason),
                FetchError::Busy => Failure {
                    status: Status::Limit,
                    message: "too many images are being fetched".into(),
                },
                FetchError::Stopped => Failure {
                    status: Status::Stopped,
                    message: "stopped".into(),
                },
            })?));
            Ok(())
        })
    }
}
