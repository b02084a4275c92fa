#include "kernels/types/token_mask.h"

#include <algorithm>
#include <utility>

namespace octavo {

void TokenMask::set(std::vector<uint32_t> words) { settle(std::move(words), {}); }

void TokenMask::fail(std::string why) { settle({0}, std::move(why)); }

void TokenMask::settle(std::vector<uint32_t> words, std::string failure) {
  const bool nothing =
      !words.empty() && std::ranges::all_of(words, [](uint32_t word) { return word == 0; });
  const std::lock_guard lock(mutex_);
  if (is_set_) return;
  words_ = std::move(words);
  failure_ = std::move(failure);
  allows_nothing_ = nothing;
  is_set_ = true;
  ready_.notify_all();
}

bool TokenMask::is_set() const {
  const std::lock_guard lock(mutex_);
  return is_set_;
}

bool TokenMask::wait_for(std::chrono::milliseconds time) const {
  std::unique_lock lock(mutex_);
  return ready_.wait_for(lock, time, [&] { return is_set_; });
}

void TokenMask::wait_until_set() const {
  std::unique_lock lock(mutex_);
  ready_.wait(lock, [&] { return is_set_; });
}

// Set once and never changed, so it may be read without the lock.

std::span<const uint32_t> TokenMask::wait() const {
  wait_until_set();
  return words_;
}

bool TokenMask::allows_nothing() const {
  wait_until_set();
  return allows_nothing_;
}

const std::string& TokenMask::failure() const {
  wait_until_set();
  return failure_;
}

}  // namespace octavo
