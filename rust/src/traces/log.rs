//! Log lines of the tracer, which the caller of the library writes.

use std::sync::{Arc, Mutex};

type Write = dyn Fn(bool, &str) + Send;

/// Copies write to the same log.
#[derive(Clone)]
pub struct Log(Arc<Mutex<Option<Box<Write>>>>);

impl Log {
    pub fn new(write: impl Fn(bool, &str) + Send + 'static) -> Log {
        Log(Arc::new(Mutex::new(Some(Box::new(write)))))
    }

    pub fn warn(&self, line: &str) {
        self.write(true, line);
    }

    pub fn info(&self, line: &str) {
        self.write(false, line);
    }

    /// Afterwards nothing is written, not even by a call that is under way on another thread.
    pub fn close(&self) {
        *self.0.lock().unwrap() = None;
    }

    fn write(&self, warns: bool, line: &str) {
        if let Some(write) = &*self.0.lock().unwrap() {
            write(warns, line);
        }
    }
}

impl std::fmt::Debug for Log {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Log")
    }
}
