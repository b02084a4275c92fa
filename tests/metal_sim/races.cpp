#include <fmt/format.h>

#include "metal_sim/memory.h"
#include "metal_sim/shim/runtime.h"

namespace octavo::metal_sim {
namespace {

// Codes used instead of a thread. Reads by several threads are stored as one entry, which is enough
// to check a later write.
constexpr uint64_t kSeveralLanes = 0x8000;  // | simdgroup
constexpr uint64_t kSeveralSimdgroups = 0xFFFE;
constexpr uint64_t kSeveralGroups = 0xFFFF;

uint64_t stamp_of(uint64_t touch) { return touch >> 16; }
uint64_t thread_of(uint64_t touch) { return touch & 0xFFFF; }
uint64_t touch_of(uint64_t stamp, uint64_t thread) { return stamp << 16 | thread; }

uint64_t simdgroup_of(uint64_t thread) {
  return (thread & kSeveralLanes) != 0 ? thread & 0x7FFF : thread / msl::kSimdLanes;
}

}  // namespace

void BarrierClock::start_group() {
  group_start = ++now;
  group_barrier.fill(now);
  for (auto& barrier : simd_barrier) barrier.fill(now);
}

void BarrierClock::pass_group_barrier(int flags) {
  ++now;
  if ((flags & msl::kOrdersThreadgroup) != 0) group_barrier[0] = now;
  if ((flags & msl::kOrdersDevice) != 0) group_barrier[1] = now;
}

void BarrierClock::pass_simd_barrier(int simdgroup, int flags) {
  ++now;
  auto& barrier = simd_barrier[static_cast<size_t>(simdgroup)];
  if ((flags & msl::kOrdersThreadgroup) != 0) barrier[0] = now;
  if ((flags & msl::kOrdersDevice) != 0) barrier[1] = now;
}

bool RaceDetector::is_ordered(uint64_t touch, int thread, Space space) const {
  const uint64_t stamp = stamp_of(touch);
  const uint64_t other = thread_of(touch);
  const auto kind = static_cast<size_t>(space);
  if (space == Space::kDevice) {
    if (stamp < clock.launch_start) return true;
    // The threadgroups of a launch are not ordered.
    if (other == kSeveralGroups || stamp < clock.group_start) return false;
  } else if (stamp < clock.group_start) {
    return true;
  }
  const auto me = static_cast<uint64_t>(thread);
  if (stamp < clock.group_barrier[kind] || other == me) return true;
  if (other == kSeveralSimdgroups) return false;
  const uint64_t simdgroup = me / msl::kSimdLanes;
  return simdgroup_of(other) == simdgroup && stamp < clock.simd_barrier[simdgroup][kind];
}

uint64_t RaceDetector::merged_read(uint64_t earlier, int thread, Space space) const {
  const auto me = static_cast<uint64_t>(thread);
  const uint64_t other = thread_of(earlier);
  if (space == Space::kDevice && stamp_of(earlier) >= clock.launch_start &&
      (other == kSeveralGroups || stamp_of(earlier) < clock.group_start))
    return touch_of(clock.now, kSeveralGroups);
  if (is_ordered(earlier, thread, space)) return touch_of(clock.now, me);
  const uint64_t simdgroup = me / msl::kSimdLanes;
  if (other != kSeveralSimdgroups && simdgroup_of(other) == simdgroup)
    return touch_of(clock.now, kSeveralLanes | simdgroup);
  return touch_of(clock.now, kSeveralSimdgroups);
}

Complaint RaceDetector::check(const Access& access, Space space, ByteHistory* history,
                              std::string_view name, size_t offset) {
  const uint64_t mine = touch_of(clock.now, static_cast<uint64_t>(access.thread));
  // Adjacent bytes nearly always have the same history.
  ByteHistory judged{~uint64_t{0}, ~uint64_t{0}};
  uint64_t read_after = 0;
  for (unsigned i = 0; i < access.bytes; ++i) {
    ByteHistory& byte = history[i];
    if (byte.write != judged.write || byte.read != judged.read) {
      judged = byte;
      if (space == Space::kThreadgroup && !access.is_write &&
          stamp_of(byte.write) < clock.group_start)
        return fmt::format("read of uninitialised threadgroup memory: byte {} of '{}'", offset + i,
                           name);
      if (!is_ordered(byte.write, access.thread, space))
        return race(access, byte.write, true, name, offset + i);
      if (access.is_write && !is_ordered(byte.read, access.thread, space))
        return race(access, byte.read, false, name, offset + i);
      if (!access.is_write) read_after = merged_read(byte.read, access.thread, space);
    }
    (access.is_write ? byte.write : byte.read) = access.is_write ? mine : read_after;
  }
  return {};
}

void RaceDetector::mark_atomic(const Access& access, ByteHistory* history) {
  for (unsigned i = 0; i < access.bytes; ++i)
    history[i].write = touch_of(clock.now, kSeveralSimdgroups);
}

std::string RaceDetector::who(uint64_t touch) const {
  const uint64_t thread = thread_of(touch);
  if (thread == kSeveralGroups) return "several threadgroups";
  if (thread == kSeveralSimdgroups) return "several simdgroups or an atomic operation";
  std::string text = (thread & kSeveralLanes) != 0
                         ? fmt::format("several lanes of simdgroup {}", thread & 0x7FFF)
                         : fmt::format("thread {}", thread);
  if (stamp_of(touch) < clock.group_start) text += " of another threadgroup";
  return text;
}

Complaint RaceDetector::race(const Access& access, uint64_t other, bool other_is_write,
                             std::string_view name, size_t offset) const {
  return fmt::format("race: {} of byte {} of '{}' is not ordered with the {} by {}",
                     access.is_write ? "write" : "read", offset, name,
                     other_is_write ? "write" : "read", who(other));
}

}  // namespace octavo::metal_sim
