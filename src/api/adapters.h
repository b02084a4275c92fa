// adapters.h - the LoRA adapters that a server has loaded, by the names requests use. No MLX. Any
// thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "scheduler/adapter.h"

namespace octavo::api {

struct AdapterSource {
  std::string name;
  std::string path;
  std::string base_model_name = {};  // reported as its parent; empty: the served model's name
};

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
  // cannot be loaded. Requests of a replaced adapter end with the one they began with.
  void load(const AdapterSource& source, bool replaces = false);
  // False if there is none of this name. Its open requests continue.
  bool unload(const std::string& name);

  std::shared_ptr<const Adapter> find(const std::string& name) const;  // null if there is none
  std::vector<LoadedAdapter> list() const;                             // in order of loading

 private:
  Load load_;
  std::vector<std::string> reserved_;
  std::mutex loading_;  // one at a time
  mutable std::mutex mutex_;
  std::vector<LoadedAdapter> adapters_;
};

}  // namespace octavo::api
