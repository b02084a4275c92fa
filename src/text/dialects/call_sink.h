// call_sink.h - receives a call while it is being read.
#pragma once

#include <string>
#include <string_view>

namespace octavo {

inline constexpr size_t kMaxCallName = 256;

class CallSink {
 public:
  virtual ~CallSink() = default;
  virtual void begin_call(const std::string& name) = 0;
  // Appends to the arguments' JSON text.
  virtual void add_arguments(std::string_view text) = 0;
};

inline bool is_space(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }
inline bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-' || c == '.' || c == ':' || c == '/';
}

// `c` escaped for use inside a JSON string.
std::string json_escaped(char c);
// `text` as a JSON string, with quotes.
std::string json_quoted(std::string_view text);

}  // namespace octavo
