// token_mask.h - which tokens a row may draw, found out by the host while the step runs. No MLX.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

namespace octavo {

// Made when a step is queued, filled by another thread, read by the draw at the step's end. Any
// thread.
class TokenMask {
 public:
  // Bit t % 32 of word t / 32: t may be drawn; no words: all may. Only the first call counts. A
  // mask must always be set in the end, or the step that draws with it never ends.
  void set(std::vector<uint32_t> words);
  // Waits until it is set.
  std::span<const uint32_t> wait() const;

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable ready_;
  bool is_set_ = false;
  std::vector<uint32_t> words_;
};

}  // namespace octavo
