#include "metal_sim/machine.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <csignal>
#include <cstring>

namespace octavo::metal_sim {
namespace fibers = boost::context::detail;

namespace {

constexpr size_t kGuardBytes = 4096;

std::string file_name(const char* path) {
  const char* slash = std::strrchr(path, '/');
  return slash == nullptr ? path : slash + 1;
}

// Signal handlers for unchecked accesses (wider than 16 bytes, stack overflow) while a grid runs.
class SignalHandlers {
 public:
  SignalHandlers(void (*handler)(int, siginfo_t*, void*), std::vector<std::byte>& stack) {
    stack_t own{};
    own.ss_sp = stack.data();
    own.ss_size = stack.size();
    sigaltstack(&own, &old_stack_);
    struct sigaction action {};
    action.sa_sigaction = handler;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    for (size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &action, &old_actions_[i]);
  }
  ~SignalHandlers() {
    for (size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &old_actions_[i], nullptr);
    sigaltstack(&old_stack_, nullptr);
  }
  SignalHandlers(const SignalHandlers&) = delete;
  SignalHandlers& operator=(const SignalHandlers&) = delete;

 private:
  stack_t old_stack_{};
  static constexpr std::array kSignals = {SIGSEGV, SIGBUS, SIGILL, SIGFPE};
  std::array<struct sigaction, kSignals.size()> old_actions_{};
};

}  // namespace

bool Machine::Site::operator==(const Site& other) const {
  return line == other.line && flags == other.flags &&
         (operation == other.operation || std::strcmp(operation, other.operation) == 0) &&
         (file == other.file || std::strcmp(file, other.file) == 0);
}

std::string Machine::Site::text() const {
  return fmt::format("{} at {}:{}", operation, file_name(file), line);
}

Machine::Machine() : signal_stack_(64 << 10), fibers_(kMostThreads), simdgroups_(kMostSimdgroups) {
  const size_t bytes = kMostThreads * kStackBytes;
  void* stacks = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (stacks == MAP_FAILED) throw std::runtime_error("metal_sim: no memory for stacks");
  stacks_ = static_cast<std::byte*>(stacks);
  for (int i = 0; i < kMostThreads; ++i) mprotect(stack_of(i), kGuardBytes, PROT_NONE);
}

// Staggered within their pages: otherwise the tops, which are always in use, would share a few
// cache sets.
std::byte* Machine::stack_top(int thread) const {
  constexpr int kSteps = 64;
  constexpr size_t kStep = 7 * 64;
  return stack_of(thread) + kStackBytes - static_cast<size_t>(thread % kSteps) * kStep;
}

Machine::~Machine() { munmap(stacks_, kMostThreads * kStackBytes); }

RunCounts Machine::run(const Run& run, const MachineOptions& options) {
  run_ = &run;
  options_ = options;
  counts_ = {};
  fault_.reset();
  trace_ = {};
  random_.seed(options.seed);
  thread_count_ = static_cast<int>(run.threads.count());
  if (thread_count_ < 1 || thread_count_ > kMostThreads)
    throw std::runtime_error(fmt::format("{} threads in a threadgroup", thread_count_));
  const int simdgroups = (thread_count_ + msl::kSimdLanes - 1) / msl::kSimdLanes;
  simdgroup_order_.resize(static_cast<size_t>(simdgroups));
  lane_order_.resize(msl::kSimdLanes);
  for (auto* order : {&simdgroup_order_, &lane_order_}) {
    for (size_t i = 0; i < order->size(); ++i) (*order)[i] = static_cast<int>(i);
    if (options.order == ThreadOrder::kBackward) std::ranges::reverse(*order);
  }
  msl_multiply_adds = 0;
  races_.clock.start_launch();
  {
    const SignalHandlers handlers(&Machine::on_signal, signal_stack_);
    if (sigsetjmp(after_signal_, 1) == 0) run_groups();
  }
  current_ = -1;
  if (fault_) throw_fault();
  counts_.multiply_adds = msl_multiply_adds;
  return counts_;
}

void Machine::run_groups() {
  const Grid& groups = run_->groups;
  for (group_.z = 0; group_.z < groups.z; ++group_.z) {
    for (group_.y = 0; group_.y < groups.y; ++group_.y) {
      for (group_.x = 0; group_.x < groups.x; ++group_.x) {
        run_group();
        if (fault_) return;
      }
    }
  }
}

void Machine::run_group() {
  races_.clock.start_group();
  threadgroup_.start_group();
  for (int i = 0; i < thread_count_; ++i) {
    Fiber& fiber = fibers_[static_cast<size_t>(i)];
    fiber.context = fibers::make_fcontext(stack_top(i), kStackBytes / 2, &Machine::fiber_main);
    fiber.state = State::kRunning;
    fiber.parity = 0;
  }
  counts_.threads += static_cast<uint64_t>(thread_count_);
  do {
    if (options_.order == ThreadOrder::kShuffled) {
      std::ranges::shuffle(simdgroup_order_, random_);
      std::ranges::shuffle(lane_order_, random_);
    }
    for (const int simdgroup : simdgroup_order_) {
      run_simdgroup(simdgroup);
      if (fault_) return;
    }
  } while (release_group());
  counts_.threadgroup_bytes = std::max(counts_.threadgroup_bytes, threadgroup_.bytes());
}

// Runs until all of its lanes have ended or wait for the other simdgroups.
void Machine::run_simdgroup(int simdgroup) {
  do {
    for (const int lane : lane_order_) {
      const int thread = simdgroup * msl::kSimdLanes + lane;
      if (thread >= thread_count_ || fibers_[static_cast<size_t>(thread)].state != State::kRunning)
        continue;
      resume(thread);
      if (fault_) return;
    }
    if (options_.costs) trace_.flush();
  } while (release_lanes(simdgroup));
}

// All lanes wait or have ended. Lanes at a simd operation continue if all remaining lanes are at
// the same one.
bool Machine::release_lanes(int simdgroup) {
  const int begin = simdgroup * msl::kSimdLanes;
  const int end = std::min(begin + msl::kSimdLanes, thread_count_);
  const auto waits_for_lanes = [](const Fiber& fiber) {
    return fiber.state == State::kInSimdOperation || fiber.state == State::kAtSimdBarrier;
  };
  const auto lanes =
      std::span(fibers_).subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin));
  const auto first = std::ranges::find_if(lanes, waits_for_lanes);
  if (first == lanes.end()) return false;
  uint32_t active = 0;
  for (size_t lane = 0; lane < lanes.size(); ++lane) {
    const Fiber& fiber = lanes[lane];
    if (fiber.state == first->state && fiber.site == first->site) {
      active |= 1u << lane;
    } else if (fiber.state != State::kDone) {
      record(fmt::format("divergent {}: lane {} is there, lane {} waits at {}", first->site.text(),
                         first - lanes.begin(), lane, fiber.site.text()),
             fmt::format("{}:{}", file_name(first->site.file), first->site.line), nullptr,
             begin + static_cast<int>(first - lanes.begin()));
      return false;
    }
  }
  if (first->state == State::kAtSimdBarrier) {
    races_.clock.pass_simd_barrier(simdgroup, first->site.flags);
  } else {
    msl::Exchange& exchange = simdgroups_[static_cast<size_t>(simdgroup)].exchanges[first->parity];
    exchange.active = active;
    exchange.reduced = false;
    ++counts_.simd_operations;
  }
  for (Fiber& fiber : lanes)
    if (fiber.state != State::kDone) fiber.state = State::kRunning;
  return true;
}

