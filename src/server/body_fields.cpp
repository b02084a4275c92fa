#include "server/body_fields.h"

#include <algorithm>
#include <cctype>

namespace octavo::server {

void add_ignored(IgnoredFields& ignored, const std::string& name) {
  constexpr size_t kMost = 32;
  constexpr size_t kLongest = 64;
  const auto is_plain = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.';
  };
  if (ignored.size() < kMost && !name.empty() && name.size() <= kLongest &&
      std::ranges::all_of(name, is_plain))
    ignored.push_back(name);
}

}  // namespace octavo::server
