#include "distributed/ticker.h"

#include <utility>

#include "base/thread_name.h"

namespace octavo {

Ticker::Ticker(const char* name, std::chrono::milliseconds interval, std::function<void()> call)
    : thread_([this, name, interval, call = std::move(call)] { run(name, interval, call); }) {}

Ticker::~Ticker() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void Ticker::run(const char* name, std::chrono::milliseconds interval,
                 const std::function<void()>& call) {
  name_this_thread(name);
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, interval, [&] { return stopping_; })) {
    lock.unlock();
    call();
    lock.lock();
  }
}

}  // namespace octavo
