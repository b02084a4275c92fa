#include "metal_sim/memory.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace octavo::metal_sim {
namespace {

constexpr size_t kPage = 4096;

size_t round_up(size_t value, size_t step) { return (value + step - 1) / step * step; }

// Reserves address space; memory is allocated on first access.
uintptr_t reserve(size_t bytes, int protection) {
  void* at = mmap(nullptr, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) throw std::runtime_error("metal_sim: no address space left");
  return reinterpret_cast<uintptr_t>(at);
}

}  // namespace

// Histories take twice 8 bytes per byte of the slot's writable part, allocated only where a kernel
// accesses it.
DeviceMemory::DeviceMemory()
    : base_(reserve(kSlots * kSlotBytes, PROT_NONE)),
      history_base_(
          reserve(kSlots * (kSlotBytes - kStart) * sizeof(ByteHistory), PROT_READ | PROT_WRITE)) {}

DeviceMemory::~DeviceMemory() {
  munmap(reinterpret_cast<void*>(base_), kSlots * kSlotBytes);
  munmap(reinterpret_cast<void*>(history_base_),
         kSlots * (kSlotBytes - kStart) * sizeof(ByteHistory));
}

std::byte* DeviceMemory::add(DeviceSlot slot) {
  if (used_ == kSlots) throw std::runtime_error("metal_sim: more than 32 arguments");
  if (slot.bytes > kSlotBytes / 4)
    throw std::runtime_error("metal_sim: argument '" + slot.name + "' is too large");
  auto* start = reinterpret_cast<std::byte*>(base_ + used_ * kSlotBytes + kStart);
  const size_t needed = round_up(slot.bytes, kPage);
  if (needed > opened_[used_]) {
    if (mprotect(start, needed, PROT_READ | PROT_WRITE) != 0)
      throw std::runtime_error("metal_sim: out of memory");
    opened_[used_] = needed;
  }
  slots_[used_++] = std::move(slot);
  return start;
}

ByteHistory* DeviceMemory::history(uintptr_t address) const {
  const size_t slot = (address - base_) / kSlotBytes;
  const size_t offset = (address - base_) % kSlotBytes - kStart;
  return reinterpret_cast<ByteHistory*>(history_base_) + slot * (kSlotBytes - kStart) + offset;
}

Complaint DeviceMemory::out_of_bounds(const Access& access) const {
  const size_t index = (access.address - base_) / kSlotBytes;
  const char* verb = access.is_write ? "write" : "read";
  if (index >= used_) return fmt::format("wild device {}", verb);
  const DeviceSlot& slot = slots_[index];
  if (!slot.is_bound)
    return fmt::format("{} of argument '{}', which is not bound", verb, slot.name);
  const auto offset =
      static_cast<int64_t>((access.address - base_) % kSlotBytes) - static_cast<int64_t>(kStart);
  return fmt::format("out-of-bounds device {}: {} bytes at byte {} of '{}', which has {}", verb,
                     access.bytes, offset, slot.name, slot.bytes);
}

Complaint DeviceMemory::check(const Access& access, RaceDetector* races) {
  const size_t index = (access.address - base_) / kSlotBytes;
  const size_t offset = (access.address - base_) % kSlotBytes - kStart;  // huge if before the start
  if (index >= used_ || offset > slots_[index].bytes || access.bytes > slots_[index].bytes - offset)
    return out_of_bounds(access);
  DeviceSlot& slot = slots_[index];
  if (access.is_write) {
    if (!slot.is_writable)
      return fmt::format("write to argument '{}', which is an input", slot.name);
    ++slot.store_counts->stores;
    slot.store_counts->store_bytes += access.bytes;
  } else {
    ++slot.load_counts->loads;
    slot.load_counts->load_bytes += access.bytes;
    if (!slot.is_writable) return {};
  }
  if (races == nullptr) return {};
  return races->check(access, Space::kDevice, history(access.address), slot.name, offset);
}

Complaint DeviceMemory::check_atomic(const Access& access, RaceDetector& races) {
  Complaint complaint = check(access, nullptr);
  if (complaint.empty()) races.mark_atomic(access, history(access.address));
  return complaint;
}

MemoryCosts& DeviceMemory::costs(const Access& access) {
  const DeviceSlot& slot = slots_[(access.address - base_) / kSlotBytes];
  return access.is_write ? slot.store_counts->store_costs : slot.load_counts->load_costs;
}

ThreadgroupMemory::ThreadgroupMemory()
    : base_(reserve(kArenaBytes, PROT_READ | PROT_WRITE)),
      owner_(kArenaBytes),
      history_(kArenaBytes) {}

ThreadgroupMemory::~ThreadgroupMemory() { munmap(reinterpret_cast<void*>(base_), kArenaBytes); }

void ThreadgroupMemory::start_group() {
  std::fill_n(owner_.begin(), used_, uint8_t{0});
  used_ = bytes_ = 0;
  variables_.clear();
}

void* ThreadgroupMemory::variable(int id, size_t bytes, size_t alignment, const char* name) {
  for (const Variable& known : variables_)
    if (known.id == id) return reinterpret_cast<void*>(base_ + known.offset);
  bytes_ += round_up(bytes, 16);
  if (bytes_ > kMostThreadgroupBytes) return nullptr;
  const size_t offset = round_up(used_ + kGap, std::max<size_t>(alignment, 16));
  variables_.push_back({id, offset, bytes, name});
  used_ = offset + bytes + kGap;
  std::fill_n(owner_.begin() + static_cast<ptrdiff_t>(offset), bytes,
              static_cast<uint8_t>(variables_.size()));
  void* start = reinterpret_cast<void*>(base_ + offset);
  std::memset(start, 0xFF, bytes);  // NaN in every float type
  return start;
}

const ThreadgroupMemory::Variable* ThreadgroupMemory::variable_at(const Access& access) const {
  const size_t offset = access.address - base_;
  const uint8_t owner = owner_[offset];
  const bool inside = owner != 0 && offset + access.bytes <= kArenaBytes &&
                      owner_[offset + access.bytes - 1] == owner;
  return inside ? &variables_[owner - 1u] : nullptr;
}

Complaint ThreadgroupMemory::check(const Access& access, RaceDetector* races) {
  const Variable* variable = variable_at(access);
  const size_t offset = access.address - base_;
  if (variable == nullptr) {
    const auto near = std::ranges::find_if(
        variables_, [&](const Variable& v) { return offset < v.offset + v.bytes + kGap; });
    return fmt::format(
        "out-of-bounds threadgroup {}: {} bytes{}", access.is_write ? "write" : "read",
        access.bytes,
        near == variables_.end()
            ? ""
            : fmt::format(" at byte {} of '{}', which has {}",
                          static_cast<int64_t>(offset) - static_cast<int64_t>(near->offset),
                          near->name, near->bytes));
  }
  if (races == nullptr) return {};
  return races->check(access, Space::kThreadgroup, &history_[offset], variable->name,
                      offset - variable->offset);
}

Complaint ThreadgroupMemory::check_atomic(const Access& access, RaceDetector& races) {
  Complaint complaint = check(access, nullptr);
  if (complaint.empty()) races.mark_atomic(access, &history_[access.address - base_]);
  return complaint;
}

}  // namespace octavo::metal_sim
