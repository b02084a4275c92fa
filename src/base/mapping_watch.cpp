#include "base/mapping_watch.h"

#include <signal.h>  // NOLINT(modernize-deprecated-headers): POSIX
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <mutex>

namespace octavo {

// A place in a list that the signal handler reads without a lock. Places are reused and never freed,
// as a handler may be looking at any of them.
class WatchedMapping {
 public:
  std::atomic<uintptr_t> begin = 0;  // 0: the place is free
  std::atomic<size_t> size = 0;
  std::atomic<bool> has_lost_bytes = false;
  WatchedMapping* next = nullptr;
};

namespace {

// A signal handler has no arguments of its own, so what it needs is global.
std::atomic<WatchedMapping*> first_watch = nullptr;
std::mutex watch_mutex;  // held by those who change the list
struct sigaction bus_action_before {};
size_t watched_page_bytes = 0;

WatchedMapping* mapping_at(uintptr_t address) {
  for (WatchedMapping* each = first_watch.load(); each != nullptr; each = each->next) {
    const uintptr_t begin = each->begin.load();
    if (begin != 0 && address >= begin && address - begin < each->size.load()) return each;
  }
  return nullptr;
}

// Zeros from the page at `address` to the end of the mapping: one piece, since the number of a
// process's mappings is limited.
bool replace_with_zeros(const WatchedMapping& mapping, uintptr_t address) {
  const uintptr_t from = address / watched_page_bytes * watched_page_bytes;
  const size_t bytes = mapping.begin.load() + mapping.size.load() - from;
  void* const at = reinterpret_cast<void*>(from);  // NOLINT(performance-no-int-to-ptr)
  return ::mmap(at, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == at;
}

// Calls only what is safe in a signal handler: mmap() is a system call without state of its own.
void on_bus_error(int signal, siginfo_t* facts, void* context) {
  const int error_before = errno;
  const auto address = reinterpret_cast<uintptr_t>(facts->si_addr);
  WatchedMapping* const mapping = mapping_at(address);
  if (mapping != nullptr && replace_with_zeros(*mapping, address)) {
    mapping->has_lost_bytes = true;
    errno = error_before;
    return;
  }
  if ((bus_action_before.sa_flags & SA_SIGINFO) != 0) {
    bus_action_before.sa_sigaction(signal, facts, context);
  } else if (bus_action_before.sa_handler == SIG_DFL || bus_action_before.sa_handler == SIG_IGN) {
    // On return, the instruction fails again and ends the process.
    ::sigaction(signal, &bus_action_before, nullptr);
  } else {
    bus_action_before.sa_handler(signal);
  }
}

void install_bus_handler() {
  watched_page_bytes = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  ::sigaction(SIGBUS, nullptr, &bus_action_before);
  struct sigaction action {};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  ::sigaction(SIGBUS, &action, nullptr);
}

WatchedMapping* free_place() {
  for (WatchedMapping* each = first_watch.load(); each != nullptr; each = each->next)
    if (each->begin.load() == 0) return each;
  auto* const added = new WatchedMapping;
  added->next = first_watch.load();
  first_watch = added;
  return added;
}

}  // namespace

void EndMappingWatch::operator()(WatchedMapping* mapping) const noexcept {
  const std::lock_guard lock(watch_mutex);
  mapping->begin = 0;
}

MappingWatch watch_mapping(const std::byte* begin, size_t size) {
  static std::once_flag installed;
  std::call_once(installed, install_bus_handler);
  const std::lock_guard lock(watch_mutex);
  WatchedMapping* const place = free_place();
  place->size = size;
  place->has_lost_bytes = false;
  place->begin = reinterpret_cast<uintptr_t>(begin);
  return MappingWatch(place);
}

bool has_lost_bytes(const WatchedMapping& mapping) { return mapping.has_lost_bytes; }

}  // namespace octavo
