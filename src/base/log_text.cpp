#include "base/log_text.h"

#include <cstddef>
#include <cstdint>

namespace octavo {
namespace {

uint8_t byte_at(std::string_view text, size_t at) { return static_cast<uint8_t>(text[at]); }

// Bytes of the UTF-8 character at the start of `text`, which is not empty; 0 if it is invalid.
size_t utf8_length(std::string_view text) {
  const uint8_t first = byte_at(text, 0);
  if (first < 0x80) return 1;
  const size_t length = first < 0xc2   ? 0
                        : first < 0xe0 ? 2
                        : first < 0xf0 ? 3
                        : first < 0xf5 ? 4
                                       : 0;
  if (length == 0 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i)
    if ((byte_at(text, i) & 0xc0) != 0x80) return 0;
  // Overlong forms, surrogates, and numbers above U+10FFFF.
  const uint8_t second = byte_at(text, 1);
  const bool wrong = (first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f) ||
                     (first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f);
  return wrong ? 0 : length;
}

// The code of the control character at the start of `text`, or -1.
int control_code(std::string_view text, size_t length) {
  const uint8_t first = byte_at(text, 0);
  if (length == 1) return first < 0x20 || first == 0x7f ? first : -1;
  return length == 2 && first == 0xc2 && byte_at(text, 1) < 0xa0 ? byte_at(text, 1) : -1;
}

void append_control(std::string& out, int code) {
  constexpr std::string_view kHex = "0123456789abcdef";
  if (code == '\n') {
    out += "\\n";
    return;
  }
  out += "\\u00";
  out += kHex[static_cast<size_t>(code >> 4)];
  out += kHex[static_cast<size_t>(code & 15)];
}

void append_each(std::string& out, std::string_view text, bool in_quotes) {
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    const int control = length == 0 ? -1 : control_code(text, length);
    if (length == 0) {
      out += "\xef\xbf\xbd";
    } else if (control >= 0) {
      append_control(out, control);
    } else {
      if (in_quotes && (text[0] == '"' || text[0] == '\\')) out += '\\';
      out += text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
}

}  // namespace

bool is_clean_log_text(std::string_view text) {
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    if (length == 0 || control_code(text, length) >= 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

void append_log_text(std::string& out, std::string_view text) { append_each(out, text, false); }

void append_log_quoted(std::string& out, std::string_view text) {
  out += '"';
  append_each(out, text, true);
  out += '"';
}

}  // namespace octavo
