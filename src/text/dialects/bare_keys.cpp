// Gemma's arguments: {key:value,..} with unquoted keys and strings in the dialect's own quotes.
#include <utility>

#include "text/dialects/argument_types.h"
#include "text/dialects/arguments_reader.h"
#include "text/dialects/call_sink.h"
#include "text/utf8.h"

namespace octavo {
namespace {

class BareKeysReader : public ArgumentsReader {
 public:
  explicit BareKeysReader(std::string_view quote) : quote_(quote) {}

  Verdict take(char c, std::string& json) override {
    switch (state_) {
      case State::kStart:
        if (is_space(c)) return Verdict::kMore;
        return c == '{' ? open(c, json) : Verdict::kBroken;
      case State::kKey:
        return take_key(c, json);
      case State::kColon:
        if (is_space(c)) return Verdict::kMore;
        state_ = State::kValue;
        return c == ':' ? Verdict::kMore : Verdict::kBroken;
      case State::kValue:
        return take_value(c, json);
      case State::kQuoted:
        return take_quoted(c, json);
      case State::kJsonString:
        json += c;
        if (scanner_.take(c) == Verdict::kEnd) state_ = State::kAfter;
        return Verdict::kMore;
      default:
        return take_after(c, json);
    }
  }

  std::string held() const override {
    std::string text;
    for (const char c : state_ == State::kQuoted ? held_ : word_ + held_) text += json_escaped(c);
    return text;
  }

 private:
  enum class State : uint8_t { kStart, kKey, kColon, kValue, kQuoted, kJsonString, kAfter };

  Verdict open(char c, std::string& json) {
    json += c;
    open_ += c;
    fresh_ = true;
    state_ = c == '{' ? State::kKey : State::kValue;
    return Verdict::kMore;
  }

  Verdict close(char c, std::string& json) {
    if (open_.back() != (c == '}' ? '{' : '[')) return Verdict::kBroken;
    json += c;
    open_.pop_back();
    state_ = State::kAfter;
    return open_.empty() ? Verdict::kEnd : Verdict::kMore;
  }

  // Returns true if `c` completes the quote; holds back a possible prefix of it.
  bool quote_read(char c) {
    held_ += c;
    if (held_ == quote_) {
      held_.clear();
      return true;
    }
    return false;
  }
  bool may_be_quote() const { return quote_.starts_with(held_); }

  Verdict take_key(char c, std::string& json) {
    if (word_.empty() && held_.empty()) {
      if (is_space(c)) return Verdict::kMore;
      if (c == '}' && fresh_) return close(c, json);
    }
    if (word_.empty() || !held_.empty()) {
      if (quote_read(c)) {
        if (!word_.empty()) return Verdict::kBroken;
        json += '"';
        key_is_quoted_ = true;
        state_ = State::kQuoted;
        return Verdict::kMore;
      }
      if (may_be_quote()) return Verdict::kMore;
      // Not a quote: the characters belong to the key.
      const std::string text = std::exchange(held_, {});
      word_ += text.substr(0, text.size() - 1);
    }
    if (c == ':') {
      const std::string_view key = strip_space(word_);
      if (key.empty()) return Verdict::kBroken;
      json += json_quoted(key) + ": ";
      word_.clear();
      state_ = State::kValue;
      return Verdict::kMore;
    }
    word_ += c;
    const bool stray = c == '{' || c == '}' || c == ',';
    return stray || word_.size() > kMaxCallName ? Verdict::kBroken : Verdict::kMore;
  }

  Verdict take_value(char c, std::string& json) {
    if (word_.empty() && held_.empty()) {
      if (is_space(c)) return Verdict::kMore;
      if (c == '{' || c == '[') return open(c, json);
      if (c == ']' && fresh_) return close(c, json);
      if (c == '"') {
        json += c;
        scanner_ = {};
        scanner_.take(c);
        state_ = State::kJsonString;
        return Verdict::kMore;
      }
    }
    if (word_.empty()) {
      if (quote_read(c)) {
        json += '"';
        state_ = State::kQuoted;
        return Verdict::kMore;
      }
      if (may_be_quote()) return Verdict::kMore;
      const std::string text = std::exchange(held_, {});
      word_ += text.substr(0, text.size() - 1);
    }
    if (c == ',' || c == '}' || c == ']') {
      const std::string_view word = strip_space(word_);
      if (word.empty()) return Verdict::kBroken;
      json += json_of_value(word, ValueType::kEither);
      word_.clear();
      state_ = State::kAfter;
      return take_after(c, json);
    }
    word_ += c;
    return Verdict::kMore;
  }

  Verdict take_quoted(char c, std::string& json) {
    if (quote_read(c)) {
      json += '"';
      state_ = State::kAfter;
      if (std::exchange(key_is_quoted_, false)) {
        json += ": ";
        state_ = State::kColon;
      }
      return Verdict::kMore;
    }
    while (!held_.empty() && !may_be_quote()) {
      json += json_escaped(held_.front());
      held_.erase(0, 1);
    }
    return Verdict::kMore;
  }

  Verdict take_after(char c, std::string& json) {
    if (is_space(c)) return Verdict::kMore;
    if (c == '}' || c == ']') return close(c, json);
    if (c != ',') return Verdict::kBroken;
    json += ", ";
    fresh_ = false;
    state_ = open_.back() == '{' ? State::kKey : State::kValue;
    return Verdict::kMore;
  }

  std::string_view quote_;
  State state_ = State::kStart;
  JsonScanner scanner_;
  std::string open_;    // open brackets
  std::string held_;    // a possible prefix of the quote
  std::string word_;    // a key, or a value that is not a string
  bool fresh_ = false;  // the innermost bracket is still empty
  bool key_is_quoted_ = false;
};

}  // namespace

std::unique_ptr<ArgumentsReader> make_bare_keys_reader(std::string_view quote) {
  return std::make_unique<BareKeysReader>(quote);
}

}  // namespace octavo
