// interrupt.h - Ctrl-C as a question the program asks, instead of its end.
#pragma once

#include <csignal>

namespace octavo {

// While one lives, SIGINT only sets a flag. One at a time; the handler of before comes back when it
// dies.
class InterruptScope {
 public:
  InterruptScope();
  ~InterruptScope();
  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;

  bool requested() const;
  void clear();

 private:
  struct sigaction previous_;
};

}  // namespace octavo
