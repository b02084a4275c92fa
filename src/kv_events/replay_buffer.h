// replay_buffer.h - the newest batches, for subscribers that missed some. No MLX. One thread.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

namespace octavo::kv_events {

// Shared by the sockets that send it.
using Payload = std::shared_ptr<const std::vector<uint8_t>>;

class ReplayBuffer {
 public:
  struct Entry {
    uint64_t sequence;
    Payload payload;
  };

  // Keeps at most this many batches and bytes; the oldest are dropped first.
  ReplayBuffer(size_t most_batches, size_t most_bytes)
      : most_batches_(most_batches), most_bytes_(most_bytes) {}

  // Sequence numbers ascend.
  void add(uint64_t sequence, Payload payload) {
    bytes_ += payload->size();
    entries_.push_back({sequence, std::move(payload)});
    while (!entries_.empty() && (entries_.size() > most_batches_ || bytes_ > most_bytes_)) {
      bytes_ -= entries_.front().payload->size();
      entries_.pop_front();
    }
  }

  const std::deque<Entry>& entries() const { return entries_; }

 private:
  size_t most_batches_;
  size_t most_bytes_;
  size_t bytes_ = 0;
  std::deque<Entry> entries_;
};

}  // namespace octavo::kv_events
