#include "text/utf8.h"

#include <algorithm>
#include <cstdint>

namespace octavo {
namespace {

using Byte = unsigned char;

struct Step {
  size_t size;  // bytes of the character or of the invalid part
  bool valid;
};

bool within(Byte value, int low, int high) { return value >= low && value <= high; }

// Classifies the start of `bytes`, which must not be empty.
Step next_step(std::string_view bytes) {
  const auto at = [&](size_t i) { return static_cast<Byte>(bytes[i]); };
  const Byte first = at(0);
  if (first < 0x80) return {1, true};
  const size_t length = within(first, 0xC2, 0xDF)   ? 2
                        : within(first, 0xE0, 0xEF) ? 3
                        : within(first, 0xF0, 0xF4) ? 4
                                                    : 0;
  if (length == 0) return {1, false};
  for (size_t i = 1; i < length; ++i) {
    int low = 0x80;
    int high = 0xBF;
    if (i == 1) {  // excludes overlong forms, surrogates and values over U+10FFFF
      if (first == 0xE0) low = 0xA0;
      if (first == 0xED) high = 0x9F;
      if (first == 0xF0) low = 0x90;
      if (first == 0xF4) high = 0x8F;
    }
    if (i >= bytes.size() || !within(at(i), low, high)) return {i, false};
  }
  return {length, true};
}

bool is_space(uint32_t c) {
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 ||
         c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F ||
         c == 0x205F || c == 0x3000;
}

uint32_t code_point(std::string_view character) {
  const auto at = [&](size_t i) { return static_cast<uint32_t>(static_cast<Byte>(character[i])); };
  switch (character.size()) {
    case 1:
      return at(0);
    case 2:
      return (at(0) & 0x1F) << 6 | (at(1) & 0x3F);
    case 3:
      return (at(0) & 0x0F) << 12 | (at(1) & 0x3F) << 6 | (at(2) & 0x3F);
    default:
      return 0xFFFD;  // no whitespace character has four bytes
  }
}

bool is_continuation(char byte) { return (static_cast<Byte>(byte) & 0xC0) == 0x80; }

}  // namespace

std::string replace_invalid_utf8(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  while (!bytes.empty()) {
    const Step step = next_step(bytes);
    text += step.valid ? bytes.substr(0, step.size) : kReplacementCharacter;
    bytes.remove_prefix(step.size);
  }
  return text;
}

bool is_valid_utf8(std::string_view bytes) {
  while (!bytes.empty()) {
    const Step step = next_step(bytes);
    if (!step.valid) return false;
    bytes.remove_prefix(step.size);
  }
  return true;
}

size_t count_code_points(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char byte) { return !is_continuation(byte); }));
}

std::string_view strip_space_right(std::string_view text) {
  while (!text.empty()) {
    size_t start = text.size() - 1;
    while (start > 0 && is_continuation(text[start])) --start;
    if (!is_space(code_point(text.substr(start)))) break;
    text.remove_suffix(text.size() - start);
  }
  return text;
}

std::string_view strip_space(std::string_view text) {
  text = strip_space_right(text);
  while (!text.empty()) {
    const size_t size = next_step(text).size;
    if (!is_space(code_point(text.substr(0, size)))) break;
    text.remove_prefix(size);
  }
  return text;
}

}  // namespace octavo
