#include "text/gbnf.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>

#include "text/dialects/lark_writer.h"

namespace octavo {
namespace {

constexpr std::string_view kDefines = "::=";
constexpr std::string_view kNotInNames = " is not defined; define it as NAME ::= ...";

bool is_gbnf_name_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_';
}

void append_utf8(std::string& out, uint32_t code) {
  const auto tail = [&](int shift) { out += static_cast<char>(0x80 | ((code >> shift) & 0x3f)); };
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xc0 | (code >> 6));
    tail(0);
  } else if (code < 0x10000) {
    out += static_cast<char>(0xe0 | (code >> 12));
    tail(6);
    tail(0);
  } else {
    out += static_cast<char>(0xf0 | (code >> 18));
    tail(12);
    tail(6);
    tail(0);
  }
}

// Reads the notation from left to right and writes one Lark rule per rule.
class GbnfReader {
 public:
  explicit GbnfReader(std::string_view text) : text_(text) {}

  bool begins_with_rule() {
    skip_space();
    return at_rule();
  }

  std::string lark() {
    std::string rules;
    skip_space();
    while (place_ < text_.size()) {
      const std::string_view name = take_name();
      skip_space();
      if (!take(kDefines)) fail(fmt::format("expected ::= after {}", name));
      if (!defined_.emplace(name).second) fail(fmt::format("{} is defined twice", name));
      const std::string left = lark_name(name);
      rules += fmt::format("{}: {}\n", left, alternatives());
      skip_space();
    }
    if (!defined_.contains("root"))
      throw std::invalid_argument(fmt::format("the rule root{}", kNotInNames));
    for (const auto& [name, unused] : names_) {
      if (!defined_.contains(name))
        throw std::invalid_argument(fmt::format("the rule {}{}", name, kNotInNames));
    }
    return fmt::format("start: {}\n{}", lark_name("root"), rules);
  }

 private:
  [[noreturn]] void fail(const std::string& message) const {
    const auto line =
        1 + std::count(text_.begin(), text_.begin() + static_cast<long>(place_), '\n');
    throw std::invalid_argument(fmt::format("line {}: {}", line, message));
  }

  char peek() const { return place_ < text_.size() ? text_[place_] : '\0'; }
  bool take(std::string_view expected) {
    if (!text_.substr(place_).starts_with(expected)) return false;
    place_ += expected.size();
    return true;
  }
  void expect(std::string_view expected) {
    if (!take(expected)) fail(fmt::format("expected {}", expected));
  }

  void skip_space() {
    while (place_ < text_.size()) {
      if (peek() == '#') {
        place_ = std::min(text_.find('\n', place_), text_.size());
      } else if (std::isspace(static_cast<unsigned char>(peek())) != 0) {
        ++place_;
      } else {
        return;
      }
    }
  }

  std::string_view take_name() {
    const size_t begin = place_;
    while (place_ < text_.size() && is_gbnf_name_character(text_[place_])) ++place_;
    if (place_ == begin) fail("expected a rule's name");
    return text_.substr(begin, place_ - begin);
  }

  // A new rule begins where a name is followed by ::=.
  bool at_rule() {
    const size_t begin = place_;
    while (place_ < text_.size() && is_gbnf_name_character(text_[place_])) ++place_;
    const bool named = place_ > begin;
    skip_space();
    const bool found = named && text_.substr(place_).starts_with(kDefines);
    place_ = begin;
    return found;
  }

  // Lark's rules are in lower case without "-"; numbers keep names apart that differ only there.
  std::string lark_name(std::string_view name) {
    const auto [found, added] = names_.emplace(std::string(name), static_cast<int>(names_.size()));
    std::string plain;
    for (const char c : name)
      plain += c == '-' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return fmt::format("g{}_{}", found->second, plain);
  }

  std::string alternatives() {
    if (++depth_ > kMaxDepth) fail("too many nested groups");
    std::string out = sequence();
    while (take("|")) out += " | " + sequence();
    --depth_;
    return out;
  }

  std::string sequence() {
    std::string out;
    for (skip_space(); place_ < text_.size(); skip_space()) {
      if (peek() == '|' || peek() == ')' || at_rule()) break;
      if (!out.empty()) out += ' ';
      out += repeated(element());
    }
    return out.empty() ? "\"\"" : out;
  }

