// memory.h (metal_sim) - the memory a kernel may access, and the history of accesses.
//
// Device memory: each argument is surrounded by inaccessible pages. Threadgroup memory: variables
// with gaps between them. Every access of a kernel is checked here first, byte by byte.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "metal_sim/costs.h"

namespace octavo::metal_sim {

inline constexpr int kMostArguments = 32;
inline constexpr size_t kMostThreadgroupBytes = 32 * 1024;
inline constexpr int kMostSimdgroups = 32;

// Accesses to one argument by all threads of a kernel's launches.
struct AccessCounts {
  uint64_t loads = 0;
  uint64_t load_bytes = 0;
  uint64_t stores = 0;
  uint64_t store_bytes = 0;
  MemoryCosts load_costs = {};
  MemoryCosts store_costs = {};
};

// Logical time, advanced by barriers. An access is stamped with `now`; it is ordered before another
// if a barrier that applies to both lies between them. Stamps only increase, also between launches,
// so nothing has to be cleared.
struct BarrierClock {
  uint64_t now = 1;
  uint64_t launch_start = 1;
  uint64_t group_start = 1;
  // The last barrier that orders [threadgroup memory, device memory].
  std::array<uint64_t, 2> group_barrier = {};
  std::array<std::array<uint64_t, 2>, kMostSimdgroups> simd_barrier = {};

  void start_launch() { launch_start = ++now; }
  void start_group();
  // flags: msl::kOrders...
  void pass_group_barrier(int flags);
  void pass_simd_barrier(int simdgroup, int flags);
};

// The last write and the last reads of one byte: stamp << 16 | thread, or one of the codes for
// several threads.
struct ByteHistory {
  uint64_t write;
  uint64_t read;
};

enum class Space : uint8_t { kThreadgroup, kDevice };

// The fault of an access, or empty.
using Complaint = std::string;

struct Access {
  uintptr_t address;
  unsigned bytes;
  bool is_write;
  int thread;  // index in the threadgroup
};

class RaceDetector {
 public:
  BarrierClock clock;

  // history: of the access's first byte. offset: of that byte in `name`, for the message.
  Complaint check(const Access& access, Space space, ByteHistory* history, std::string_view name,
                  size_t offset);
  // Atomic accesses do not race with each other; non-atomic ones must be ordered with them.
  void mark_atomic(const Access& access, ByteHistory* history);

 private:
  bool is_ordered(uint64_t touch, int thread, Space space) const;
  uint64_t merged_read(uint64_t earlier, int thread, Space space) const;
  Complaint race(const Access& access, uint64_t other, bool other_is_write, std::string_view name,
                 size_t offset) const;
  std::string who(uint64_t touch) const;
};

struct DeviceSlot {
  std::string name;
  size_t bytes = 0;
  bool is_bound = false;
  bool is_writable = false;
  AccessCounts* load_counts = nullptr;
  AccessCounts* store_counts = nullptr;
};

// Slots of address space, one per argument of a launch.
class DeviceMemory {
 public:
  DeviceMemory();
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  void clear() { used_ = 0; }
  // The memory of a new slot, to be filled by the caller.
  std::byte* add(DeviceSlot slot);
  bool holds(uintptr_t address) const { return address - base_ < kSlots * kSlotBytes; }
  Complaint check(const Access& access, RaceDetector* races);
  Complaint check_atomic(const Access& access, RaceDetector& races);
  // Of an argument's accesses.
  MemoryCosts& costs(const Access& access);

 private:
  static constexpr size_t kSlots = kMostArguments;
  static constexpr size_t kSlotBytes = size_t{1} << 31;
  static constexpr size_t kStart = kSlotBytes / 2;  // of the argument in its slot

  Complaint out_of_bounds(const Access& access) const;
  ByteHistory* history(uintptr_t address) const;

  uintptr_t base_;
  uintptr_t history_base_;
  size_t used_ = 0;
  std::array<DeviceSlot, kSlots> slots_;
  std::array<size_t, kSlots> opened_ = {};  // accessible bytes of the slot; they remain accessible
};

// Threadgroup memory of the running threadgroup.
class ThreadgroupMemory {
 public:
  ThreadgroupMemory();
  ~ThreadgroupMemory();
  ThreadgroupMemory(const ThreadgroupMemory&) = delete;
  ThreadgroupMemory& operator=(const ThreadgroupMemory&) = delete;

  void start_group();
  // Returns the same memory to every thread for one id. Null if the limit is exceeded.
  void* variable(int id, size_t bytes, size_t alignment, const char* name);
  size_t bytes() const { return bytes_; }
  bool holds(uintptr_t address) const { return address - base_ < kArenaBytes; }
  Complaint check(const Access& access, RaceDetector* races);
  Complaint check_atomic(const Access& access, RaceDetector& races);

 private:
  struct Variable {
    int id;
    size_t offset;
    size_t bytes;
    const char* name;
  };
  static constexpr size_t kArenaBytes = size_t{1} << 17;
  static constexpr size_t kGap = 64;

  const Variable* variable_at(const Access& access) const;

  uintptr_t base_;
  size_t used_ = 0;
  size_t bytes_ = 0;
  std::vector<Variable> variables_;
  std::vector<uint8_t> owner_;  // of each byte: 1 + index of its variable
  std::vector<ByteHistory> history_;
};

}  // namespace octavo::metal_sim
