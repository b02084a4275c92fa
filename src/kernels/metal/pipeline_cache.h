// pipeline_cache.h (metal) - the pipelines of a device, each looked up once by its key.
#pragma once

#include <algorithm>
#include <atomic>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "kernels/metal/launch.h"
#include "kernels/runtime/kernel_path.h"

namespace octavo::metal {

// Any thread.
template <typename Pipeline>
class PipelineCache {
 public:
  // Counts the launch and returns its pipeline; compile(key) makes it for the first one of a key.
  // Only the first launch of each shape is checked: the same host code makes them all.
  template <typename Compile>
  const Pipeline& pipeline_of(const Launch& launch, Compile compile) {
    const std::lock_guard lock(mutex_);
    auto found = entries_.find(launch.key());
    if (found == entries_.end()) {
      launch.check();
      found = entries_.emplace(launch.key(), entry_of(launch.key(), compile(launch.key()))).first;
    }
    Entry& entry = found->second;
    if (const uint64_t shape = launch.shape_hash();
        std::ranges::find(entry.checked, shape) == entry.checked.end()) {
      launch.check();
      entry.checked.push_back(shape);
    }
    entry.launches->fetch_add(1, std::memory_order_relaxed);
    return entry.pipeline;
  }

  bool has(const PipelineKey& key) {
    const std::lock_guard lock(mutex_);
    return entries_.contains(key);
  }
  // For a pipeline that is compiled before its first launch. An earlier one of this key stays.
  void add(const PipelineKey& key, Pipeline pipeline) {
    const std::lock_guard lock(mutex_);
    entries_.emplace(key, entry_of(key, std::move(pipeline)));
  }

 private:
  struct Entry {
    Pipeline pipeline;
    std::atomic<int64_t>* launches;
    std::vector<uint64_t> checked;  // shape hashes; a pipeline has few
  };
  static Entry entry_of(const PipelineKey& key, Pipeline pipeline) {
    return {std::move(pipeline), &launch_counter(std::string(key.kernel->name) + ".metal"), {}};
  }

  std::mutex mutex_;
  std::unordered_map<PipelineKey, Entry, PipelineKeyHash> entries_;
};

}  // namespace octavo::metal
