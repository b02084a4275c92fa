// constant_time.h - compares secrets in a time that does not depend on where they differ.
#pragma once

#include <string_view>

namespace octavo {

inline bool equal_in_constant_time(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned different = 0;
  for (size_t i = 0; i < a.size(); ++i) different |= static_cast<unsigned char>(a[i] ^ b[i]);
  return different == 0;
}

}  // namespace octavo
