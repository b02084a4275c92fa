// call_object.h - reads {"name": .., "arguments": {..}} byte by byte.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "text/dialects/call_sink.h"
#include "text/dialects/dialect.h"
#include "text/dialects/json_scanner.h"

namespace octavo {

// The call begins once its name and the first byte of its arguments have been read; until then it
// may turn out to be something else. `parameters` is an alias of `arguments`; arguments encoded as
// a string are decoded; a call without arguments gets {}; other keys are skipped.
class CallObject {
 public:
  // `known` is set for objects without markers, which are calls only if they name one of these
  // tools and have no keys other than a call's.
  explicit CallObject(const std::vector<Tool>* known) : known_(known) {}

  Verdict take(char c, CallSink& sink);
  bool begun() const { return begun_; }
  // The call is complete: no further input can change it.
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
  std::string text_;  // the key, name or quoted arguments being read
  std::string key_;
  std::string name_;
  std::string early_;  // arguments that came before the name
  bool has_arguments_ = false;
  bool begun_ = false;
  bool whole_ = false;  // the arguments are complete
};

}  // namespace octavo