  std::string element() {
    if (take("(")) {
      const std::string inner = alternatives();
      expect(")");
      return fmt::format("({})", inner);
    }
    if (take("\"")) return string();
    if (take("[")) return character_class();
    if (take(".")) return R"(/[\x{0}-\x{10FFFF}]/)";
    return lark_name(take_name());
  }

  std::string repeated(std::string element) {
    skip_blanks();
    for (const char* mark : {"*", "+", "?"})
      if (take(mark)) return element + mark;
    if (!take("{")) return element;
    const std::string least = number();
    const bool range = take(",");
    skip_blanks();
    const std::string most = range ? number() : "";
    if (least.empty() || !take("}")) fail("expected {N}, {N,} or {N,M}");
    return fmt::format("{}{{{}{}{}}}", element, least, range ? "," : "", most);
  }

  void skip_blanks() {
    while (peek() == ' ' || peek() == '\t') ++place_;
  }

  // The digits here, which may be none.
  std::string number() {
    skip_blanks();
    const size_t begin = place_;
    while (std::isdigit(static_cast<unsigned char>(peek())) != 0) ++place_;
    const std::string digits(text_.substr(begin, place_ - begin));
    skip_blanks();
    return digits;
  }

  std::string string() {
    std::string text;
    while (!take("\"")) append_utf8(text, character());
    return lark_string(text);
  }

  std::string character_class() {
    std::string out = take("^") ? "/[^" : "/[";
    bool empty = true;
    while (!take("]")) {
      out += fmt::format("\\x{{{:X}}}", character());
      if (peek() == '-' && place_ + 1 < text_.size() && text_[place_ + 1] != ']') {
        ++place_;
        out += fmt::format("-\\x{{{:X}}}", character());
      }
      empty = false;
    }
    if (empty) fail("a character class is empty");
    return out + "]/";
  }

  // One code point of a string or class, after its escape.
  uint32_t character() {
    if (place_ >= text_.size() || peek() == '\n') fail("a string or character class is not closed");
    if (take("\\")) return escaped();
    const auto lead = static_cast<unsigned char>(text_[place_]);
    const int length = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    if (place_ + static_cast<size_t>(length) > text_.size()) fail("not valid UTF-8");
    uint32_t code = length == 1 ? lead : lead & (0x7fu >> length);
    for (int i = 1; i < length; ++i)
      code =
          code << 6 | (static_cast<unsigned char>(text_[place_ + static_cast<size_t>(i)]) & 0x3f);
    place_ += static_cast<size_t>(length);
    return code;
  }

  uint32_t escaped() {
    if (place_ >= text_.size()) fail("a string or character class is not closed");
    const char kind = text_[place_++];
    switch (kind) {
      case 'n':
        return '\n';
      case 'r':
        return '\r';
      case 't':
        return '\t';
      case 'x':
        return hex(2);
      case 'u':
        return hex(4);
      case 'U':
        return hex(8);
      default:
        if (kind != '"' && kind != '\\' && kind != '[' && kind != ']' && kind != '-' && kind != '^')
          fail("unknown escape sequence");
        return static_cast<unsigned char>(kind);
    }
  }

  uint32_t hex(size_t digits) {
    uint32_t code = 0;
    const std::string_view text = text_.substr(std::min(place_, text_.size()), digits);
    const auto end = std::from_chars(text.data(), text.data() + text.size(), code, 16).ptr;
    const bool surrogate = code >= 0xd800 && code < 0xe000;
    if (text.size() != digits || end != text.data() + digits || code > 0x10ffff || surrogate)
      fail("not a valid character code");
    place_ += digits;
    return code;
  }

  static constexpr int kMaxDepth = 100;

  std::string_view text_;
  size_t place_ = 0;
  int depth_ = 0;
  std::map<std::string, int, std::less<>> names_;  // all names that occur, numbered
  std::set<std::string, std::less<>> defined_;
};

}  // namespace

bool is_gbnf(std::string_view grammar) { return GbnfReader(grammar).begins_with_rule(); }

std::string lark_from_gbnf(std::string_view gbnf) { return GbnfReader(gbnf).lark(); }

}  // namespace octavo
