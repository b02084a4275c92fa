#include "bench/load/sse_parser.h"

namespace octavo::bench {

void SseParser::feed(std::string_view bytes, const OnData& on_data) {
  while (!bytes.empty()) {
    if (after_cr_ && bytes[0] == '\n') bytes.remove_prefix(1);
    after_cr_ = false;
    const size_t end = bytes.find_first_of("\r\n");
    line_ += bytes.substr(0, end);
    if (end == std::string_view::npos) return;
    after_cr_ = bytes[end] == '\r';
    bytes.remove_prefix(end + 1);
    end_line(on_data);
  }
}

void SseParser::end_line(const OnData& on_data) {
  constexpr std::string_view kData = "data:";
  if (line_.empty()) {
    if (has_data_) on_data(data_);
    data_.clear();
    has_data_ = false;
  } else if (line_.starts_with(kData)) {
    std::string_view value = std::string_view(line_).substr(kData.size());
    if (value.starts_with(' ')) value.remove_prefix(1);
    if (has_data_) data_ += '\n';
    data_ += value;
    has_data_ = true;
  }
  line_.clear();
}

}  // namespace octavo::bench
