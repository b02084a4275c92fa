#include "api/openai/response_store.h"

#include <algorithm>
#include <utility>

namespace octavo::api {
namespace {

// An owner is a digest of fixed length or empty, so keys are unique.
std::string key_of(std::string_view owner, std::string_view id) {
  return std::string(owner) + std::string(id);
}

}  // namespace

void ResponseStore::drop(Entries::iterator entry) {
  if (journal_ != nullptr) journal_->removed(entry->response->serial);
  bytes_ -= entry->bytes;
  by_key_.erase(entry->key);
  entries_.erase(entry);
}

bool ResponseStore::add(std::string key, std::shared_ptr<const StoredResponse> response) {
  const size_t bytes =
      key.size() + response->previous.id.size() + response->object.size() + response->input.size();
  if (by_key_.contains(key) || limits_.count == 0) return false;
  if (bytes > std::min(limits_.bytes, limits_.response_bytes)) return false;
  while (bytes_ + bytes > limits_.bytes || entries_.size() >= limits_.count)
    drop(std::prev(entries_.end()));
  entries_.push_front({.key = std::move(key), .response = std::move(response), .bytes = bytes});
  by_key_.emplace(entries_.front().key, entries_.begin());
  bytes_ += bytes;
  return true;
}

bool ResponseStore::put(std::string_view owner, std::string_view id, StoredResponse response) {
  const std::lock_guard lock(mutex_);
  response.serial = ++last_serial_;
  auto stored = std::make_shared<const StoredResponse>(std::move(response));
  const std::string key = key_of(owner, id);
  if (!add(key, stored)) return by_key_.contains(key);
  if (journal_ != nullptr) journal_->added(owner, id, std::move(stored));
  return true;
}

void ResponseStore::restore(std::string_view owner, std::string_view id, StoredResponse response) {
  const std::lock_guard lock(mutex_);
  last_serial_ = std::max(last_serial_, response.serial);
  add(key_of(owner, id), std::make_shared<const StoredResponse>(std::move(response)));
}

std::shared_ptr<const StoredResponse> ResponseStore::find(std::string_view owner,
                                                          std::string_view id) {
  const std::lock_guard lock(mutex_);
  const auto found = by_key_.find(key_of(owner, id));
  if (found == by_key_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, found->second);
  return found->second->response;
}

bool ResponseStore::erase(std::string_view owner, std::string_view id) {
  const std::lock_guard lock(mutex_);
  const auto found = by_key_.find(key_of(owner, id));
  if (found == by_key_.end()) return false;
  drop(found->second);
  return true;
}

size_t ResponseStore::count() const {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

size_t ResponseStore::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

}  // namespace octavo::api
