//! The C functions of `include/octavo_tracing.h`.

use std::ffi::c_void;
use std::time::Duration;

use serde::Deserialize;

use crate::border::{Failure, OwnedText, Status, free, guarded, text};
use crate::traces::{Log, SpanRecord, Tracer};

/// Mirrors `octavo_tracer_log`.
#[repr(C)]
pub struct TracerLog {
    report: extern "C" fn(context: *mut c_void, warns: bool, text: *const u8, size: usize),
    context: *mut c_void,
}

// SAFETY: the header requires that the function may be called on the tracer's thread.
unsafe impl Send for TracerLog {}

impl TracerLog {
    fn call(&self, warns: bool, text: &str) {
        (self.report)(self.context, warns, text.as_ptr(), text.len());
    }
}

#[derive(Deserialize)]
struct Options {
    endpoint: String,
    version: String,
}

/// # Safety
/// `options` points at that many bytes, `log.report` may be called with its context on any thread until
/// `octavo_tracer_stop` returns, `out` is writable, `error` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn octavo_tracer_new(
    options: *const u8,
    options_size: usize,
    log: TracerLog,
    out: *mut *mut Tracer,
    error: *mut OwnedText,
) -> Status {
    unsafe {
        guarded(error, || {
            let options: Options =
                serde_json::from_str(text(options, options_size)?).map_err(Failure::refused)?;
            let log = Log::new(move |warns, line| log.call(warns, line));
            let tracer = Tracer::start(&options.endpoint, options.version, log);
            let tracer = tracer.map_err(Failure::refused)?;
            out.write(tracer.map_or(std::ptr::null_mut(), |tracer| {
                Box::into_raw(Box::new(tracer))
            }));
            Ok(())
        })
    }
}

/// # Safety
/// `tracer` is alive, `span` points at that many bytes, `error` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn octavo_tracer_record(
    tracer: *const Tracer,
    span: *const u8,
    span_size: usize,
    error: *mut OwnedText,
) -> Status {
    unsafe {
        guarded(error, || {
            let span: SpanRecord =
                serde_json::from_str(text(span, span_size)?).map_err(Failure::refused)?;
            (*tracer).record(span);
            Ok(())
        })
    }
}

/// # Safety
/// `tracer` is alive, `sent` is writable, `error` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn octavo_tracer_stop(
    tracer: *const Tracer,
    timeout_ms: u64,
    sent: *mut bool,
    error: *mut OwnedText,
) -> Status {
    unsafe {
        guarded(error, || {
            sent.write((*tracer).stop(Duration::from_millis(timeout_ms)));
            Ok(())
        })
    }
}

/// # Safety
/// `tracer` came from `octavo_tracer_new` and is freed once; it may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn octavo_tracer_free(tracer: *mut Tracer) -> Status {
    unsafe { free(tracer) }
}
