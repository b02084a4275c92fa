// unix_time.h - the time as OpenAI's objects have it.
#pragma once

#include <chrono>
#include <cstdint>

namespace octavo::server {

inline int64_t unix_now() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace octavo::server
