#include "text/dialects/call_object.h"

#include <algorithm>
#include <utility>

namespace octavo {
namespace {

bool holds_arguments(std::string_view key) { return key == "arguments" || key == "parameters"; }

// Decodes a JSON string; nullopt if `json` is not one.
std::optional<std::string> unquoted(const std::string& json) {
  const auto value = nlohmann::json::parse(json, nullptr, false);
  if (!value.is_string()) return std::nullopt;
  return value.get<std::string>();
}

}  // namespace

void CallObject::give(std::string_view text, CallSink& sink) {
  if (name_.empty()) {
    early_ += text;
    return;
  }
  if (!begun_) {
    begun_ = true;
    sink.begin_call(name_);
    if (!early_.empty()) sink.add_arguments(std::exchange(early_, {}));
  }
  if (!text.empty()) sink.add_arguments(text);
}

bool CallObject::key_read() {
  const auto key = unquoted(text_);
  if (!key) return false;
  key_ = *key;
  const bool of_a_call = key_ == "name" || holds_arguments(key_) || key_ == "type" || key_ == "id";
  return known_ == nullptr || of_a_call;
}

bool CallObject::name_read() {
  const auto name = unquoted(text_);
  if (!name || name->empty() || !std::ranges::all_of(*name, is_name_character)) return false;
  if (known_ != nullptr && std::ranges::count(*known_, *name, &Tool::name) == 0) return false;
  name_ = *name;
  return true;
}

Verdict CallObject::end(CallSink& sink) {
  if (name_.empty()) return Verdict::kBroken;
  if (!has_arguments_) {
    // Without markers, an object that only has a name is not a call.
    if (known_ != nullptr) return Verdict::kBroken;
    give("{}", sink);
  }
  give({}, sink);
  return Verdict::kEnd;
}

Verdict CallObject::take_value(char c, CallSink& sink) {
  text_.clear();
  scanner_ = {};
  if (key_ == "name") {
    if (c != '"' || !name_.empty()) return Verdict::kBroken;
    state_ = State::kName;
  } else if (holds_arguments(key_)) {
    if (has_arguments_) return Verdict::kBroken;
    has_arguments_ = true;
    if (c == '{') {
      state_ = State::kArguments;
    } else if (c == '"') {
      state_ = State::kQuotedArguments;
    } else if (c == 'n') {
      state_ = State::kNull;
    } else {
      return Verdict::kBroken;
    }
  } else {
    state_ = c == '{' || c == '[' || c == '"' ? State::kSkip : State::kSkipScalar;
  }
  return take_inner(c, sink);
}

Verdict CallObject::take_inner(char c, CallSink& sink) {
  if (state_ == State::kSkipScalar) {
    if (c != ',' && c != '}') return Verdict::kMore;
    state_ = State::kCommaOrEnd;
    return take(c, sink);
  }
  if (state_ == State::kNull) {
    text_ += c;
    if (!std::string_view("null").starts_with(text_)) return Verdict::kBroken;
    if (text_ != "null") return Verdict::kMore;
    give("{}", sink);
    whole_ = true;
    state_ = State::kCommaOrEnd;
    return Verdict::kMore;
  }
  const Verdict verdict = scanner_.take(c);
  if (state_ == State::kArguments && verdict != Verdict::kBroken) {
    give({&c, 1}, sink);
  } else {
    text_ += c;
  }
  if (verdict != Verdict::kEnd) return verdict;
  const State ended = std::exchange(state_, State::kCommaOrEnd);
  if (ended == State::kKey) {
    state_ = State::kColon;
    return key_read() ? Verdict::kMore : Verdict::kBroken;
  }
  if (ended == State::kName) return name_read() ? Verdict::kMore : Verdict::kBroken;
  if (ended == State::kQuotedArguments) {
    const auto arguments = unquoted(text_);
    if (!arguments) return Verdict::kBroken;
    give(arguments->empty() ? "{}" : *arguments, sink);
  }
  whole_ |= ended == State::kArguments || ended == State::kQuotedArguments;
  return Verdict::kMore;
}

Verdict CallObject::take(char c, CallSink& sink) {
  switch (state_) {
    case State::kKey:
    case State::kName:
    case State::kArguments:
    case State::kQuotedArguments:
    case State::kNull:
    case State::kSkip:
    case State::kSkipScalar:
      return take_inner(c, sink);
    default:
      break;
  }
  if (is_space(c)) return Verdict::kMore;
  switch (state_) {
    case State::kStart:
      state_ = State::kKeyOrEnd;
      return c == '{' ? Verdict::kMore : Verdict::kBroken;
    case State::kKeyOrEnd:
      if (c == '}') return end(sink);
      if (c != '"') return Verdict::kBroken;
      state_ = State::kKey;
      text_.clear();
      scanner_ = {};
      return take_inner(c, sink);
    case State::kColon:
      state_ = State::kValue;
      return c == ':' ? Verdict::kMore : Verdict::kBroken;
    case State::kValue:
      return take_value(c, sink);
    default:  // kCommaOrEnd
      if (c == '}') return end(sink);
      state_ = State::kKeyOrEnd;
      return c == ',' ? Verdict::kMore : Verdict::kBroken;
  }
}

}  // namespace octavo
