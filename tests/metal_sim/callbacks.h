// callbacks.h (metal_sim) - serves the calls of a kernel's library while it is loaded.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace octavo::metal_sim {

// Filled by a library's initialisers.
struct Loading {
  std::map<int, uint32_t> constants;  // values of function constants by index
  std::map<std::string, void (*)()> kernels = {};
  std::string missing_constant = {};
};

// Initialisers that run during its lifetime use `loading`.
class LoadingScope {
 public:
  explicit LoadingScope(Loading& loading);
  ~LoadingScope();
  LoadingScope(const LoadingScope&) = delete;
  LoadingScope& operator=(const LoadingScope&) = delete;
};

}  // namespace octavo::metal_sim
