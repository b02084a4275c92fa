#include "text/dialects/call_sink.h"

#include <fmt/format.h>

namespace octavo {

std::string json_escaped(char c) {
  switch (c) {
    case '"':
      return "\\\"";
    case '\\':
      return "\\\\";
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    default:
      if (static_cast<unsigned char>(c) < 0x20)
        return fmt::format("\\u{:04x}", static_cast<unsigned>(c));
      return std::string(1, c);
  }
}

std::string json_quoted(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) quoted += json_escaped(c);
  return quoted + '"';
}

}  // namespace octavo
