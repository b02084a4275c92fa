// shown_parts.h - formats output parts on one line, for tests.
#pragma once

#include <string>
#include <vector>

#include "text/output_part.h"

namespace octavo {

// text|[reasoning]|name(arguments)
inline std::string shown_parts(const std::vector<OutputPart>& parts) {
  std::string text;
  for (const OutputPart& part : parts) {
    const bool inside = part.kind == PartKind::kToolArguments;
    if (!text.empty() && !inside) text += '|';
    switch (part.kind) {
      case PartKind::kContent:
        text += part.text;
        break;
      case PartKind::kReasoning:
        text += '[' + part.text + ']';
        break;
      case PartKind::kToolCall:
        text += part.name;
        break;
      case PartKind::kToolArguments:
        text += '(' + part.text + ')';
        break;
    }
  }
  return text;
}

}  // namespace octavo
