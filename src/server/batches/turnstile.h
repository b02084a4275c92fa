// turnstile.h - lets a number of coroutines pass at once, in the order of their arrival. I/O thread
// only.
#pragma once

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <list>
#include <memory>
#include <utility>

#include "server/http/exchange.h"

namespace octavo::server {

class Turnstile {
 public:
  explicit Turnstile(int most) : free_(most) {}

  // A place, until it is destroyed.
  class Pass {
   public:
    explicit Pass(Turnstile& from) : from_(&from) {}
    Pass(Pass&& other) noexcept : from_(std::exchange(other.from_, nullptr)) {}
    Pass& operator=(Pass&&) = delete;
    ~Pass() {
      if (from_ != nullptr) from_->give_back();
    }

   private:
    Turnstile* from_;
  };

  Awaitable<Pass> enter() {
    if (free_ == 0 || !waiting_.empty()) {
      boost::asio::steady_timer turn(co_await boost::asio::this_coro::executor,
                                     boost::asio::steady_timer::time_point::max());
      const Waiting place(waiting_, turn);
      boost::system::error_code came;
      while (free_ == 0 || waiting_.front() != &turn)
        co_await turn.async_wait(boost::asio::redirect_error(boost::asio::use_awaitable, came));
    }
    --free_;
    wake_first();
    co_return Pass(*this);
  }

 private:
  // In the list for its lifetime.
  class Waiting {
   public:
    Waiting(std::list<boost::asio::steady_timer*>& list, boost::asio::steady_timer& timer)
        : list_(list), place_(list.insert(list.end(), &timer)) {}
    ~Waiting() { list_.erase(place_); }
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;

   private:
    std::list<boost::asio::steady_timer*>& list_;
    std::list<boost::asio::steady_timer*>::iterator place_;
  };

  void give_back() {
    ++free_;
    wake_first();
  }
  void wake_first() {
    if (free_ > 0 && !waiting_.empty()) waiting_.front()->cancel();
  }

  int free_;
  std::list<boost::asio::steady_timer*> waiting_;
};

}  // namespace octavo::server
