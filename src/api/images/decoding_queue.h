// decoding_queue.h - lets one thread at a time decode an image, in the order of their arrival. Any
// thread. No MLX.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <list>
#include <mutex>

#include "api/preparation.h"

namespace octavo::api {

// A mutex would let a request with many images keep its turn: the thread that has just unlocked a mutex
// usually gets it again before one that waits.
class DecodingQueue {
  using Places = std::list<char>;  // the first has its turn

 public:
  // In the queue for its lifetime.
  class Place {
   public:
    explicit Place(DecodingQueue& queue) : queue_(queue), place_(queue.enter()) {}
    ~Place() { queue_.leave(place_); }
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;

    // Returns when everyone who came earlier has left. Throws if the preparation is stopped.
    void wait_for_turn(const Preparation& preparation) const {
      constexpr std::chrono::milliseconds kBetweenChecks{50};
      const Waiting waiting(preparation);
      std::unique_lock lock(queue_.mutex_);
      const auto is_first = [&] { return queue_.places_.begin() == place_; };
      while (!queue_.moved_.wait_for(lock, kBetweenChecks, is_first)) preparation.check();
    }

   private:
    DecodingQueue& queue_;
    const Places::iterator place_;
  };

  size_t size() const {
    const std::lock_guard lock(mutex_);
    return places_.size();
  }

 private:
  Places::iterator enter() {
    const std::lock_guard lock(mutex_);
    return places_.insert(places_.end(), char{});
  }
  void leave(Places::iterator place) {
    {
      const std::lock_guard lock(mutex_);
      places_.erase(place);
    }
    moved_.notify_all();
  }

  mutable std::mutex mutex_;
  std::condition_variable moved_;
  Places places_;
};

}  // namespace octavo::api
