#include "front/toml_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "base/error.h"

namespace octavo::front {
namespace {

bool is_bare(unsigned char c) { return std::isalnum(c) != 0 || c == '-' || c == '_'; }

class TomlReader {
 public:
  TomlReader(std::string_view text, const std::string& where) : text_(text), where_(where) {}

  std::vector<TomlEntry> read() {
    while (skip_space(true)) {
      if (peek() == '[') {
        read_table();
      } else {
        read_assignment();
      }
      end_line();
    }
    return std::move(entries_);
  }

 private:
  [[noreturn]] void fail(const std::string& problem) const {
    throw SetupError(fmt::format("{}, line {}: {}", where_, line_, problem));
  }
  bool at_end() const { return at_ >= text_.size(); }
  char peek() const { return at_end() ? '\n' : text_[at_]; }

  // Skips blanks and comments, and with `lines` also ends of lines. Returns whether text is left.
  bool skip_space(bool lines) {
    for (; !at_end(); ++at_) {
      const char c = text_[at_];
      if (c == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
        if (at_end()) break;
      }
      if (text_[at_] == '\n') {
        if (!lines) return true;
        ++line_;
      } else if (c != ' ' && c != '\t' && c != '\r') {
        return true;
      }
    }
    return false;
  }

  void end_line() {
    if (skip_space(false) && peek() != '\n')
      fail(fmt::format("unexpected text after the value: {}", rest_of_line()));
  }

  std::string rest_of_line() const {
    const size_t end = std::min(text_.find('\n', at_), text_.size());
    return std::string(text_.substr(at_, std::min<size_t>(end - at_, 60)));
  }

  std::string bare_text() {
    const size_t start = at_;
    while (!at_end() && is_bare(static_cast<unsigned char>(text_[at_]))) ++at_;
    return std::string(text_.substr(start, at_ - start));
  }

  std::string quoted_text() {
    const char quote = text_[at_++];
    std::string out;
    while (true) {
      if (at_end() || text_[at_] == '\n') fail("the closing quote is missing");
      char c = text_[at_++];
      if (c == quote) return out;
      if (c == '\\' && quote == '"') c = escaped();
      out += c;
    }
  }

  char escaped() {
    const char c = peek();
    ++at_;
    switch (c) {
      case '"':
      case '\\':
        return c;
      case 'n':
        return '\n';
      case 't':
        return '\t';
      default:
        fail(R"(only \", \\, \n and \t are supported after a backslash; use '...' for other text)");
    }
  }

  void read_table() {
    ++at_;
    skip_space(false);
    const bool quoted = peek() == '"' || peek() == '\'';
    table_ = quoted ? quoted_text() : bare_text();
    skip_space(false);
    if (peek() != ']' || table_.empty()) {
      const size_t end = std::min(text_.find_first_of("]\n", at_), text_.size());
      fail(
          fmt::format("a name with other characters than letters, digits, - and _ needs quotes; "
                      "write [\"{}{}\"]",
                      quoted ? "" : table_, text_.substr(at_, end - at_)));
    }
    ++at_;
    if (!tables_.insert(table_).second) fail(fmt::format("[{}] occurs twice", table_));
    keys_.clear();
    entries_.push_back({.table = table_, .line = line_});
  }

  void read_assignment() {
    TomlEntry entry{.table = table_, .line = line_};
    const std::string start = rest_of_line();
    entry.key = peek() == '"' || peek() == '\'' ? quoted_text() : bare_text();
    skip_space(false);
    if (entry.key.empty() || peek() != '=')
      fail(fmt::format("\"{}\" is not NAME = VALUE; write, for example, max-model-len = 8192",
                       start));
    ++at_;
    if (!keys_.insert(entry.key).second) fail(fmt::format("{} occurs twice", entry.key));
    skip_space(false);
    entry.is_list = peek() == '[';
    if (entry.is_list) {
      read_list(entry.values);
    } else {
      entry.values.push_back(value());
    }
    entries_.push_back(std::move(entry));
  }

  void read_list(std::vector<std::string>& values) {
    ++at_;
    while (true) {
      if (!skip_space(true)) fail("the closing ] is missing");
      if (peek() == ']') break;
      values.push_back(value());
      if (!skip_space(true)) fail("the closing ] is missing");
      if (peek() == ',') {
        ++at_;
      } else if (peek() != ']') {
        fail("a comma is missing between two values");
      }
    }
    ++at_;
  }

  std::string value() {
    if (peek() == '"' || peek() == '\'') return quoted_text();
    const size_t start = at_;
    while (!at_end() && std::string_view(" \t\r\n#,]").find(text_[at_]) == std::string_view::npos)
      ++at_;
    std::string bare(text_.substr(start, at_ - start));
    const bool is_number = !bare.empty() && std::ranges::all_of(bare, [](unsigned char c) {
      return std::isdigit(c) != 0 || std::string_view("+-._eE").find(c) != std::string_view::npos;
    });
    if (bare != "true" && bare != "false" && !is_number)
      fail(fmt::format("a text needs quotes; write \"{}\"", bare));
    std::erase(bare, '_');
    return bare;
  }

  std::string_view text_;
  const std::string& where_;
  size_t at_ = 0;
  int line_ = 1;
  std::string table_;
  std::set<std::string> tables_;
  std::set<std::string> keys_;  // of the table
  std::vector<TomlEntry> entries_;
};

}  // namespace

std::vector<TomlEntry> read_toml(std::string_view text, const std::string& where) {
  return TomlReader(text, where).read();
}

}  // namespace octavo::front
