// pipeline_cache.h (metal) - the pipelines of a device, each looked up once by its key.
#pragma once

#include <algorithm>
#include <atomic>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "kernels/metal/launch.h"
#include "kernels/runtime/kernel_path.h"

namespace octavo::metal {

// Any thread.
template <typename Pipeline>
class PipelineCache {
 public:
  // Counts the launch and returns its pipeline; compile(launch) makes it for the first one of a key.
  // Only the first launch of each shape is checked: the same host code makes them all.
  template <typename Compile>
  const Pipeline& pipeline_of(const Launch& launch, Compile compile) {
    const std::lock_guard lock(mutex_);
    auto found = entries_.find(launch.key());
    if (found == entries_.end()) {
      launch.check();
      found = entries_
                  .emplace(launch.key(),
                           Entry{compile(launch),
                                 &launch_counter(std::string(launch.kernel().name) + ".metal"),
                                 {}})
                  .first;
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

 private:
  struct Entry {
    Pipeline pipeline;
    std::atomic<int64_t>* launches;
    std::vector<uint64_t> checked;  // shape hashes; a pipeline has few
  };

  std::mutex mutex_;
  std::unordered_map<PipelineKey, Entry, PipelineKeyHash> entries_;
};

}  // namespace octavo::metal
