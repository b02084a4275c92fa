// line_prefix.h - puts the name of a process before each line of its output. No MLX.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "base/log_text.h"

namespace octavo {

// Output of other machines must not command a terminal, so control characters are escaped.
class LinePrefix {
 public:
  explicit LinePrefix(std::string prefix) : prefix_(std::move(prefix)) {}

  // Returns the lines that are complete. A line of over 16 KiB is divided.
  std::string add(std::string_view bytes) {
    std::string lines;
    for (const char c : bytes) {
      if (c != '\n') line_ += c;
      if (c == '\n' || line_.size() >= kLongestLine) lines += take_line();
    }
    return lines;
  }

  // Returns what is left at the end.
  std::string rest() { return line_.empty() ? "" : take_line(); }

 private:
  static constexpr size_t kLongestLine = 16u << 10;

  std::string take_line() {
    std::string text = prefix_;
    if (line_.ends_with('\r')) line_.pop_back();
    append_log_text(text, std::exchange(line_, {}));
    return text + "\n";
  }

  std::string prefix_;
  std::string line_;
};

}  // namespace octavo
