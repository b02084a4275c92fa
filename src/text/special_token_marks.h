// special_token_marks.h - keeps special tokens typed in a chat's content from being recognised. A
// template renders to one string, so the content is marked before: a marker is inserted after the
// first character of each special token. Tokenizer::encode_marked() encodes the rendered text
// without the markers. Immutable; any thread.
#pragma once

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace octavo {

class SpecialTokenMarks {
 public:
  // Tokens of one character cannot be marked and stay special.
  explicit SpecialTokenMarks(std::span<const std::string> tokens);

  // Marks all strings and keys in `values`. A string that ends with the beginning of a token is
  // marked too, since the next string may complete it. Returns the marker, or 0 if there was
  // nothing to mark; then `values` are unchanged. Throws RequestError(400) if the values contain
  // every possible marker.
  char32_t mark(std::initializer_list<nlohmann::ordered_json*> values) const;

 private:
  struct Node {
    std::vector<std::pair<char, int>> next = {};
    bool ends_token = false;
  };

  void add(std::string_view token);
  int child(int node, char byte) const;
  bool starts_at(std::string_view text, size_t at) const;
  bool is_in(std::string_view text) const;
  bool is_in(const nlohmann::ordered_json& value) const;
  std::string marked(std::string_view text, std::string_view marker) const;
  void mark(nlohmann::ordered_json& value, std::string_view marker) const;

  std::vector<Node> nodes_;  // a trie; 0 is the root
};

// Turns a marker that a template wrote as \uXXXX (tojson with ensure_ascii) into the character
// again.
void restore_marker(std::string& rendered, char32_t marker);
// The text without the markers; 0: as it is.
std::string without_marker(std::string text, char32_t marker);

}  // namespace octavo
