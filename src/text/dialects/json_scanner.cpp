#include "text/dialects/json_scanner.h"

namespace octavo {

Verdict JsonScanner::take(char c) {
  if (in_string_) {
    if (escaped_) {
      escaped_ = false;
    } else if (c == '\\') {
      escaped_ = true;
    } else if (c == '"') {
      in_string_ = false;
      if (open_.empty()) return Verdict::kEnd;
    }
    return Verdict::kMore;
  }
  switch (c) {
    case '"':
      in_string_ = true;
      return Verdict::kMore;
    case '{':
      open_ += '}';
      return Verdict::kMore;
    case '[':
      open_ += ']';
      return Verdict::kMore;
    case '}':
    case ']':
      if (open_.empty() || open_.back() != c) return Verdict::kBroken;
      open_.pop_back();
      return open_.empty() ? Verdict::kEnd : Verdict::kMore;
    default:
      return open_.empty() ? Verdict::kBroken : Verdict::kMore;
  }
}

}  // namespace octavo
