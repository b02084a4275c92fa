#include "text/dialects/call_reader.h"

#include <utility>

#include "text/utf8.h"

namespace octavo {

CallReader::CallReader(const ToolDialect& dialect, const std::vector<Tool>& tools, bool markerless)
    : dialect_(&dialect), tools_(&tools) {
  if (dialect.steps.front().kind == StepKind::kCallObject)
    object_.emplace(markerless ? &tools : nullptr);
}

CallReader CallReader::object(const ToolDialect& dialect, const std::vector<Tool>& tools) {
  CallReader reader(dialect, tools, false);
  reader.object_.emplace(nullptr);
  return reader;
}

CallReader CallReader::arguments_of(const ToolDialect& dialect, const std::vector<Tool>& tools,
                                    std::string name) {
  CallReader reader(dialect, tools, false);
  reader.step_ = dialect.steps.size() - 1;
  reader.name_ = std::move(name);
  return reader;
}

void CallReader::next() {
  ++step_;
  matched_ = 0;
}

Verdict CallReader::take_literal(char c, const Step& step, CallSink& sink) {
  const std::string_view text = strip_space(step.text);
  if (matched_ == 0 && is_space(c)) return Verdict::kMore;
  if (c == text[matched_]) {
    ++matched_;
    if (matched_ < text.size()) return Verdict::kMore;
    if (step.kind == StepKind::kMaybeWord) return Verdict::kMore;
    next();
    return Verdict::kMore;
  }
  if (step.kind == StepKind::kLiteral) return Verdict::kBroken;
  // The optional text is absent: pass its bytes to the next step.
  const std::string again = std::string(text.substr(0, matched_)) + c;
  next();
  for (const char byte : again) {
    if (take(byte, sink) == Verdict::kBroken) return Verdict::kBroken;
  }
  return Verdict::kMore;
}

Verdict CallReader::take_word(char c, std::string& word, CallSink& sink) {
  if (word.empty() && is_space(c)) return Verdict::kMore;
  if (is_name_character(c)) {
    word += c;
    return word.size() > kMaxCallName ? Verdict::kBroken : Verdict::kMore;
  }
  if (word.empty()) return Verdict::kBroken;
  next();
  return take(c, sink);
}

Verdict CallReader::take_arguments(char c, CallSink& sink) {
  if (!arguments_) arguments_ = make_arguments_reader(*dialect_, name_, *tools_);
  std::string json;
  const Verdict verdict = arguments_->take(c, json);
  if (!json.empty()) {
    if (!std::exchange(begun_, true)) sink.begin_call(name_);
    sink.add_arguments(json);
  }
  return verdict;
}

Verdict CallReader::take(char c, CallSink& sink) {
  if (object_) return object_->take(c, sink);
  const Step& step = dialect_->steps[step_];
  switch (step.kind) {
    case StepKind::kName:
      return take_word(c, name_, sink);
    case StepKind::kMaybeWord:
      if (matched_ == strip_space(step.text).size()) return take_word(c, word_, sink);
      return take_literal(c, step, sink);
    case StepKind::kLiteral:
    case StepKind::kMaybe:
      return take_literal(c, step, sink);
    default:
      return take_arguments(c, sink);
  }
}

void CallReader::finish(CallSink& sink) {
  if (!begun_ || !arguments_) return;
  const std::string held = arguments_->held();
  if (!held.empty()) sink.add_arguments(held);
}

}  // namespace octavo
