// completion_stream.h - a streamed completion or chat completion, heard piece by piece. No MLX.
#pragma once

#include <string>
#include <string_view>

#include "bench/load/load_request.h"
#include "bench/load/sse_parser.h"

namespace octavo::bench {

class CompletionStream {
 public:
  // `record` outlives the stream; prompt_tokens and sent are the caller's to write.
  explicit CompletionStream(RequestRecord& record) : record_(record) {}

  // `bytes` of the answer's body arrived at `seconds`.
  void hear(std::string_view bytes, double seconds);

  // Nothing more will come; `transport_error` says why if the body did not end by itself. Settles
  // the record's failure. After [DONE] or an error event the transport's end is of no interest.
  void finish(const std::string& transport_error);

 private:
  void on_event(std::string_view data, double seconds);

  RequestRecord& record_;
  SseParser parser_;
  bool heard_choices_ = false;
  bool heard_finish_ = false;
  bool heard_usage_ = false;
  bool heard_done_ = false;
  std::string error_;
};

}  // namespace octavo::bench
