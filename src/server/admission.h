// admission.h - limits how many requests and body bytes a server holds at once. I/O thread only.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>

namespace octavo::server {

// Lends parts of a fixed amount, which return when the lease is destroyed.
class Allowance {
 public:
  class Lease {
   public:
    Lease() = default;
    Lease(Lease&& other) noexcept
        : from_(std::exchange(other.from_, nullptr)), amount_(std::exchange(other.amount_, 0)) {}
    Lease& operator=(Lease&& other) noexcept {
      std::swap(from_, other.from_);
      std::swap(amount_, other.amount_);
      return *this;
    }
    ~Lease() {
      if (from_ != nullptr) from_->lent_ -= amount_;
    }
    // Returns false if the amount is not available.
    bool grow_to(int64_t amount);

   private:
    friend class Allowance;
    Lease(Allowance* from, int64_t amount) : from_(from), amount_(amount) {}
    Allowance* from_ = nullptr;
    int64_t amount_ = 0;
  };

  explicit Allowance(int64_t most) : most_(most) {}

  std::optional<Lease> try_lend(int64_t amount);
  int64_t lent() const { return lent_; }
  int64_t most() const { return most_; }

 private:
  int64_t most_;
  int64_t lent_ = 0;
};

// Estimates Retry-After from the rate at which requests finish.
class Backlog {
 public:
  using Clock = std::chrono::steady_clock;

  void request_ended(Clock::time_point now);
  // For the header Retry-After: about the time until `open` requests have finished.
  std::chrono::seconds retry_after(int64_t open) const;

 private:
  Clock::time_point last_end_ = {};
  double seconds_between_ends_ = 0;  // moving average
};

}  // namespace octavo::server
