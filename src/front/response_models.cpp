#include "front/response_models.h"

#include <utility>

namespace octavo::front {
namespace {

// Owners are empty or digests of one length, so no two pairs have the same key.
std::string key_of(std::string_view owner, std::string_view id) {
  return std::string(owner) + '/' + std::string(id);
}

}  // namespace

void ResponseModels::remember(std::string_view owner, std::string_view id, Place place) {
  std::string key = key_of(owner, id);
  if (const auto found = entries_.find(key); found != entries_.end()) {
    keys_.erase(found->second.age);
    entries_.erase(found);
  }
  keys_.push_back(key);
  entries_.emplace(std::move(key), Entry{std::move(place), std::prev(keys_.end())});
  if (entries_.size() <= most_) return;
  entries_.erase(keys_.front());
  keys_.pop_front();
}

std::optional<ResponseModels::Place> ResponseModels::find(std::string_view owner,
                                                          std::string_view id) const {
  const auto found = entries_.find(key_of(owner, id));
  if (found == entries_.end()) return std::nullopt;
  return found->second.place;
}

}  // namespace octavo::front
