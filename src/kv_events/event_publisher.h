// event_publisher.h - sends the changes of the prefix cache as KV events, on a thread of its own.
// No MLX.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "kv_events/change_queue.h"
#include "kv_events/encode_batch.h"
#include "kv_events/event_sockets.h"

namespace octavo::kv_events {

class EventPublisher {
 public:
  // Opens the sockets; throws SetupError.
  explicit EventPublisher(Config config);
  ~EventPublisher();
  EventPublisher(const EventPublisher&) = delete;
  EventPublisher& operator=(const EventPublisher&) = delete;

  PrefixObserver& observer() { return queue_; }
  // With the addresses in use.
  const Config& config() const { return config_; }

 private:
  // Wakes the thread; may be called by any.
  class Signal {
   public:
    Signal();
    ~Signal();
    void raise() const;
    void lower() const;
    int fd() const { return fds_[0]; }

   private:
    int fds_[2];
  };

  void run();
  void send(ChangeQueue::Batch batch);

  Config config_;
  EventSockets sockets_;
  Signal signal_;
  ChangeQueue queue_;
  std::atomic<bool> stopping_ = false;
  // Of the thread.
  ReplayBuffer replay_;
  std::vector<GroupFacts> groups_;
  uint64_t next_ = 0;
  std::thread thread_;
};

}  // namespace octavo::kv_events
