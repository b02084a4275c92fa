// machine.h (metal_sim) - a GPU with one core: runs a grid of threads until it ends or until the
// first fault.
//
// A GPU thread is a fiber. Threadgroups run one after the other; within one, a fiber runs until it
// has to wait for others, at a barrier or a simd operation. There is one machine per process,
// because kernels call it through C functions (callbacks.cpp).
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

// The order in which threads run between two barriers. Results must not depend on it.
enum class ThreadOrder : uint8_t { kForward, kBackward, kShuffled };

struct MachineOptions {
  ThreadOrder order = ThreadOrder::kForward;
  uint32_t seed = 1;
  bool finds_races = true;  // false: faster
  bool costs = false;       // counts what costs.h describes, in kernels compiled for it
};

struct ThreadgroupArgument {
  int index;
  size_t bytes;
};

// One run: the kernel and its bound parameters.
struct Run {
  void (*run_thread)() = nullptr;
  Grid groups;
  Grid threads;
  std::array<void*, kMostArguments> buffers = {};
  std::vector<ThreadgroupArgument> threadgroup = {};
  uintptr_t code_begin = 0;  // of the kernel's library, which contains its constants
  uintptr_t code_end = 0;
};

struct RunCounts {
  uint64_t threads = 0;
  uint64_t barriers = 0;  // threadgroup barriers
  uint64_t simd_operations = 0;
  uint64_t multiply_adds = 0;
  size_t threadgroup_bytes = 0;
  MemoryCosts threadgroup_loads = {};
  MemoryCosts threadgroup_stores = {};
};

// A fault in a kernel. `place` is "file:line"; if it is empty, the instruction is known.
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

  // Throws KernelFault with the threadgroup and thread in the message.
  RunCounts run(const Run& run, const MachineOptions& options);

  // Called by the running fiber:
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
    uint8_t parity;  // of its exchange: two alternate, so that a fast lane overwrites nothing
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
  void trace(const Access& access, const void* instruction);
  void record(const std::string& what, std::string place, const void* instruction, int thread);
  [[noreturn]] void throw_fault() const;
  std::byte* stack_of(int thread) const {
    return stacks_ + static_cast<size_t>(thread) * kStackBytes;
  }

  std::byte* stack_top(int thread) const;

  static constexpr size_t kStackBytes = 128 << 10;

  ThreadgroupMemory threadgroup_;
  RaceDetector races_;
  AccessTrace trace_;
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