// All threads wait at a barrier or have ended. Returns whether any can continue.
bool Machine::release_group() {
  const auto threads = std::span(fibers_).first(static_cast<size_t>(thread_count_));
  const auto waits = [](const Fiber& fiber) { return fiber.state == State::kAtGroupBarrier; };
  const auto first = std::ranges::find_if(threads, waits);
  if (first == threads.end()) return false;
  for (size_t i = 0; i < threads.size(); ++i) {
    const Fiber& fiber = threads[i];
    if (waits(fiber) && fiber.site == first->site) continue;
    record(fmt::format("divergent barrier: thread {} waits in {}, thread {} {}",
                       first - threads.begin(), first->site.text(), i,
                       waits(fiber) ? "in " + fiber.site.text() : "has returned"),
           fmt::format("{}:{}", file_name(first->site.file), first->site.line), nullptr,
           static_cast<int>(first - threads.begin()));
    return false;
  }
  ++counts_.barriers;
  races_.clock.pass_group_barrier(first->site.flags);
  for (Fiber& fiber : threads) fiber.state = State::kRunning;
  return true;
}

void Machine::fiber_main(fibers::transfer_t from) {
  Machine& self = *static_cast<Machine*>(from.data);
  self.scheduler_ = from.fctx;
  self.run_->run_thread();
  self.wait(State::kDone);
}

void Machine::resume(int thread) {
  current_ = thread;
  Fiber& fiber = fibers_[static_cast<size_t>(thread)];
  fiber.context = fibers::jump_fcontext(fiber.context, this).fctx;
  current_ = -1;
}

// Suspends the running fiber; returns when it is resumed.
void Machine::wait(State state) {
  fibers_[static_cast<size_t>(current_)].state = state;
  scheduler_ = fibers::jump_fcontext(scheduler_, nullptr).fctx;
}

void Machine::record(const std::string& what, std::string place, const void* instruction,
                     int thread) {
  if (!fault_) fault_ = std::make_unique<Fault>(Fault{what, std::move(place), instruction, thread});
}

void Machine::fail(const std::string& what, std::string place, const void* instruction) {
  if (!is_running()) throw KernelFault(what, std::move(place), instruction);
  record(what, std::move(place), instruction, current_);
  fibers::jump_fcontext(scheduler_, nullptr);
  __builtin_unreachable();  // a fiber with a fault is never resumed
}

void Machine::throw_fault() const {
  throw KernelFault(fmt::format("{} [threadgroup ({}, {}, {}), thread {}]", fault_->what, group_.x,
                                group_.y, group_.z, fault_->thread),
                    fault_->place, fault_->instruction);
}

void Machine::on_signal(int signal, siginfo_t* info, void*) {
  Machine& self = machine();
  if (!self.is_running()) {  // not caused by the kernel: let it end the process
    std::signal(signal, SIG_DFL);
    return;
  }
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  const std::byte* stack = self.stack_of(self.current_);
  const bool overflow = address - reinterpret_cast<uintptr_t>(stack) < kGuardBytes;
  std::string what = overflow ? "stack overflow" : fmt::format("wild access at {:#x}", address);
  if (signal == SIGILL || signal == SIGFPE) what = "undefined behaviour";
  self.record(what, "", nullptr, self.current_);
  siglongjmp(self.after_signal_, 1);
}

}  // namespace octavo::metal_sim
