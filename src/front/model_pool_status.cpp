// What a pool reports: which models there are, which are loaded, and events of changes.
#include <utility>

#include "front/model_pool.h"

namespace octavo::front {
namespace {

constexpr size_t kNamesInErrors = 20;

}  // namespace

LoadedModel ModelPool::loaded_model(const ModelSlot& slot, const Residency::Entry& entry) const {
  return {.name = slot.name(),
          .socket = slot.socket,
          .generation = slot.generation,
          .ready = slot.generation != 0,
          .open_requests = entry.open,
          .planned_bytes = entry.bytes,
          .expires = entry.pinned ? std::nullopt : entry.expires};
}

std::vector<LoadedModel> ModelPool::loaded() const {
  std::vector<LoadedModel> all;
  for (const auto& [name, slot] : slots_) {
    const Residency::Entry* entry = residency_.find(name);
    if (entry != nullptr && slot->child) all.push_back(loaded_model(*slot, *entry));
  }
  return all;
}

std::optional<std::string> ModelPool::default_model() const {
  const auto& given = options_.catalog.models;
  if (given.size() == 1) {
    if (const auto found = scanner_.catalog().find(given.front())) return found->name;
  }
  const auto running = loaded();
  if (running.size() == 1) return running.front().name;
  const auto& all = scanner_.catalog().models();
  if (all.size() == 1) return all.front()->name;
  return std::nullopt;
}

std::vector<std::string> ModelPool::known_names() const {
  std::vector<std::string> names;
  for (const CatalogModelPtr& model : scanner_.catalog().models()) {
    if (names.size() == kNamesInErrors) break;
    names.push_back(model->name);
  }
  return names;
}

ModelStatus ModelPool::status_of(const CatalogModelPtr& model) const {
  ModelStatus status{.model = model};
  const auto found = slots_.find(model->name);
  if (found == slots_.end()) return status;
  const ModelSlot& slot = *found->second;
  if (slot.failure) {
    status.error = slot.failure->text;
    status.exit_code = slot.failure->exit_code;
  }
  if (!slot.waiters.empty() || slot.planner || slot.is_loading) status.value = "loading";
  if (slot.generation != 0) status.value = "loaded";
  status.progress = slot.progress;
  status.max_model_len = slot.max_model_len;
  status.takes_images = slot.takes_images;
  const Residency::Entry* entry = residency_.find(model->name);
  if (entry == nullptr || !slot.child) return status;
  status.loaded = loaded_model(slot, *entry);
  status.pid = slot.child->pid();
  return status;
}

Awaitable<std::vector<ModelStatus>> ModelPool::statuses() {
  co_await scanner_.refresh();
  std::vector<ModelStatus> all;
  std::map<std::string, bool> listed;
  for (const CatalogModelPtr& model : scanner_.catalog().models()) {
    listed[model->name] = true;
    all.push_back(status_of(model));
  }
  // Names that no folder lists, such as a download.
  for (const auto& [name, slot] : slots_)
    if (!listed.contains(name) && !slot->is_unused()) all.push_back(status_of(slot->model));
  co_return all;
}

std::vector<ModelStatus> ModelPool::running() const {
  std::vector<ModelStatus> all;
  for (const auto& [name, slot] : slots_)
    if (slot->child) all.push_back(status_of(slot->model));
  return all;
}

Awaitable<ModelStatus> ModelPool::status(std::string model) {
  co_return status_of(co_await scanner_.find(std::move(model)));
}

uint64_t ModelPool::subscribe(Subscriber subscriber) {
  subscribers_.emplace(++subscriptions_, std::move(subscriber));
  return subscriptions_;
}

void ModelPool::unsubscribe(uint64_t id) { subscribers_.erase(id); }

void ModelPool::publish(ModelEvent event) {
  const auto current = subscribers_;  // a subscriber may end its subscription
  for (const auto& [id, subscriber] : current) subscriber(event);
}

}  // namespace octavo::front
