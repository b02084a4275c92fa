#include "api/adapters.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/error.h"

namespace octavo::api {
namespace {

auto position_of(auto& adapters, const std::string& name) {
  return std::ranges::find_if(
      adapters, [&](const LoadedAdapter& loaded) { return loaded.source.name == name; });
}

}  // namespace

void AdapterRegistry::load(const AdapterSource& source, bool replaces) {
  const std::lock_guard one_at_a_time(loading_);
  if (source.name.empty()) throw SetupError("the name of an adapter is empty");
  if (std::ranges::count(reserved_, source.name) > 0)
    throw SetupError(
        fmt::format("`{}` is the name of the model; choose another for the adapter", source.name));
  const bool exists = find(source.name) != nullptr;
  if (exists && !replaces)
    throw SetupError(fmt::format("The lora adapter '{}' has already been loaded.", source.name));
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  LoadedAdapter loaded{.source = source,
                       .created = std::chrono::duration_cast<std::chrono::seconds>(now).count(),
                       .adapter = load_(source, exists)};
  const std::lock_guard lock(mutex_);
  const auto old = position_of(adapters_, source.name);
  if (old == adapters_.end()) {
    adapters_.push_back(std::move(loaded));
  } else {
    *old = std::move(loaded);
  }
}

bool AdapterRegistry::unload(const std::string& name) {
  const std::lock_guard lock(mutex_);
  const auto found = position_of(adapters_, name);
  if (found == adapters_.end()) return false;
  adapters_.erase(found);
  return true;
}

std::shared_ptr<const Adapter> AdapterRegistry::find(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  const auto found = position_of(adapters_, name);
  return found == adapters_.end() ? nullptr : found->adapter;
}

std::vector<LoadedAdapter> AdapterRegistry::list() const {
  const std::lock_guard lock(mutex_);
  return adapters_;
}

}  // namespace octavo::api
