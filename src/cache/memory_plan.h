// memory_plan.h - who gets how much memory, decided before anything big is allocated. No MLX.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cache/cache_plan.h"

namespace octavo {

struct MemoryRequest {
  uint64_t device_bytes = 0;  // what the machine, the cgroup or the GPU allows
  std::string device_note = "memory, or the cgroup's limit";
  std::optional<uint64_t> buffer_bytes = {};  // the longest buffer of the device, if it has a limit
  double memory_fraction = 0.9;               // --memory-fraction
  uint64_t weights_bytes = 0;
  uint64_t draft_bytes = 0;               // all that a draft model takes
  uint64_t step_bytes = 0;                // peak of one largest step, and of one queued behind it
  uint64_t disk_bytes = 0;                // of pages being copied to the disk tier and back
  int model_context = 0;                  // what the model was made for
  std::optional<int> max_model_len = {};  // --max-model-len
  std::optional<uint64_t> kv_bytes = {};  // --kv-memory
  int step_tokens = 512;                  // rows of the largest step
  // Without --kv-memory the pool holds one context of full length, or this many sequences of this
  // many tokens, whichever is more, as far as they fit.
  int usual_sequences = 1;
  int usual_tokens = 0;
};

struct MemoryPlan {
  uint64_t device_bytes = 0;
  std::string device_note = {};
  uint64_t budget_bytes = 0;
  uint64_t weights_bytes = 0;
  uint64_t draft_bytes = 0;
  uint64_t step_bytes = 0;
  uint64_t disk_bytes = 0;
  uint64_t reserve_bytes = 0;  // libraries, tokenizer, the allocator's slack
  uint64_t kv_bytes = 0;       // page_count pages over all buffers
  int page_count = 0;
  int max_model_len = 0;

  uint64_t total_bytes() const {
    return weights_bytes + draft_bytes + step_bytes + disk_bytes + reserve_bytes + kv_bytes;
  }
  // The rows people read: "weights  93.8 MiB" and so on.
  std::string table() const;
};

// Throws SetupError naming the flag and the value that works when what was asked does not fit.
MemoryPlan plan_memory(const MemoryRequest& request, const CachePlan& cache);

}  // namespace octavo
