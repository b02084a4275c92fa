// interrupt.h - turns Ctrl-C into a flag that the program polls.
#pragma once

#include <csignal>

namespace octavo {

// During its lifetime SIGINT only sets a flag; the destructor restores the previous handler. At
// most one may exist at a time.
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
