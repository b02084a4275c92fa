// The machine's functions that a running fiber calls.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "metal_sim/machine.h"

namespace octavo::metal_sim {

void Machine::access(uintptr_t address, unsigned bytes, bool is_write, const void* instruction) {
  if (!is_running()) return;
  RaceDetector* races = options_.finds_races ? &races_ : nullptr;
  const Access access{address, bytes, is_write, current_};
  Complaint complaint;
  if (device.holds(address)) {
    complaint = device.check(access, races);
  } else if (threadgroup_.holds(address)) {
    complaint = threadgroup_.check(access, races);
  } else if (address - reinterpret_cast<uintptr_t>(stack_of(current_)) < kStackBytes) {
    return;
  } else if (address >= run_->code_begin && address < run_->code_end) {
    if (is_write) complaint = "write to a variable of the program's";
  } else {
    complaint = fmt::format("wild {} at {:#x}", is_write ? "write" : "read", address);
  }
  if (!complaint.empty()) fail(complaint, "", instruction);
  if (options_.costs) trace(access, instruction);
}

void Machine::trace(const Access& access, const void* instruction) {
  const bool is_device = device.holds(access.address);
  if (!is_device && !threadgroup_.holds(access.address)) return;
  MemoryCosts* costs = is_device         ? &device.costs(access)
                       : access.is_write ? &counts_.threadgroup_stores
                                         : &counts_.threadgroup_loads;
  trace_.add(lane(), instruction, access.address, access.bytes, {costs, is_device});
}

void Machine::atomic_access(uintptr_t address, unsigned bytes, const void* instruction) {
  const Access access{address, bytes, true, current_};
  Complaint complaint;
  if (device.holds(address)) {
    complaint = device.check_atomic(access, races_);
  } else if (threadgroup_.holds(address)) {
    complaint = threadgroup_.check_atomic(access, races_);
  } else {
    complaint = fmt::format("wild atomic operation at {:#x}", address);
  }
  if (!complaint.empty()) fail(complaint, "", instruction);
}

msl::Exchange* Machine::exchange(const void* value, unsigned size, const char* operation,
                                 const char* file, int line) {
  Fiber& fiber = fibers_[static_cast<size_t>(current_)];
  fiber.parity ^= 1;
  msl::Exchange& exchange =
      simdgroups_[static_cast<size_t>(current_ / msl::kSimdLanes)].exchanges[fiber.parity];
  std::memcpy(exchange.values[lane()], value, size);
  fiber.site = {operation, file, line, 0};
  wait(State::kInSimdOperation);
  return &exchange;
}

void Machine::barrier(bool of_simdgroup, int flags, const char* file, int line) {
  Fiber& fiber = fibers_[static_cast<size_t>(current_)];
  fiber.site = {of_simdgroup ? "simdgroup_barrier" : "threadgroup_barrier", file, line, flags};
  wait(of_simdgroup ? State::kAtSimdBarrier : State::kAtGroupBarrier);
}

void* Machine::threadgroup_variable(int id, size_t bytes, size_t alignment, const char* name) {
  void* start = threadgroup_.variable(id, bytes, alignment, name);
  if (start == nullptr)
    fail(fmt::format("too much threadgroup memory: {} bytes with '{}', {} are allowed",
                     threadgroup_.bytes(), name, kMostThreadgroupBytes),
         "", nullptr);
  return start;
}

void* Machine::argument(msl::Source source, int index, const char* name) {
  if (source == msl::Source::kThreadgroupMemory) {
    const auto given = std::ranges::find(run_->threadgroup, index, &ThreadgroupArgument::index);
    if (given == run_->threadgroup.end())
      fail(fmt::format("threadgroup({}) '{}' has no length", index, name), "", nullptr);
    return threadgroup_variable(-1 - index, given->bytes, 16, name);
  }
  void* start = index < kMostArguments ? run_->buffers[static_cast<size_t>(index)] : nullptr;
  if (start == nullptr) fail(fmt::format("buffer({}) '{}' is not bound", index, name), "", nullptr);
  return start;
}

void Machine::position(msl::Source source, uint32_t* xyz) const {
  const Grid& size = run_->threads;
  const Grid& groups = run_->groups;
  const auto index = static_cast<uint32_t>(current_);
  const Grid thread{index % size.x, index / size.x % size.y, index / size.x / size.y};
  const auto store = [xyz](uint32_t x, uint32_t y = 0, uint32_t z = 0) {
    xyz[0] = x;
    xyz[1] = y;
    xyz[2] = z;
  };
  switch (source) {
    case msl::Source::kThreadInThreadgroup:
      return store(thread.x, thread.y, thread.z);
    case msl::Source::kThreadgroupInGrid:
      return store(group_.x, group_.y, group_.z);
    case msl::Source::kThreadInGrid:
      return store(group_.x * size.x + thread.x, group_.y * size.y + thread.y,
                   group_.z * size.z + thread.z);
    case msl::Source::kThreadsPerThreadgroup:
      return store(size.x, size.y, size.z);
    case msl::Source::kThreadgroupsPerGrid:
      return store(groups.x, groups.y, groups.z);
    case msl::Source::kThreadsPerGrid:
      return store(groups.x * size.x, groups.y * size.y, groups.z * size.z);
    case msl::Source::kThreadIndex:
      return store(index);
    case msl::Source::kSimdgroupIndex:
      return store(index / msl::kSimdLanes);
    case msl::Source::kLane:
      return store(index % msl::kSimdLanes);
    case msl::Source::kSimdgroupsPerThreadgroup:
      return store((static_cast<uint32_t>(thread_count_) + msl::kSimdLanes - 1) / msl::kSimdLanes);
    case msl::Source::kSimdWidth:
      return store(msl::kSimdLanes);
    case msl::Source::kBuffer:
    case msl::Source::kThreadgroupMemory:
      return;
  }
}

void Machine::limit_threads(int most) {
  if (thread_count_ > most)
    fail(fmt::format("{} threads, max_total_threads_per_threadgroup says {}", thread_count_, most),
         "", nullptr);
}

}  // namespace octavo::metal_sim
