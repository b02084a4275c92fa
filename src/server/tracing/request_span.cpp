#include "server/tracing/request_span.h"

#include <fmt/format.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

namespace octavo::server {
namespace {

using SpanJson = nlohmann::json;
using SpanClock = RequestSpan::Clock;

double seconds_between(SpanClock::time_point begin, SpanClock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

// 0.7, not the 0.699999988 that a float becomes as a double.
double short_double(float value) { return std::strtod(fmt::format("{}", value).c_str(), nullptr); }

SpanJson attributes_of(const RequestSpan& span) {
  SpanJson attributes = {{"gen_ai.request.id", span.request_id},
                         {"gen_ai.response.model", span.model},
                         {"gen_ai.response.finish_reasons", span.finish_reasons},
                         {"gen_ai.usage.prompt_tokens", span.prompt_tokens},
                         {"gen_ai.usage.cache_read.input_tokens", span.cached_tokens},
                         {"gen_ai.usage.completion_tokens", span.completion_tokens},
                         {"gen_ai.usage.num_sequences", span.sequences},
                         {"gen_ai.latency.e2e", seconds_between(span.arrival, span.end)}};
  if (const auto& sampling = span.sampling) {
    attributes["gen_ai.request.temperature"] = short_double(sampling->temperature);
    attributes["gen_ai.request.top_p"] = short_double(sampling->top_p);
    attributes["gen_ai.request.max_tokens"] = sampling->max_tokens;
    attributes["gen_ai.request.n"] = sampling->n;
  }
  if (const auto& work = span.work) {
    const auto add = [&](const char* name, SpanClock::time_point begin, SpanClock::time_point end) {
      attributes[std::string("gen_ai.latency.") + name] = seconds_between(begin, end);
    };
    add("time_in_queue", span.arrival, work->scheduled);
    add("time_to_first_token", span.arrival, work->first_token);
    add("time_in_model_prefill", work->scheduled, work->first_token);
    add("time_in_model_decode", work->first_token, work->last_token);
    add("time_in_model_inference", work->scheduled, work->last_token);
  }
  return attributes;
}

}  // namespace

TraceHeaders trace_headers(const HttpRequest& request) {
  TraceHeaders found;
  int parents = 0;
  for (const auto& [name, value] : request.headers) {
    if (equal_ignoring_case(name, "traceparent")) {
      found.traceparent = value;
      ++parents;
    } else if (equal_ignoring_case(name, "tracestate")) {
      found.tracestate += (found.tracestate.empty() ? "" : ",") + value;
    }
  }
  if (parents > 1) found.traceparent.clear();  // the standard does not say which one is right
  return found;
}

std::string span_json(const RequestSpan& span, const ClockPair& now) {
  const auto unix_ns = [&](SpanClock::time_point time) -> int64_t {
    const auto system = now.system.time_since_epoch() - (now.steady - time);
    return std::chrono::duration_cast<std::chrono::nanoseconds>(system).count();
  };
  SpanJson children = SpanJson::array();
  const auto add = [&](const char* name, SpanClock::time_point begin, SpanClock::time_point end) {
    children.push_back({{"name", name}, {"start_ns", unix_ns(begin)}, {"end_ns", unix_ns(end)}});
  };
  if (const auto& work = span.work) {
    add("queue", span.arrival, work->scheduled);
    add("prefill", work->scheduled, work->first_token);
    add("decode", work->first_token, work->last_token);
  }
  const SpanJson json = {{"name", "llm_request"},
                         {"traceparent", span.caller.traceparent},
                         {"tracestate", span.caller.tracestate},
                         {"start_ns", unix_ns(span.arrival)},
                         {"end_ns", unix_ns(span.end)},
                         {"error", span.error},
                         {"attributes", attributes_of(span)},
                         {"children", std::move(children)}};
  // Headers may hold any bytes.
  return json.dump(-1, ' ', false, SpanJson::error_handler_t::replace);
}

}  // namespace octavo::server
