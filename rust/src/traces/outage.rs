//! An exporter that logs the beginning and the end of an outage of the collector, once each.

use std::sync::Mutex;
use std::time::Duration;

use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SpanData, SpanExporter};

use super::collector::LastFailure;
use super::log::Log;

#[derive(Debug)]
pub struct WatchedExporter<E> {
    inner: E,
    /// Of the collector, as it may be logged.
    url: String,
    failure: LastFailure,
    log: Log,
    /// During an outage: the spans that were lost in failed exports.
    lost: Mutex<Option<usize>>,
}

impl<E: SpanExporter> WatchedExporter<E> {
    pub fn new(inner: E, url: String, failure: LastFailure, log: Log) -> WatchedExporter<E> {
        WatchedExporter {
            inner,
            url,
            failure,
            log,
            lost: Mutex::new(None),
        }
    }

    fn succeeded(&self) {
        if let Some(lost) = self.lost.lock().unwrap().take() {
            self.log.info(&format!(
                "the trace collector at {} accepts spans again; at least {lost} spans were lost",
                self.url
            ));
        }
    }

    fn failed(&self, spans: usize, error: &dyn std::fmt::Display) {
        let mut lost = self.lost.lock().unwrap();
        if lost.is_none() {
            let reason = Some(self.failure.take()).filter(|reason| !reason.is_empty());
            self.log.warn(&format!(
                "the trace collector at {} does not accept spans: {}. Spans are dropped until it does; requests are \
                 not affected. Check --otlp-traces-endpoint: it must be the collector's HTTP port (4318 by default, \
                 not 4317)",
                self.url,
                reason.unwrap_or_else(|| error.to_string())
            ));
        }
        *lost = Some(lost.unwrap_or(0) + spans);
    }
}

impl<E: SpanExporter> SpanExporter for WatchedExporter<E> {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let spans = batch.len();
        let result = self.inner.export(batch).await;
        match &result {
            Ok(()) => self.succeeded(),
            Err(error) => self.failed(spans, error),
        }
        result
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.inner.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.inner.set_resource(resource);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use opentelemetry_sdk::error::OTelSdkError;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    #[derive(Debug)]
    struct Flaky(Arc<AtomicBool>);

    impl SpanExporter for Flaky {
        async fn export(&self, _: Vec<SpanData>) -> OTelSdkResult {
            if self.0.load(Ordering::SeqCst) {
                return Ok(());
            }
            Err(OTelSdkError::InternalFailure("away".to_string()))
        }
    }

    #[test]
    fn an_outage_is_logged_once_at_its_beginning_and_once_at_its_end() {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let kept = lines.clone();
        let log = Log::new(move |warns, _| kept.lock().unwrap().push(warns));
        let works = Arc::new(AtomicBool::new(false));
        let exporter = WatchedExporter::new(
            Flaky(works.clone()),
            "url".to_string(),
            LastFailure::default(),
            log.clone(),
        );
        let export = || futures_executor::block_on(exporter.export(Vec::new())).is_ok();
        for now_works in [false, false, true, true, false, false] {
            works.store(now_works, Ordering::SeqCst);
            assert_eq!(export(), now_works);
        }
        assert_eq!(*lines.lock().unwrap(), [true, false, true]);
        log.close();
        works.store(true, Ordering::SeqCst);
        assert!(export());
        assert_eq!(lines.lock().unwrap().len(), 3);
    }
}
