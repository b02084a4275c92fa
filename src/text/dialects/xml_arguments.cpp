// <parameter=KEY>\nVALUE\n</parameter> for each argument, then </function>. One line break on each
// side of a value belongs to the tags. Strings are passed on incrementally, other values once they
// are complete.
#include <utility>

#include "text/dialects/argument_types.h"
#include "text/dialects/arguments_reader.h"
#include "text/dialects/call_sink.h"

namespace octavo {
namespace {

constexpr std::string_view kParameter = "<parameter=";
constexpr std::string_view kFunctionEnd = "</function>";
constexpr std::string_view kParameterEnd = "</parameter>";
constexpr std::string_view kParameterEndOnItsLine = "\n</parameter>";

class XmlReader : public ArgumentsReader {
 public:
  XmlReader(std::string function, const std::vector<Tool>& tools)
      : function_(std::move(function)), tools_(tools) {}

  Verdict take(char c, std::string& json) override {
    switch (state_) {
      case State::kBetween:
        return take_tag(c, json);
      case State::kKey:
        return take_key(c, json);
      default:
        return take_value(c, json);
    }
  }

  std::string held() const override {
    std::string text;
    for (const char c : state_ == State::kValue ? value_ + held_ : std::string())
      text += json_escaped(c);
    return text;
  }

 private:
  enum class State : uint8_t { kBetween, kKey, kValue };

  Verdict take_tag(char c, std::string& json) {
    if (held_.empty() && is_space(c)) return Verdict::kMore;
    held_ += c;
    if (held_ == kFunctionEnd) {
      json += first_ ? "{}" : "}";
      return Verdict::kEnd;
    }
    if (held_ == kParameter) {
      held_.clear();
      key_.clear();
      state_ = State::kKey;
      return Verdict::kMore;
    }
    const bool may_become = kFunctionEnd.starts_with(held_) || kParameter.starts_with(held_);
    return may_become ? Verdict::kMore : Verdict::kBroken;
  }

  Verdict take_key(char c, std::string& json) {
    if (c != '>') {
      key_ += c;
      return c == '\n' || c == '<' || key_.size() > kMaxCallName ? Verdict::kBroken
                                                                 : Verdict::kMore;
    }
    json += std::exchange(first_, false) ? "{" : ", ";
    json += json_quoted(key_) + ": ";
    type_ = type_of_argument(tools_, function_, key_);
    if (type_ == ValueType::kString) json += '"';
    state_ = State::kValue;
    at_start_ = true;
    return Verdict::kMore;
  }

  Verdict take_value(char c, std::string& json) {
    if (std::exchange(at_start_, false) && c == '\n') {
      // An empty value may have a single line break, shared by both tags.
      held_.assign(1, c);
      only_break_ = true;
      return Verdict::kMore;
    }
    held_ += c;
    if (held_ == kParameterEnd || held_ == kParameterEndOnItsLine) {
      if (type_ == ValueType::kString) {
        json += '"';
      } else {
        json += json_of_value(std::exchange(value_, {}), type_);
      }
      held_.clear();
      only_break_ = false;
      state_ = State::kBetween;
      return Verdict::kMore;
    }
    while (!held_.empty() && !kParameterEnd.starts_with(held_) &&
           !kParameterEndOnItsLine.starts_with(held_)) {
      const char sure = held_.front();
      held_.erase(0, 1);
      if (std::exchange(only_break_, false)) continue;  // it belonged to the opening tag
      if (type_ == ValueType::kString) {
        json += json_escaped(sure);
      } else {
        value_ += sure;
      }
    }
    return Verdict::kMore;
  }

  std::string function_;
  const std::vector<Tool>& tools_;
  State state_ = State::kBetween;
  std::string held_;  // a possible prefix of a tag
  std::string key_;
  std::string value_;  // read so far; unused for strings
  ValueType type_ = ValueType::kString;
  bool first_ = true;
  bool at_start_ = false;    // at the first byte of a value
  bool only_break_ = false;  // held_ begins with the line break after the opening tag
};

}  // namespace

std::unique_ptr<ArgumentsReader> make_xml_reader(const std::string& function,
                                                 const std::vector<Tool>& tools) {
  return std::make_unique<XmlReader>(function, tools);
}

}  // namespace octavo
