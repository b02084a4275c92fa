// machine.h (metal_sim) - a GPU of one core: runs a grid of threads to its end or to the first
// fault.
//
// A GPU thread is a fiber. Threadgroups run one after the other; in one, a fiber runs until it
// needs the others: at a barrier or a simd operation. There is one machine in a process, because
// kernels call it through C functions (callbacks.cpp).
#pragma once

#include <signal.h>

#include <boost/context/detail/fcontext.hpp>
#include <csetjmp>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "metal_sim/memory.h"
#include "metal_sim/shim/runtime.h"

namespace octavo::metal_sim {

struct Grid {
  uint32_t x = 1;
  uint32_t y = 1;
  uint32_t z = 1;
  uint32_t count() const { return x * y * z; }
};

// In which order threads run between two barriers: a kernel must not care.
enum class ThreadOrder : uint8_t { kForward, kBackward, kShuffled };

struct MachineOptions {
  ThreadOrder order = ThreadOrder::kForward;
  uint32_t seed = 1;
  bool finds_races = true;  // off: faster
};

struct ThreadgroupArgument {
  int index;
  size_t bytes;
};

// One run: what the kernel's parameters are bound to.
struct Run {
  void (*run_thread)() = nullptr;
  Grid groups;
  Grid threads;
  std::array<void*, kMostArguments> buffers = {};
  std::vector<ThreadgroupArgument> threadgroup = {};
  uintptr_t code_begin = 0;  // of the kernel's library: its constants are read there
  uintptr_t code_end = 0;
};

struct RunCounts {
  uint64_t threads = 0;
  uint64_t barriers = 0;  // of threadgroups
  uint64_t simd_operations = 0;
  uint64_t multiply_adds = 0;
  size_t threadgroup_bytes = 0;
};

// A kernel did something wrong. `place` is "file:line", or else the instruction is known.
class KernelFault : public std::runtime_error {
 public:
  KernelFault(const std::string& what, std::string place, const void* instruction)
      : std::runtime_error(what), place_(std::move(place)), instruction_(instruction) {}
  const std::string& place() const { return place_; }
  const void* instruction() const { return instruction_; }

 private:
  std::string place_;
  const void* instruction_;
};

class Machine {
 public:
  static constexpr int kMostThreads = 1024;

  Machine();
  ~Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  DeviceMemory device;

  // Throws KernelFault; its text names threadgroup and thread.
  RunCounts run(const Run& run, const MachineOptions& options);

  // Calls of the running fiber's:
  bool is_running() const { return current_ >= 0; }
  void access(uintptr_t address, unsigned bytes, bool is_write, const void* instruction);
  void atomic_access(uintptr_t address, unsigned bytes, const void* instruction);
  msl::Exchange* exchange(const void* value, unsigned size, const char* operation, const char* file,
                          int line);
  void barrier(bool of_simdgroup, int flags, const char* file, int line);
  void* threadgroup_variable(int id, size_t bytes, size_t alignment, const char* name);
  void* argument(msl::Source source, int index, const char* name);
  void position(msl::Source source, uint32_t* xyz) const;
  uint32_t lane() const { return static_cast<uint32_t>(current_) % msl::kSimdLanes; }
  void limit_threads(int most);
  [[noreturn]] void fail(const std::string& what, std::string place, const void* instruction);

 private:
  enum class State : uint8_t { kRunning, kInSimdOperation, kAtSimdBarrier, kAtGroupBarrier, kDone };
  // Where a fiber waits.
  struct Site {
    const char* operation;
    const char* file;
    int line;
    int flags;
    bool operator==(const Site& other) const;
    std::string text() const;
  };
  struct Fiber {
    boost::context::detail::fcontext_t context;
    Site site;
    State state;
    uint8_t parity;  // of the exchange it uses: two take turns, so that a quick lane spoils nothing
  };
  struct Simdgroup {
    msl::Exchange exchanges[2];
  };
  struct Fault {
    std::string what;
    std::string place;
    const void* instruction;
    int thread;
  };

  static void fiber_main(boost::context::detail::transfer_t from);
  static void on_signal(int signal, siginfo_t* info, void* context);

  void run_groups();
  void run_group();
  void run_simdgroup(int simdgroup);
  bool release_lanes(int simdgroup);
  bool release_group();
  void resume(int thread);
  void wait(State state);
  void record(const std::string& what, std::string place, const void* instruction, int thread);
  [[noreturn]] void throw_fault() const;
  std::byte* stack_of(int thread) const {
    return stacks_ + static_cast<size_t>(thread) * kStackBytes;
  }

  std::byte* stack_top(int thread) const;

  static constexpr size_t kStackBytes = 128 << 10;

  ThreadgroupMemory threadgroup_;
  RaceDetector races_;
  std::byte* stacks_;
  std::vector<std::byte> signal_stack_;
  std::vector<Fiber> fibers_;
  std::vector<Simdgroup> simdgroups_;
  boost::context::detail::fcontext_t scheduler_ = nullptr;
  sigjmp_buf after_signal_;

  const Run* run_ = nullptr;
  MachineOptions options_;
  RunCounts counts_;
  std::mt19937 random_;
  std::vector<int> simdgroup_order_;
  std::vector<int> lane_order_;
  Grid group_;
  int thread_count_ = 0;
  int current_ = -1;  // the running fiber
  std::unique_ptr<Fault> fault_;
};

inline Machine& machine() {
  static Machine one;
  return one;
}

}  // namespace octavo::metal_sim
