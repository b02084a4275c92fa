// usage_error.h - a mistake on the command line; main() prints it and exits with status 2.
#pragma once

#include <stdexcept>

namespace octavo {

class UsageError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

inline constexpr int kUsageStatus = 2;

}  // namespace octavo
