// output_part.h - a piece of what a model said, told apart by kind: every API writes these down in
// its own way.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace octavo {

enum class PartKind : uint8_t {
  kContent,        // text for the user
  kReasoning,      // text of its thinking
  kToolCall,       // a call begins: its id and name, no arguments yet
  kToolArguments,  // more of that call's arguments: JSON text
};

struct OutputPart {
  PartKind kind = PartKind::kContent;
  std::string text = {};  // none with kToolCall
  int call = 0;           // of a tool call: which one of the answer, from 0
  std::string id = {};    // with kToolCall
  std::string name = {};  // with kToolCall

  bool operator==(const OutputPart&) const = default;
};

// Joins what belongs together: text of one kind in a row, arguments of one call.
inline void append_parts(std::vector<OutputPart>& to, std::vector<OutputPart>&& from) {
  for (OutputPart& part : from) {
    const bool goes_on = !to.empty() && to.back().kind == part.kind &&
                         to.back().call == part.call && part.kind != PartKind::kToolCall;
    if (goes_on) {
      to.back().text += part.text;
    } else {
      to.push_back(std::move(part));
    }
  }
}

}  // namespace octavo
