//! What one rendering may still do: bytes of text and lists it may make, and work (values visited,
//! text searched) that costs time without making anything. A limit on steps bounds neither: a string
//! can double in each of forty steps.

use minijinja::{Error, ErrorKind};
use std::cell::Cell;
use std::ptr::null;
use std::sync::atomic::{AtomicBool, Ordering};

/// For small requests; the allowance grows with the request, because templates copy its text.
const MADE_BYTES: u64 = 64 << 20;
const MADE_PER_CONTEXT_BYTE: u64 = 16;
const MAX_MADE_BYTES: u64 = 256 << 20;
const WORK_PER_STEP: u64 = 16;
const WORK_PER_CONTEXT_BYTE: u64 = 16;
const MAX_WORK: u64 = 100_000_000;
/// Bytes of text that are searched or compared in the time of one value visited.
pub const TEXT_PER_WORK: usize = 16;

thread_local! {
    // A rendering runs on one thread from start to end.
    static BYTES_LEFT: Cell<u64> = const { Cell::new(0) };
    static WORK_LEFT: Cell<u64> = const { Cell::new(0) };
    static MADE_LIMIT: Cell<u64> = const { Cell::new(0) };
    static STOP: Cell<*const AtomicBool> = const { Cell::new(null()) };
}

/// Marks an error caused by a limit, so that it is not taken for a mistake of the template.
#[derive(Debug)]
pub struct Exceeded(pub String);

/// Marks an error caused by the caller's flag.
#[derive(Debug)]
pub struct Stopped;

impl std::fmt::Display for Exceeded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::fmt::Display for Stopped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("stopped")
    }
}

impl std::error::Error for Exceeded {}
impl std::error::Error for Stopped {}

/// The budget of the rendering on this thread; ends with the value.
pub struct Scope<'a>(std::marker::PhantomData<&'a AtomicBool>);

impl Scope<'_> {
    pub fn begin(steps: u64, context_bytes: usize, stop: Option<&AtomicBool>) -> Scope<'_> {
        let context = context_bytes as u64;
        let bytes =
            (MADE_BYTES + context.saturating_mul(MADE_PER_CONTEXT_BYTE)).min(MAX_MADE_BYTES);
        BYTES_LEFT.set(bytes);
        MADE_LIMIT.set(bytes);
        WORK_LEFT.set(
            steps.saturating_mul(WORK_PER_STEP).min(MAX_WORK) + context * WORK_PER_CONTEXT_BYTE,
        );
        STOP.set(stop.map_or(null(), std::ptr::from_ref));
        Scope(std::marker::PhantomData)
    }
}

impl Drop for Scope<'_> {
    fn drop(&mut self) {
        STOP.set(null());
    }
}

pub fn exceeded(message: String) -> Error {
    Error::new(ErrorKind::InvalidOperation, message.clone()).with_source(Exceeded(message))
}

fn too_much_text() -> Error {
    exceeded(format!(
        "the chat template made more than {} MiB of text",
        MADE_LIMIT.get() >> 20
    ))
}

/// Fails if the caller asked to stop.
pub fn check_stop() -> Result<(), Error> {
    let stop = STOP.get();
    // SAFETY: the flag outlives the `Scope` that set the pointer, and its end clears the pointer.
    if !stop.is_null() && unsafe { &*stop }.load(Ordering::Relaxed) {
        return Err(Error::new(ErrorKind::InvalidOperation, "stopped").with_source(Stopped));
    }
    Ok(())
}

/// Fails if `bytes` more cannot be made; takes nothing.
pub fn check_bytes(bytes: usize) -> Result<(), Error> {
    if bytes as u64 > BYTES_LEFT.get() {
        return Err(too_much_text());
    }
    Ok(())
}

pub fn spend_bytes(bytes: usize) -> Result<(), Error> {
    check_stop()?;
    match BYTES_LEFT.get().checked_sub(bytes as u64) {
        Some(left) => {
            BYTES_LEFT.set(left);
            Ok(())
        }
        None => Err(too_much_text()),
    }
}

pub fn spend_work(work: usize) -> Result<(), Error> {
    check_stop()?;
    match WORK_LEFT.get().checked_sub(work as u64) {
        Some(left) => {
            WORK_LEFT.set(left);
            Ok(())
        }
        None => Err(Error::from(ErrorKind::OutOfFuel)),
    }
}
