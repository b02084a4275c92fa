// call_object.h - reads {"name": .., "arguments": {..}} byte by byte.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "text/dialects/call_sink.h"
#include "text/dialects/dialect.h"
#include "text/dialects/json_scanner.h"

namespace octavo {

// The call begins when its name is known and its arguments are, or their first byte: until then it
// may turn out to be something else. `parameters` is read as `arguments`; arguments that were put
// into a string are taken out of it; a call without arguments has {}; other keys are passed over.
class CallObject {
 public:
  // `known`: without markers around it an object is a call only if it names one of these, and has
  // no keys but a call's.
  explicit CallObject(const std::vector<Tool>* known) : known_(known) {}

  Verdict take(char c, CallSink& sink);
  bool begun() const { return begun_; }
  // Nothing that can still come changes the call.
  bool whole() const { return begun_ && whole_; }

 private:
  enum class State : uint8_t {
    kStart,
    kKeyOrEnd,
    kKey,
    kColon,
    kValue,
    kName,
    kArguments,
    kQuotedArguments,
    kNull,
    kSkip,
    kSkipScalar,
    kCommaOrEnd,
  };

  Verdict take_value(char c, CallSink& sink);
  Verdict take_inner(char c, CallSink& sink);
  Verdict end(CallSink& sink);
  bool key_read();
  bool name_read();
  void give(std::string_view text, CallSink& sink);

  const std::vector<Tool>* known_;
  State state_ = State::kStart;
  JsonScanner scanner_;
  std::string text_;  // of the key, name or quoted arguments being read
  std::string key_;
  std::string name_;
  std::string early_;  // arguments that came before the name
  bool has_arguments_ = false;
  bool begun_ = false;
  bool whole_ = false;  // the arguments are
};

}  // namespace octavo
