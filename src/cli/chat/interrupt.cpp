#include "cli/chat/interrupt.h"

#include <atomic>

#include "base/error.h"

namespace octavo {
namespace {

// A signal handler can only access globals.
std::atomic<bool> g_interrupted = false;
static_assert(std::atomic<bool>::is_always_lock_free);

void on_interrupt(int) { g_interrupted.store(true, std::memory_order_relaxed); }

}  // namespace

InterruptScope::InterruptScope() : previous_{} {
  clear();
  struct sigaction action = {};
  action.sa_handler = on_interrupt;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  OCTAVO_CHECK(sigaction(SIGINT, &action, &previous_) == 0);
}

InterruptScope::~InterruptScope() { sigaction(SIGINT, &previous_, nullptr); }

bool InterruptScope::requested() const { return g_interrupted.load(std::memory_order_relaxed); }

void InterruptScope::clear() { g_interrupted.store(false, std::memory_order_relaxed); }

}  // namespace octavo
