#include "models/format/printable.h"

#include <fmt/format.h>

namespace octavo {

std::string printable(std::string_view text) {
  constexpr size_t kShown = 120;
  std::string out;
  for (const char c : text.substr(0, kShown)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte > 0x7e) {
      out += fmt::format("\\x{:02x}", byte);
    } else {
      out += c;
    }
  }
  if (text.size() > kShown) out += "...";
  return out;
}

std::string in_quotes(std::string_view text) { return '"' + printable(text) + '"'; }

}  // namespace octavo
