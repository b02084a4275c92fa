// call_reader.h - reads one call, step by step as its dialect's table says.
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
  // Everything outlives it. `markerless`: nothing but its form says that it is a call.
  CallReader(const ToolDialect& dialect, const std::vector<Tool>& tools, bool markerless);
  // A call object, whatever the dialect's steps.
  static CallReader object(const ToolDialect& dialect, const std::vector<Tool>& tools);
  // The arguments of a function that is known already.
  static CallReader arguments_of(const ToolDialect& dialect, const std::vector<Tool>& tools,
                                 std::string name);

  Verdict take(char c, CallSink& sink);
  // The answer ended: gives out what was held back of arguments that have begun.
  void finish(CallSink& sink);
  // Whether the sink has heard of it; until then it may turn out to be something else.
  bool begun() const { return begun_ || (object_ && object_->begun()); }
  // Whether its arguments are complete, whatever is missing behind them.
  bool whole() const { return object_ && object_->whole(); }

 private:
  Verdict take_literal(char c, const Step& step, CallSink& sink);
  Verdict take_word(char c, std::string& word, CallSink& sink);
  Verdict take_arguments(char c, CallSink& sink);
  void next();

  const ToolDialect* dialect_;
  const std::vector<Tool>* tools_;
  size_t step_ = 0;
  size_t matched_ = 0;  // bytes of the step's literal
  std::string name_;
  std::string word_;
  std::optional<CallObject> object_;
  std::unique_ptr<ArgumentsReader> arguments_;
  bool begun_ = false;
};

}  // namespace octavo
