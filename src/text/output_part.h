// output_part.h - a typed part of a model's output; each API serializes parts in its own format.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace octavo {

enum class PartKind : uint8_t {
  kContent,        // text for the user
  kReasoning,      // the model's thinking
  kToolCall,       // the start of a call: its id and name, no arguments
  kToolArguments,  // the next piece of that call's arguments: JSON text
};

struct OutputPart {
  PartKind kind = PartKind::kContent;
  std::string text = {};  // empty for kToolCall
  int call = 0;           // the tool call's index within the answer, from 0
  std::string id = {};    // kToolCall only
  std::string name = {};  // kToolCall only

  bool operator==(const OutputPart&) const = default;
};

// Merges adjacent text of the same kind and adjacent arguments of the same call.
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
