#include "distributed/mask_sender.h"

#include <chrono>
#include <utility>

#include "base/thread_name.h"

namespace octavo {
namespace {

// Until it is noticed that the steps were dropped, and their masks may never be set.
constexpr std::chrono::milliseconds kMaskWait{50};

MaskMessage mask_message(uint64_t number, uint32_t index, const TokenMask& mask) {
  MaskMessage message{.number = number, .index = index};
  if (!mask.failure().empty()) {
    message.failure = mask.failure();
  } else {
    const auto words = mask.wait();
    message.words.assign(words.begin(), words.end());
  }
  return message;
}

}  // namespace

MaskSender::MaskSender(std::function<void(const MaskMessage&)> send)
    : send_(std::move(send)), thread_([this] { run(); }) {}

MaskSender::~MaskSender() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void MaskSender::add(const StepMessage& step) {
  const std::lock_guard lock(mutex_);
  const auto& sampling = step.batch.sampling;
  for (size_t i = 0; i < sampling.size(); ++i)
    if (sampling[i].mask != nullptr)
      pending_.push_back({step.number, static_cast<uint32_t>(i), sampling[i].mask});
  changed_.notify_all();
}

void MaskSender::drop() {
  const std::lock_guard sending(sending_);
  const std::lock_guard lock(mutex_);
  pending_.clear();
  ++drops_;
}

// In the order of the steps, which is the order in which they are drawn.
void MaskSender::run() {
  name_this_thread("mask-sender");
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stopping_ || !pending_.empty(); });
    if (stopping_) return;
    const Pending next = pending_.front();
    const uint64_t drops = drops_;
    lock.unlock();
    if (next.mask->wait_for(kMaskWait)) {
      const MaskMessage message = mask_message(next.number, next.index, *next.mask);
      const std::lock_guard sending(sending_);
      lock.lock();
      const bool dropped = drops != drops_;
      if (!dropped) pending_.pop_front();
      lock.unlock();
      if (!dropped) send_(message);
    }
    lock.lock();
  }
}

}  // namespace octavo
