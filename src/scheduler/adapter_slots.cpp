#include "scheduler/adapter_slots.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace octavo {

AdapterLease::AdapterLease(AdapterSlots& slots, int slot) : slots_(&slots), slot_(slot) {
  ++slots.slots_[static_cast<size_t>(slot)].leases;
}

AdapterLease::AdapterLease(AdapterLease&& other) noexcept
    : slots_(std::exchange(other.slots_, nullptr)), slot_(other.slot_) {}

AdapterLease::~AdapterLease() {
  if (slots_ != nullptr) --slots_->slots_[static_cast<size_t>(slot_)].leases;
}

int AdapterSlots::find_slot(const Adapter& adapter) const {
  const auto own = std::ranges::find(slots_, adapter.id(), &Slot::adapter);
  if (own != slots_.end()) return static_cast<int>(own - slots_.begin());
  int oldest = -1;
  for (int i = 0; i < static_cast<int>(slots_.size()); ++i) {
    const Slot& slot = slots_[static_cast<size_t>(i)];
    if (slot.leases > 0) continue;
    if (oldest < 0 || slot.last_use < slots_[static_cast<size_t>(oldest)].last_use) oldest = i;
  }
  return oldest;
}

std::optional<AdapterLease> AdapterSlots::try_lease(const std::shared_ptr<const Adapter>& adapter) {
  const int found = find_slot(*adapter);
  if (found < 0) return std::nullopt;
  Slot& slot = slots_[static_cast<size_t>(found)];
  if (slot.adapter != adapter->id()) {
    slot.adapter = adapter->id();
    slot.load = adapter;
  }
  slot.last_use = ++uses_;
  return AdapterLease(*this, found);
}

std::vector<AdapterLoad> AdapterSlots::take_loads() {
  std::vector<AdapterLoad> loads;
  for (size_t i = 0; i < slots_.size(); ++i) {
    if (slots_[i].load)
      loads.push_back({static_cast<int>(i), std::exchange(slots_[i].load, nullptr)});
  }
  return loads;
}

void AdapterSlots::forget() {
  OCTAVO_CHECK(leased() == 0);
  for (Slot& slot : slots_) slot = {};
}

int AdapterSlots::leased() const {
  return static_cast<int>(
      std::ranges::count_if(slots_, [](const Slot& slot) { return slot.leases > 0; }));
}

}  // namespace octavo
