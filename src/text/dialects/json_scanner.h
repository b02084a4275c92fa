// json_scanner.h - where a JSON value ends, byte by byte.
#pragma once

#include <cstdint>
#include <string>

namespace octavo {

enum class Verdict : uint8_t {
  kMore,
  kEnd,     // with this byte
  kBroken,  // this byte cannot come here
};

// Of an object, a list or a string: other values have no end of their own. Follows brackets and
// strings; what stands between them is the reader's business.
class JsonScanner {
 public:
  Verdict take(char c);

 private:
  std::string open_;  // the brackets that are to be closed, as they are closed
  bool in_string_ = false;
  bool escaped_ = false;
};

}  // namespace octavo
