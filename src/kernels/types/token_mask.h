// token_mask.h - which tokens a row may draw, computed by the host while the step runs. No MLX.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <vector>

namespace octavo {

// Created when a step is queued, set by another thread, read by the draw at the step's end. Any
// thread.
class TokenMask {
 public:
  // Bit t % 32 of word t / 32: t may be drawn; no words: all may. All zero: none may, and the drawn
  // token is meaningless. Only the first call of this and fail() counts. Every mask must be set
  // eventually, or the step that draws with it never ends.
  void set(std::vector<uint32_t> words);
  // The mask could not be computed.
  void fail(std::string why);

  bool is_set() const;
  // Waits for at most that long. Returns whether it is set.
  bool wait_for(std::chrono::milliseconds time) const;
  // All functions below wait until it is set.
  std::span<const uint32_t> wait() const;
  bool allows_nothing() const;
  const std::string& failure() const;  // empty: set() was called

 private:
  void settle(std::vector<uint32_t> words, std::string failure);
  void wait_until_set() const;

  mutable std::mutex mutex_;
  mutable std::condition_variable ready_;
  bool is_set_ = false;
  bool allows_nothing_ = false;
  std::vector<uint32_t> words_;
  std::string failure_;
};

}  // namespace octavo
