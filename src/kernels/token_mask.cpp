#include "kernels/token_mask.h"

#include <utility>

namespace octavo {

void TokenMask::set(std::vector<uint32_t> words) {
  const std::lock_guard lock(mutex_);
  if (is_set_) return;
  words_ = std::move(words);
  is_set_ = true;
  ready_.notify_all();
}

std::span<const uint32_t> TokenMask::wait() const {
  std::unique_lock lock(mutex_);
  ready_.wait(lock, [&] { return is_set_; });
  return words_;  // never changes from here on
}

}  // namespace octavo
