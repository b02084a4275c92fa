#include "scheduler/fair_turns.h"

#include <algorithm>

#include "base/error.h"

namespace octavo {

int64_t FairTurns::enter(const std::string& owner_name, uint64_t call_id) {
  Owner& owner = owners_[owner_name];
  const auto [found, begins] = owner.calls.try_emplace(call_id);
  Call& call = found->second;
  ++call.open;
  if (begins) {
    const int64_t newest = owner.starts.empty() ? 0 : *owner.starts.rbegin();
    const int64_t passed = open_.empty() ? 0 : *open_.begin() - 1;
    call.start = call.last = std::max({newest, floor_, passed}) + 1;
    owner.starts.insert(call.start);
  } else {
    // Calls of several sequences also take turns within their owner, so that many of them get
    // little more of the queue than one of another owner.
    if (call.stride == 0) call.stride = ++owner.wide_calls;
    call.last = std::max(call.last + call.stride, floor_ + 1);
  }
  open_.insert(call.last);
  return 2 * call.last + (begins ? 0 : 1);
}

void FairTurns::admitted(int64_t place) {
  // One turn before those of a call that fills all slots.
  floor_ = std::max(floor_, place / 2 - slots_ - 1);
  // Turns also pass if every newcomer takes the earliest one, so no sequence waits indefinitely.
  if (++admissions_ % (2 * static_cast<uint64_t>(slots_)) == 0) ++floor_;
}

void FairTurns::leave(const std::string& owner_name, uint64_t call_id, int64_t place) {
  const auto turn = open_.find(place / 2);
  OCTAVO_CHECK(turn != open_.end());
  open_.erase(turn);
  const auto owner = owners_.find(owner_name);
  OCTAVO_CHECK(owner != owners_.end());
  const auto call = owner->second.calls.find(call_id);
  OCTAVO_CHECK(call != owner->second.calls.end());
  if (--call->second.open > 0) return;
  if (call->second.stride > 0) --owner->second.wide_calls;
  owner->second.starts.erase(owner->second.starts.find(call->second.start));
  owner->second.calls.erase(call);
  if (owner->second.calls.empty()) owners_.erase(owner);
}

}  // namespace octavo
