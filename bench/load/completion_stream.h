// completion_stream.h - parses a streamed completion or chat completion piece by piece. No MLX.
#pragma once

#include <string>
#include <string_view>

#include "bench/load/load_request.h"
#include "bench/load/sse_parser.h"

namespace octavo::bench {

class CompletionStream {
 public:
  // `record` must outlive the stream. The caller sets prompt_tokens and sent.
  explicit CompletionStream(RequestRecord& record) : record_(record) {}

  // Call when `bytes` of the response body arrive at `seconds`.
  void receive(std::string_view bytes, double seconds);

  // Call at the end of the body, with the transport's error if there was one. Sets the record's
  // failure. A transport error after [DONE] or an error event is ignored.
  void finish(const std::string& transport_error);

 private:
  void on_event(std::string_view data, double seconds);

  RequestRecord& record_;
  SseParser parser_;
  bool saw_choices_ = false;
  bool saw_finish_ = false;
  bool saw_usage_ = false;
  bool saw_done_ = false;
  std::string error_;
};

}  // namespace octavo::bench
