//! Turns the records of finished requests into spans and queues them.

use std::time::{Duration, SystemTime};

use opentelemetry::trace::{
    Span as _, SpanBuilder, SpanKind, Status, TraceContextExt, Tracer as _, TracerProvider as _,
};
use opentelemetry::{Array, Context, InstrumentationScope, KeyValue, StringValue, Value};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{BatchSpanProcessor, SdkTracer, SdkTracerProvider};
use serde::Deserialize;
use serde_json::Value as Json;

use super::collector::{Collector, LastFailure};
use super::log::Log;
use super::outage::WatchedExporter;
use super::settings;
use super::trace_parent::parent;

/// A finished request, with the parts of it that become child spans.
#[derive(Deserialize)]
pub struct SpanRecord {
    name: String,
    traceparent: String,
    tracestate: String,
    start_ns: u64,
    end_ns: u64,
    error: String,
    attributes: serde_json::Map<String, Json>,
    children: Vec<ChildRecord>,
}

#[derive(Deserialize)]
struct ChildRecord {
    name: String,
    start_ns: u64,
    end_ns: u64,
}

pub struct Tracer {
    provider: SdkTracerProvider,
    tracer: SdkTracer,
    log: Log,
}

impl Tracer {
    /// None if the environment disables OpenTelemetry.
    pub fn start(endpoint: &str, version: String, log: Log) -> Result<Option<Tracer>, String> {
        let env: settings::Environment = &settings::environment;
        let url = settings::traces_url(endpoint)?;
        if settings::is_disabled(env) {
            return Ok(None);
        }
        settings::check(env, &log)?;
        let timeout = settings::timeout(env);
        let failure = LastFailure::default();
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(Collector::new(timeout, failure.clone())?)
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(&url)
            .with_timeout(timeout)
            .build()
            .map_err(|error| format!("{endpoint}: {error}"))?;
        let exporter = WatchedExporter::new(exporter, settings::shown(&url), failure, log.clone());
        let mut resource = Resource::builder();
        if !settings::names_service(env) {
            resource = resource.with_service_name(settings::SERVICE_NAME);
        }
        let provider = SdkTracerProvider::builder()
            .with_resource(resource.build())
            .with_span_processor(BatchSpanProcessor::builder(exporter).build())
            .build();
        Ok(Some(Tracer::of(provider, version, log)))
    }

    fn of(provider: SdkTracerProvider, version: String, log: Log) -> Tracer {
        let scope = InstrumentationScope::builder(settings::SERVICE_NAME);
        Tracer {
            tracer: provider.tracer_with_scope(scope.with_version(version).build()),
            provider,
            log,
        }
    }

    pub fn record(&self, record: SpanRecord) {
        let caller = parent(&record.traceparent, &record.tracestate);
        let context = match caller {
            Some(caller) => Context::new().with_remote_span_context(caller),
            None => Context::new(),
        };
        let builder = SpanBuilder::from_name(record.name)
            .with_kind(SpanKind::Server)
            .with_start_time(time(record.start_ns));
        let mut span = self.tracer.build_with_context(builder, &context);
        if !span.is_recording() {
            return; // not sampled
        }
        let within = Context::new().with_remote_span_context(span.span_context().clone());
        for child in record.children {
            let builder = SpanBuilder::from_name(child.name).with_start_time(time(child.start_ns));
            let mut part = self.tracer.build_with_context(builder, &within);
            part.end_with_timestamp(time(child.end_ns));
        }
        let attributes = record.attributes.into_iter();
        span.set_attributes(
            attributes
                .filter_map(|(name, json)| value(json).map(|value| KeyValue::new(name, value))),
        );
        if !record.error.is_empty() {
            span.set_status(Status::error(record.error));
        }
        span.end_with_timestamp(time(record.end_ns));
    }

    /// Whether all queued spans were sent, or given up, in time.
    pub fn stop(&self, timeout: Duration) -> bool {
        let sent = self.provider.shutdown_with_timeout(timeout).is_ok();
        self.log.close();
        sent
    }
}

fn time(unix_ns: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_nanos(unix_ns)
}

