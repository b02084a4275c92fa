#include "front/residency.h"

#include <algorithm>
#include <tuple>

#include "base/error.h"

namespace octavo::front {

namespace {

using State = Residency::State;

bool is_resident(State state) {
  return state == State::kLoading || state == State::kLoaded || state == State::kUnloading;
}

std::optional<Residency::Time> expiry(const KeepAlive& keep_alive, Residency::Time now) {
  if (!keep_alive.time) return std::nullopt;
  return now + *keep_alive.time;
}

}  // namespace

void Residency::limit_budget(uint64_t bytes) {
  options_.budget_bytes = std::min(options_.budget_bytes, bytes);
}

uint64_t Residency::used_bytes() const {
  uint64_t used = 0;
  for (const auto& [name, each] : entries_)
    if (is_resident(each.state)) used += each.bytes;
  return used;
}

std::optional<uint64_t> Residency::most_bytes_for(const std::string& model) const {
  uint64_t pinned = 0;
  int count = 0;
  for (const auto& [name, each] : entries_) {
    if (!each.pinned || !is_resident(each.state) || name == model) continue;
    pinned += each.bytes;
    ++count;
  }
  if (options_.models_max > 0 && count >= options_.models_max) return std::nullopt;
  return options_.budget_bytes - std::min(options_.budget_bytes, pinned);
}

int Residency::resident_count() const {
  return static_cast<int>(std::ranges::count_if(
      entries_, [](const auto& each) { return is_resident(each.second.state); }));
}

const Residency::Entry* Residency::find(const std::string& model) const {
  const auto found = entries_.find(model);
  return found == entries_.end() ? nullptr : &found->second;
}

Residency::Entry& Residency::entry(const std::string& model) {
  const auto found = entries_.find(model);
  OCTAVO_CHECK(found != entries_.end());
  return found->second;
}

void Residency::set_state(Entry& entry, State state, Time now) {
  entry.state = state;
  entry.since = now;
}

void Residency::enqueue(const std::string& model, Entry& entry, Time now) {
  set_state(entry, State::kWaiting, now);
  queue_.push_back(model);
}

void Residency::wait(const Demand& demand, Time now) {
  Entry& entry = entries_[demand.model];
  ++entry.waiting;
  entry.pinned = demand.pinned;
  if (is_resident(entry.state)) return;
  // Its plan may have changed while it was not loaded.
  entry.bytes = demand.bytes;
  entry.keep_alive = demand.keep_alive;
  if (entry.state == State::kUnloaded) enqueue(demand.model, entry, now);
}

void Residency::stop_waiting(const std::string& model) {
  Entry& waited = entry(model);
  OCTAVO_CHECK(waited.waiting > 0);
  --waited.waiting;
  if (waited.waiting > 0 || waited.state != State::kWaiting) return;
  std::erase(queue_, model);
  waited.state = State::kUnloaded;
  forget_unused();
}

bool Residency::can_open(const std::string& model) const {
  const Entry* found = find(model);
  return found != nullptr && found->state == State::kLoaded && !found->leaving;
}

void Residency::open_waiting(const std::string& model, Time now) {
  OCTAVO_CHECK(can_open(model));
  Entry& opened = entry(model);
  OCTAVO_CHECK(opened.waiting > 0);
  --opened.waiting;
  ++opened.open;
  opened.served = true;
  opened.last_use = now;
  opened.expires.reset();
}

void Residency::close(const std::string& model, const std::optional<KeepAlive>& keep_alive,
                      Time now) {
  Entry& closed = entry(model);
  OCTAVO_CHECK(closed.open > 0);
  --closed.open;
  closed.last_use = now;
  if (closed.open == 0) closed.expires = expiry(keep_alive.value_or(closed.keep_alive), now);
}

void Residency::unload(const std::string& model) {
  const auto found = entries_.find(model);
  if (found != entries_.end() && found->second.state == State::kLoaded)
    found->second.leaving = true;
}

void Residency::loaded(const std::string& model, Time now) {
  Entry& ready = entry(model);
  OCTAVO_CHECK(ready.state == State::kLoading);
  set_state(ready, State::kLoaded, now);
  ready.last_use = now;
  ready.served = false;
  ready.leaving = false;
  ready.expires = expiry(ready.keep_alive, now);
}

void Residency::ended(const std::string& model, Time now) {
  Entry& gone = entry(model);
  OCTAVO_CHECK(is_resident(gone.state));
  gone.open = 0;
  gone.leaving = false;
  gone.expires.reset();
  if (gone.waiting > 0) {
    enqueue(model, gone, now);
  } else {
    set_state(gone, State::kUnloaded, now);
  }
  forget_unused();
}

bool Residency::fits(uint64_t bytes, uint64_t used, int count) const {
  const bool has_bytes = used <= options_.budget_bytes && bytes <= options_.budget_bytes - used;
  return has_bytes && (options_.models_max == 0 || count < options_.models_max);
}

void Residency::stop(const std::string& model, Entry& entry, Time now,
                     std::vector<Action>& actions) {
  OCTAVO_CHECK(entry.state == State::kLoaded && entry.open == 0);
  set_state(entry, State::kUnloading, now);
  entry.expires.reset();
  actions.push_back({.kind = Action::Kind::kStop, .model = model});
}

void Residency::stop_expired(Time now, std::vector<Action>& actions) {
  for (auto& [name, each] : entries_) {
    if (each.state != State::kLoaded || each.open > 0) continue;
    const bool idle = each.waiting == 0 && !each.pinned && each.expires && *each.expires <= now;
    if (each.leaving || idle) stop(name, each, now, actions);
  }
}

bool Residency::start_if_it_fits(const std::string& model, Time now, std::vector<Action>& actions) {
  Entry& starting = entry(model);
  if (!fits(starting.bytes, used_bytes(), resident_count())) return false;
  set_state(starting, State::kLoading, now);
  actions.push_back({.kind = Action::Kind::kStart, .model = model});
  return true;
}

// Loaded models that may be unloaded for another, the least recently used first.
std::vector<Residency::Entries::iterator> Residency::victims(bool busy, Time now) {
  std::vector<Entries::iterator> found;
  for (auto at = entries_.begin(); at != entries_.end(); ++at) {
    const Entry& each = at->second;
    if (each.state != State::kLoaded || each.pinned || each.leaving) continue;
    const bool idle = each.open == 0 && each.waiting == 0;
    // A model must have had a turn itself.
    const bool had_turn = each.served && now - each.since >= options_.turn;
    if (idle || (busy && had_turn)) found.push_back(at);
  }
  const auto idle_then_use = [](Entries::iterator at) {
    const Entry& each = at->second;
    return std::tuple(each.open + each.waiting > 0, each.last_use, at->first);
  };
  std::ranges::sort(found, {}, idle_then_use);
  return found;
}

// Unloads models until the waiting one fits. Idle ones are not unloaded if that is not enough.
bool Residency::make_space(const std::string& model, Time now, std::vector<Action>& actions) {
  const Entry& waiting = entry(model);
  const bool busy_too = now - waiting.since >= options_.turn;
  uint64_t used = used_bytes();
  int count = resident_count();
  for (const auto& [name, each] : entries_) {
    if (each.state != State::kUnloading && !(each.state == State::kLoaded && each.leaving))
      continue;
    used -= each.bytes;
    --count;
  }
  std::vector<Entries::iterator> chosen;
  for (const auto at : victims(busy_too, now)) {
    if (fits(waiting.bytes, used, count)) break;
    used -= at->second.bytes;
    --count;
    chosen.push_back(at);
  }
  if (!fits(waiting.bytes, used, count)) return false;
  for (const auto at : chosen) {
    at->second.leaving = true;
    if (at->second.open == 0) stop(at->first, at->second, now, actions);
  }
  return true;
}

std::vector<Residency::Action> Residency::decide(Time now) {
  std::vector<Action> actions;
  stop_expired(now, actions);
  while (!queue_.empty() && start_if_it_fits(queue_.front(), now, actions)) queue_.pop_front();
  if (queue_.empty()) return actions;
  const std::string first = queue_.front();
  const bool space_comes = make_space(first, now, actions);
  if (space_comes || now - entry(first).since >= options_.turn) return actions;
  const std::vector<std::string> others(queue_.begin() + 1, queue_.end());
  for (const std::string& other : others)
    if (start_if_it_fits(other, now, actions)) std::erase(queue_, other);
  return actions;
}

std::optional<Residency::Time> Residency::next_decision(Time now) const {
  std::optional<Time> next;
  const auto at = [&](Time time) {
    if (time > now) next = next ? std::min(*next, time) : time;
  };
  for (const auto& [name, each] : entries_) {
    if (each.state == State::kLoaded && each.open == 0 && !each.pinned && each.expires)
      at(*each.expires);
    // The turn of a loaded model may end before that of the waiting one, or after it.
    if (!queue_.empty() && each.state == State::kLoaded) at(each.since + options_.turn);
  }
  if (!queue_.empty()) at(entries_.at(queue_.front()).since + options_.turn);
  return next;
}

void Residency::forget_unused() {
  std::erase_if(entries_, [](const auto& each) {
    return each.second.state == State::kUnloaded && each.second.waiting == 0;
  });
}

}  // namespace octavo::front
