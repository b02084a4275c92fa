// mask_sender.h - sends the masks of announced steps when they are set, on a thread of its own. No
// MLX.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "distributed/step_message.h"
#include "kernels/types/token_mask.h"

namespace octavo {

// add() and drop(): one thread.
class MaskSender {
 public:
  // `send` is called by the thread and must not throw.
  explicit MaskSender(std::function<void(const MaskMessage&)> send);
  ~MaskSender();
  MaskSender(const MaskSender&) = delete;
  MaskSender& operator=(const MaskSender&) = delete;

  // After the step has been sent.
  void add(const StepMessage& step);
  // No mask of the steps so far is sent after the return. Waits for a send in progress.
  void drop();

 private:
  struct Pending {
    uint64_t number;
    uint32_t index;
    std::shared_ptr<const TokenMask> mask;
  };
  void run();

  std::function<void(const MaskMessage&)> send_;
  std::mutex sending_;  // held while a mask is sent; locked before mutex_
  std::mutex mutex_;    // guards all below
  std::condition_variable changed_;
  std::deque<Pending> pending_;
  uint64_t drops_ = 0;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace octavo
