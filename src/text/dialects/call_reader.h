// call_reader.h - reads one call, following the steps in its dialect's table.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "text/dialects/arguments_reader.h"
#include "text/dialects/call_object.h"
#include "text/dialects/call_sink.h"

namespace octavo {

class CallReader {
 public:
  // The arguments must outlive the reader. `markerless`: no marker announced the call.
  CallReader(const ToolDialect& dialect, const std::vector<Tool>& tools, bool markerless);
  // Reads a call object, regardless of the dialect's steps.
  static CallReader object(const ToolDialect& dialect, const std::vector<Tool>& tools);
  // Reads the arguments of a function whose name is already known.
  static CallReader arguments_of(const ToolDialect& dialect, const std::vector<Tool>& tools,
                                 std::string name);

  Verdict take(char c, CallSink& sink);
  // Ends the answer: passes on the text held back of arguments that have begun.
  void finish(CallSink& sink);
  // Whether the sink has received the call; until then it may turn out to be something else.
  bool begun() const { return begun_ || (object_ && object_->begun()); }
  // Whether its arguments are complete, even if closing text is missing.
  bool whole() const { return object_ && object_->whole(); }

 private:
  Verdict take_literal(char c, const Step& step, CallSink& sink);
  Verdict take_word(char c, std::string& word, CallSink& sink);
  Verdict take_arguments(char c, CallSink& sink);
  void next();

  const ToolDialect* dialect_;
  const std::vector<Tool>* tools_;
  size_t step_ = 0;
  size_t matched_ = 0;  // matched bytes of the step's literal
  std::string name_;
  std::string word_;
  std::optional<CallObject> object_;
  std::unique_ptr<ArgumentsReader> arguments_;
  bool begun_ = false;
};

}  // namespace octavo
