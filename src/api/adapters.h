// adapters.h - the LoRA adapters that a server has loaded, by the names requests use. No MLX. Any
// thread.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "api/adapter_source.h"
#include "api/preparation.h"
#include "scheduler/adapter.h"

namespace octavo::api {

struct LoadedAdapter {
  AdapterSource source;
  int64_t created = 0;  // Unix seconds
  std::shared_ptr<const Adapter> adapter = nullptr;
};

class AdapterRegistry {
 public:
  // Reads the adapter of a folder; `replaces`: one of the same name. Throws SetupError.
  using Load =
      std::function<std::shared_ptr<const Adapter>(const AdapterSource& source, bool replaces)>;
  // `reserved`: the names of the model itself.
  AdapterRegistry(Load load, std::vector<std::string> reserved)
      : load_(std::move(load)), reserved_(std::move(reserved)) {}

  // Throws SetupError if the name is taken (unless `replaces` and it is an adapter's) or the adapter
  // cannot be loaded, RequestError if the preparation is stopped while others load theirs. Requests
  // of a replaced adapter end with the one they began with.
  void load(const AdapterSource& source, bool replaces = false,
            const Preparation& preparation = {});
  // False if there is none of this name. Its open requests continue.
  bool unload(const std::string& name);

  std::shared_ptr<const Adapter> find(const std::string& name) const;  // null if there is none
  std::vector<LoadedAdapter> list() const;                             // in order of loading

 private:
  class Turn;

  Load load_;
  std::vector<std::string> reserved_;
  mutable std::mutex mutex_;
  bool is_loading_ = false;  // one at a time
  std::condition_variable loaded_;
  std::vector<LoadedAdapter> adapters_;
};

}  // namespace octavo::api
