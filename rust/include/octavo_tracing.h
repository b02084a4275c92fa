/* octavo_tracing.h - sends spans to an OpenTelemetry collector (OTLP over HTTP), implemented in Rust.
 *
 * The rules of octavo_rust.h apply. A tracer may be used from several threads at once. */
#pragma once

#include <octavo_rust.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct octavo_tracer octavo_tracer;

/* Gets one line for the log, on the tracer's own thread or in octavo_tracer_new(). Must not throw. */
typedef struct octavo_tracer_log {
  void (*report)(void* context, bool warns, const char* text, size_t size);
  void* context;
} octavo_tracer_log;

/* `options` is a JSON object: endpoint (an http or https URL) and version (of this program). All
 * other settings come from OpenTelemetry's environment variables. Starts a thread with a bounded
 * queue. `out` is null if OTEL_SDK_DISABLED is true. */
octavo_rust_status octavo_tracer_new(const char* options, size_t options_size,
                                     octavo_tracer_log log, octavo_tracer** out,
                                     octavo_text* error);

/* Queues a span if it is sampled; drops it if the queue is full. Never waits. `span` is a JSON object:
 * name, traceparent and tracestate (headers, or empty), start_ns and end_ns (Unix time), error
 * (empty: none), attributes (an object of strings, numbers and arrays of strings), and children,
 * each with name, start_ns and end_ns. */
octavo_rust_status octavo_tracer_record(const octavo_tracer* tracer, const char* span,
                                        size_t span_size, octavo_text* error);

/* Sends the queued spans and ends the thread, and waits for both for at most timeout_ms; `sent` says
 * whether that was enough. Then the log is not called any more, and later spans are dropped. */
octavo_rust_status octavo_tracer_stop(const octavo_tracer* tracer, uint64_t timeout_ms, bool* sent,
                                      octavo_text* error);
octavo_rust_status octavo_tracer_free(octavo_tracer* tracer);

#ifdef __cplusplus
}
#endif
