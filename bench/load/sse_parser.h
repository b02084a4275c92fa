// sse_parser.h - parses server-sent events from a byte stream split at any point. No MLX.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace octavo::bench {

// Lines may end in LF, CR LF or CR. Comments and fields other than data are skipped; the data lines
// of one event are joined by LF. An event without a terminating empty line is not reported.
class SseParser {
 public:
  using OnData = std::function<void(std::string_view data)>;

  // Calls on_data, which must not call feed, for each event that `bytes` completes.
  void feed(std::string_view bytes, const OnData& on_data);

 private:
  void end_line(const OnData& on_data);

  std::string line_;
  std::string data_;
  bool has_data_ = false;  // an event may have empty data
  bool after_cr_ = false;  // a following LF belongs to the same line end
};

}  // namespace octavo::bench