/// None for JSON that has no counterpart in an attribute.
fn value(json: Json) -> Option<Value> {
    match json {
        Json::String(text) => Some(Value::from(text)),
        Json::Bool(flag) => Some(Value::from(flag)),
        Json::Number(number) => match number.as_i64() {
            Some(whole) => Some(Value::from(whole)),
            None => number.as_f64().map(Value::from),
        },
        Json::Array(items) => {
            let texts = items.into_iter().filter_map(|item| match item {
                Json::String(text) => Some(StringValue::from(text)),
                _ => None,
            });
            Some(Value::Array(Array::String(texts.collect())))
        }
        Json::Null | Json::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use opentelemetry::trace::SpanId;
    use opentelemetry_sdk::error::OTelSdkResult;
    use opentelemetry_sdk::trace::{Sampler, SpanData, SpanExporter as Exporter};
    use std::sync::{Arc, Mutex};

    #[derive(Clone, Debug, Default)]
    struct Kept(Arc<Mutex<Vec<SpanData>>>);

    impl Exporter for Kept {
        async fn export(&self, mut batch: Vec<SpanData>) -> OTelSdkResult {
            self.0.lock().unwrap().append(&mut batch);
            Ok(())
        }
    }

    fn record(traceparent: &str) -> SpanRecord {
        serde_json::from_value(serde_json::json!({
            "name": "llm_request", "traceparent": traceparent, "tracestate": "a=1",
            "start_ns": 1_000, "end_ns": 5_000, "error": "the client left",
            "attributes": {"text": "x", "whole": 3, "real": 1.0, "list": ["a", "b"], "none": null},
            "children": [{"name": "queue", "start_ns": 1_000, "end_ns": 2_000}],
        }))
        .unwrap()
    }

    fn spans_of(sampler: Sampler, traceparent: &str) -> Vec<SpanData> {
        let kept = Kept::default();
        let provider = SdkTracerProvider::builder()
            .with_sampler(sampler)
            .with_simple_exporter(kept.clone())
            .build();
        let log = Log::new(|_, _| ());
        let tracer = Tracer::of(provider, "1".to_string(), log);
        tracer.record(record(traceparent));
        assert!(tracer.stop(Duration::from_secs(1)));
        tracer.record(record(traceparent)); // dropped: the tracer has stopped
        kept.0.lock().unwrap().clone()
    }

    fn parent_based() -> Sampler {
        Sampler::ParentBased(Box::new(Sampler::AlwaysOn))
    }

    const SAMPLED: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn a_record_becomes_a_span_with_its_parts() {
        let spans = spans_of(parent_based(), SAMPLED);
        let [part, span] = spans.as_slice() else {
            panic!("{} spans", spans.len());
        };
        assert_eq!(span.name, "llm_request");
        assert_eq!(span.span_kind, SpanKind::Server);
        assert_eq!(span.parent_span_id.to_string(), "b7ad6b7169203331");
        assert_eq!(span.span_context.trace_state().header(), "a=1");
        assert_eq!(span.end_time, time(5_000));
        assert_eq!(span.status, Status::error("the client left"));
        assert_eq!(span.attributes.len(), 4);
        assert!(span.attributes.contains(&KeyValue::new("whole", 3)));
        assert!(span.attributes.contains(&KeyValue::new("real", 1.0)));
        assert_eq!((part.name.as_ref(), part.end_time), ("queue", time(2_000)));
        assert_eq!(part.parent_span_id, span.span_context.span_id());
        assert_eq!(part.span_context.trace_id(), span.span_context.trace_id());
    }

    #[test]
    fn the_sampled_flag_of_the_caller_decides() {
        assert!(spans_of(parent_based(), &SAMPLED.replace("-01", "-00")).is_empty());
        let off = Sampler::ParentBased(Box::new(Sampler::AlwaysOff));
        assert_eq!(spans_of(off.clone(), SAMPLED).len(), 2);
        assert!(spans_of(off, "").is_empty());
    }

    #[test]
    fn without_a_caller_a_trace_begins() {
        let spans = spans_of(parent_based(), "malformed");
        assert_eq!(spans[1].parent_span_id, SpanId::INVALID);
        assert!(spans[1].span_context.is_valid());
    }
}
