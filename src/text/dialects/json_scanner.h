// json_scanner.h - finds the end of a JSON value, byte by byte.
#pragma once

#include <cstdint>
#include <string>

namespace octavo {

enum class Verdict : uint8_t {
  kMore,
  kEnd,     // this byte ends the value
  kBroken,  // this byte is not allowed here
};

// Accepts an object, an array or a string; other values have no delimiter of their own. Checks only
// brackets and strings; whatever is between them is not validated.
class JsonScanner {
 public:
  Verdict take(char c);

 private:
  std::string open_;  // the closing brackets still expected, innermost last
  bool in_string_ = false;
  bool escaped_ = false;
};

}  // namespace octavo
