// pending_lease.h - a lease that is being acquired, while its caller can also wait for other things.
// I/O thread only. No MLX.
#pragma once

#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/steady_timer.hpp>
#include <exception>
#include <memory>
#include <string>

#include "front/upstreams.h"

namespace octavo::front {

class PendingLease {
 public:
  using Clock = std::chrono::steady_clock;

  PendingLease(boost::asio::io_context& io, Upstreams& upstreams, std::string model,
               AcquireOptions options);
  // Cancels an acquisition that has not ended.
  ~PendingLease();
  PendingLease(const PendingLease&) = delete;
  PendingLease& operator=(const PendingLease&) = delete;

  bool done() const;
  // Returns when it is done, at the deadline, or after wake().
  Awaitable<void> wait(Clock::time_point deadline);
  void wake();
  // Call once, when done. Throws what acquire() threw.
  UpstreamLease take();

 private:
  struct State;
  std::shared_ptr<State> state_;  // shared with the acquisition, which may end later
};

}  // namespace octavo::front
