// answer_part.h - a piece of what a model said, told apart by kind: every API writes these down in
// its own way.
#pragma once

#include <cstdint>
#include <string>

namespace octavo {

enum class PartKind : uint8_t {
  kContent,        // text for the user
  kReasoning,      // text of its thinking
  kToolCall,       // a call begins: its id and name, no arguments yet
  kToolArguments,  // more of that call's arguments: JSON text
};

struct AnswerPart {
  PartKind kind = PartKind::kContent;
  std::string text = {};  // none with kToolCall
  int call = 0;           // of a tool call: which one of the answer, from 0
  std::string id = {};    // with kToolCall
  std::string name = {};  // with kToolCall

  bool operator==(const AnswerPart&) const = default;
};

}  // namespace octavo
