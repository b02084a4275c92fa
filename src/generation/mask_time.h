// mask_time.h - limits the processor time that grammars take on the threads that compute masks, for
// which the steps of all requests wait. Any thread.
#pragma once

#include <chrono>
#include <mutex>

namespace octavo {

// A store of processor time that refills as time passes.
class TimeStore {
 public:
  using Clock = std::chrono::steady_clock;
  using Milliseconds = std::chrono::duration<double, std::milli>;

  // refill: per elapsed time.
  TimeStore(Milliseconds capacity, double refill)
      : capacity_(capacity), refill_(refill), left_(capacity) {}

  // Takes `used` and returns whether that much was left.
  bool take(Milliseconds used, Clock::time_point now = Clock::now());

 private:
  std::mutex mutex_;  // guards the last two
  Milliseconds capacity_;
  double refill_;
  Milliseconds left_;
  Clock::time_point filled_ = Clock::now();
};

struct MaskTimeOptions {
  TimeStore::Milliseconds request_capacity{120};
  double request_refill = 0.4;
  TimeStore::Milliseconds total_capacity{160};
  double total_refill = 0.8;
  // Requests whose masks take less on average are never ended: many of them are merely a high load.
  TimeStore::Milliseconds slow_mask{1.5};
};

// The mask time of one request, shared by its choices.
class MaskTime {
 public:
  // `total` is shared by all requests and must outlive this object.
  MaskTime(TimeStore& total, const MaskTimeOptions& options)
      : options_(options), total_(total), own_(options.request_capacity, options.request_refill) {}

  // Charges the time of one mask. Returns false if the request must end.
  bool charge(TimeStore::Milliseconds used);

 private:
  MaskTimeOptions options_;
  TimeStore& total_;
  TimeStore own_;
  std::mutex mutex_;  // guards the next
  TimeStore::Milliseconds average_{0};
};

}  // namespace octavo
