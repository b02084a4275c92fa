#include "front/stream_error.h"

#include <charconv>

#include "api/api_error.h"
#include "api/fields/json_text.h"
#include "api/named_event.h"
#include "api/openai/envelope.h"

namespace octavo::front {

void SequenceNumbers::saw(std::string_view events) {
  // Inside a JSON string the quotes would be escaped.
  constexpr std::string_view kMember = "\"sequence_number\":";
  const size_t last = events.rfind(kMember);
  if (last == std::string_view::npos) return;
  const char* const digits = events.data() + last + kMember.size();
  int64_t number = 0;
  if (std::from_chars(digits, events.data() + events.size(), number).ec == std::errc())
    next_ = number + 1;
}

std::string stream_error(std::string_view path, const RequestError& error,
                         const SequenceNumbers& numbers) {
  std::string out;
  if (path.starts_with("/api/")) {  // Ollama's lines of JSON
    out = api::dump({{"error", error.what()}}) + "\n";
  } else if (path.starts_with("/v1/responses")) {
    api::append_named_event(
        out, "error",
        api::dump({{"type", "error"},
                   {"sequence_number", numbers.next()},
                   {"code", error.status() == 503 ? "server_unavailable" : "server_error"},
                   {"message", error.what()},
                   {"param", nullptr}}));
  } else if (api::error_style_of(path) == api::ErrorStyle::kAnthropic) {
    api::append_named_event(out, "error", api::anthropic_error_body(error.status(), error.what()));
  } else {
    api::append_sse_error(out, error);
  }
  return out;
}

}  // namespace octavo::front
