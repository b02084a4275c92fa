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

// One adapter is loaded at a time. A request that waits can be stopped, and takes no processor time.
class AdapterRegistry::Turn {
 public:
  Turn(AdapterRegistry& registry, const Preparation& preparation) : registry_(registry) {
    constexpr std::chrono::milliseconds kBetweenChecks{50};
    const Waiting waiting(preparation);
    std::unique_lock lock(registry_.mutex_);
    const auto is_free = [this] { return !registry_.is_loading_; };
    while (!registry_.loaded_.wait_for(lock, kBetweenChecks, is_free)) preparation.check();
    registry_.is_loading_ = true;
  }
  ~Turn() {
    {
      const std::lock_guard lock(registry_.mutex_);
      registry_.is_loading_ = false;
    }
    registry_.loaded_.notify_one();
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  AdapterRegistry& registry_;
};

void AdapterRegistry::load(const AdapterSource& source, bool replaces,
                           const Preparation& preparation) {
  const Turn turn(*this, preparation);
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
