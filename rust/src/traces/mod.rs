//! Spans for an OpenTelemetry collector, over HTTP with protobuf.
//!
//! Batches, retries and environment variables are the SDK's. This module adds the HTTP client (`ureq`), a strict reader
//! of `traceparent`, and log lines about a collector that does not take spans.

mod collector;
mod log;
mod outage;
mod settings;
mod trace_parent;
mod tracer;

pub use log::Log;
pub use tracer::{SpanRecord, Tracer};
