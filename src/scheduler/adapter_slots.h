// adapter_slots.h - decides which adapters are in the device's slots. No MLX. Engine thread only.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "scheduler/adapter.h"

namespace octavo {

class AdapterSlots;

// Keeps an adapter in its slot.
class AdapterLease {
 public:
  AdapterLease(AdapterSlots& slots, int slot);
  AdapterLease(AdapterLease&& other) noexcept;
  AdapterLease& operator=(AdapterLease&&) = delete;
  ~AdapterLease();

  int slot() const { return slot_; }

 private:
  AdapterSlots* slots_;  // null once moved from
  int slot_;
};

// An adapter to write into a slot that no step in flight reads.
struct AdapterLoad {
  int slot = 0;
  std::shared_ptr<const Adapter> adapter = nullptr;
};

class AdapterSlots {
 public:
  explicit AdapterSlots(int count) : slots_(static_cast<size_t>(count)) {}

  // True if try_lease() would succeed.
  bool has_place_for(const Adapter& adapter) const { return find_slot(adapter) >= 0; }
  // Uses the slot that has the adapter, or an empty one, or else replaces the least recently used
  // adapter that is not leased. Returns nullopt if all are.
  std::optional<AdapterLease> try_lease(const std::shared_ptr<const Adapter>& adapter);
  // The adapters to write before the next step, since the last call.
  std::vector<AdapterLoad> take_loads();
  // The content of the slots is unknown. No adapter may be leased.
  void forget();

  int leased() const;  // slots with a lease

 private:
  friend class AdapterLease;
  struct Slot {
    uint64_t adapter = 0;  // id; 0: empty
    int leases = 0;
    uint64_t last_use = 0;
    std::shared_ptr<const Adapter> load = nullptr;  // not written yet
  };
  int find_slot(const Adapter& adapter) const;

  std::vector<Slot> slots_;
  uint64_t uses_ = 0;
};

}  // namespace octavo
