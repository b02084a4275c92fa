// request_span.h - what tracing reports about one finished request, with vLLM's names.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "server/http/http.h"

namespace octavo::server {

// The caller's headers of W3C Trace Context, unchecked.
struct TraceHeaders {
  std::string traceparent = {};  // empty: none, or several
  std::string tracestate = {};   // all headers of that name
};

TraceHeaders trace_headers(const HttpRequest& request);

struct RequestSpan {
  using Clock = std::chrono::steady_clock;

  struct Sampling {
    float temperature = 0;
    float top_p = 1;
    int max_tokens = 0;
    int n = 1;
  };

  // When the engine worked on the request: from its first sequence to its last token.
  struct Work {
    Clock::time_point scheduled = {};
    Clock::time_point first_token = {};
    Clock::time_point last_token = {};
  };

  TraceHeaders caller = {};
  std::string request_id = {};
  std::string model = {};
  std::optional<Sampling> sampling = {};  // none: embeddings
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;  // included in prompt_tokens
  int64_t completion_tokens = 0;
  size_t sequences = 0;                          // prompts x n
  std::vector<std::string> finish_reasons = {};  // of the first sequences
  Clock::time_point arrival = {};
  Clock::time_point end = {};
  std::optional<Work> work = {};  // none: it ended before the first token
  std::string error = {};         // why it ended early or failed; empty: it did not
};

// A moment on both clocks: spans have Unix times.
struct ClockPair {
  std::chrono::steady_clock::time_point steady = {};
  std::chrono::system_clock::time_point system = {};
};

// As octavo_tracer_record() takes it (octavo_tracing.h).
std::string span_json(const RequestSpan& span, const ClockPair& now);

// Takes spans. Any thread.
class SpanSink {
 public:
  virtual ~SpanSink() = default;
  // Never waits.
  virtual void record(const RequestSpan& span) = 0;
};

}  // namespace octavo::server
