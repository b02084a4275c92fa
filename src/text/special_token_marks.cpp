#include "text/special_token_marks.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"

namespace octavo {
namespace {

using nlohmann::ordered_json;

// Unicode's noncharacters, which texts do not contain.
constexpr char32_t kFirstMarker = 0xFDD0;
constexpr char32_t kLastMarker = 0xFDEF;

std::string marker_bytes(char32_t marker) {
  return {static_cast<char>(0xE0 | marker >> 12), static_cast<char>(0x80 | (marker >> 6 & 0x3F)),
          static_cast<char>(0x80 | (marker & 0x3F))};
}

std::string marker_escape(char32_t marker) {
  return fmt::format("\\u{:04x}", static_cast<uint32_t>(marker));
}

size_t character_bytes(std::string_view text, size_t at) {
  size_t end = at + 1;
  while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) ++end;
  return end - at;
}

void replace_in(std::string& text, std::string_view what, std::string_view by) {
  size_t at = text.find(what);
  if (at == std::string::npos) return;
  std::string replaced;
  size_t start = 0;
  for (; at != std::string::npos; at = text.find(what, start)) {
    replaced.append(text, start, at - start).append(by);
    start = at + what.size();
  }
  text = std::move(replaced.append(text, start));
}

bool text_has_marker(std::string_view text, char32_t marker) {
  return text.find(marker_bytes(marker)) != std::string_view::npos ||
         text.find(marker_escape(marker)) != std::string_view::npos;
}

bool has_marker(const ordered_json& value, char32_t marker) {
  if (value.is_string()) return text_has_marker(value.get_ref<const std::string&>(), marker);
  if (value.is_object()) {
    for (const auto& [key, item] : value.items()) {
      if (text_has_marker(key, marker) || has_marker(item, marker)) return true;
    }
  } else if (value.is_array()) {
    for (const ordered_json& item : value) {
      if (has_marker(item, marker)) return true;
    }
  }
  return false;
}

bool is_letter_or_digit(char byte) {
  return (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') ||
         (byte >= 'A' && byte <= 'Z');
}

}  // namespace

SpecialTokenMarks::SpecialTokenMarks(std::span<const std::string> tokens) : nodes_(1) {
  for (const std::string& token : tokens) {
    if (!token.empty() && character_bytes(token, 0) < token.size()) add(token);
  }
}

void SpecialTokenMarks::add(std::string_view token) {
  int node = 0;
  for (const char byte : token) {
    int next = child(node, byte);
    if (next < 0) {
      next = static_cast<int>(nodes_.size());
      nodes_[static_cast<size_t>(node)].next.emplace_back(byte, next);
      nodes_.emplace_back();
    }
    node = next;
  }
  nodes_[static_cast<size_t>(node)].ends_token = true;
}

int SpecialTokenMarks::child(int node, char byte) const {
  for (const auto& [label, next] : nodes_[static_cast<size_t>(node)].next) {
    if (label == byte) return next;
  }
  return -1;
}

// True if a token starts at `at`, or the text ends within one. A word at the end is not taken for
// the beginning of a token: templates compare words, such as roles.
bool SpecialTokenMarks::starts_at(std::string_view text, size_t at) const {
  int node = 0;
  for (size_t i = at; i < text.size(); ++i) {
    node = child(node, text[i]);
    if (node < 0) return false;
    if (nodes_[static_cast<size_t>(node)].ends_token) return true;
  }
  return !is_letter_or_digit(text[at]);
}

bool SpecialTokenMarks::is_in(std::string_view text) const {
  for (size_t at = 0; at < text.size(); ++at) {
    if (starts_at(text, at)) return true;
  }
  return false;
}

bool SpecialTokenMarks::is_in(const ordered_json& value) const {
  if (value.is_string()) return is_in(std::string_view(value.get_ref<const std::string&>()));
  if (value.is_object()) {
    for (const auto& [key, item] : value.items()) {
      if (is_in(std::string_view(key)) || is_in(item)) return true;
    }
  } else if (value.is_array()) {
    for (const ordered_json& item : value) {
      if (is_in(item)) return true;
    }
  }
  return false;
}

std::string SpecialTokenMarks::marked(std::string_view text, std::string_view marker) const {
  std::string result;
  size_t copied = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    if (!starts_at(text, at)) continue;
    const size_t end = at + character_bytes(text, at);
    result.append(text.substr(copied, end - copied)).append(marker);
    copied = end;
  }
  return std::move(result.append(text.substr(copied)));
}

void SpecialTokenMarks::mark(ordered_json& value, std::string_view marker) const {
  if (value.is_string()) {
    auto& text = value.get_ref<std::string&>();
    text = marked(text, marker);
  } else if (value.is_array()) {
    for (ordered_json& item : value) mark(item, marker);
  } else if (value.is_object()) {
    bool keys = false;
    for (const auto& [key, item] : value.items()) {
      keys = keys || is_in(std::string_view(key));
      mark(item, marker);
    }
    if (!keys) return;
    ordered_json renamed = ordered_json::object();
    for (auto& [key, item] : value.items()) renamed[marked(key, marker)] = std::move(item);
    value = std::move(renamed);
  }
}

char32_t SpecialTokenMarks::mark(std::initializer_list<ordered_json*> values) const {
  if (std::ranges::none_of(values, [&](const ordered_json* value) { return is_in(*value); }))
    return 0;
  for (char32_t marker = kFirstMarker; marker <= kLastMarker; ++marker) {
    if (std::ranges::any_of(values,
                            [&](const ordered_json* value) { return has_marker(*value, marker); }))
      continue;
    const std::string bytes = marker_bytes(marker);
    for (ordered_json* value : values) mark(*value, bytes);
    return marker;
  }
  throw RequestError(400, "messages",
                     "contain special tokens and all of Unicode's noncharacters U+FDD0 to U+FDEF");
}

void restore_marker(std::string& rendered, char32_t marker) {
  if (marker != 0) replace_in(rendered, marker_escape(marker), marker_bytes(marker));
}

std::string without_marker(std::string text, char32_t marker) {
  if (marker != 0) replace_in(text, marker_bytes(marker), "");
  return text;
}

}  // namespace octavo
