// memory_plan.h - divides the memory before any large allocation. No MLX.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cache/cache_plan.h"

namespace octavo {

struct MemoryRequest {
  uint64_t device_bytes = 0;  // limit of the machine, the cgroup or the GPU
  std::string device_note = "memory, or the cgroup's limit";
  std::optional<uint64_t> buffer_bytes = {};  // largest buffer of the device, if limited
  double memory_fraction = 0.9;               // --memory-fraction
  std::optional<uint64_t> limit_bytes = {};   // --memory-limit
  uint64_t weights_bytes = 0;
  uint64_t draft_bytes = 0;               // total of a draft model
  uint64_t adapter_bytes = 0;             // LoRA adapters
  uint64_t image_bytes = 0;               // encoded images, and one that is being encoded
  uint64_t step_bytes = 0;                // peak of the largest step and of one queued after it
  uint64_t disk_bytes = 0;                // staging memory of the disk tier
  bool serves_requests = false;           // plan memory for requests outside the engine
  int model_context = 0;                  // the model's maximum context
  std::optional<int> max_model_len = {};  // --max-model-len
  std::optional<uint64_t> kv_bytes = {};  // --kv-memory
  int step_tokens = 512;                  // rows of the largest step
  // Without --kv-memory the pool holds one sequence of full length or `usual_sequences` of
  // `usual_tokens`, whichever is more, as far as they fit.
  int usual_sequences = 1;
  int usual_tokens = 0;
};

struct MemoryPlan {
  uint64_t device_bytes = 0;
  std::string device_note = {};
  uint64_t budget_bytes = 0;
  bool is_limited = false;  // the budget is --memory-limit
  uint64_t weights_bytes = 0;
  uint64_t draft_bytes = 0;
  uint64_t adapter_bytes = 0;
  uint64_t image_bytes = 0;  // also those that requests hold
  uint64_t step_bytes = 0;
  uint64_t disk_bytes = 0;
  uint64_t request_bytes = 0;  // bodies, templates, grammars, stored responses
  uint64_t reserve_bytes = 0;  // libraries, tokenizer, the allocator's slack
  uint64_t kv_bytes = 0;       // page_count pages over all buffers
  int page_count = 0;
  int max_model_len = 0;
  // Pages for max_model_len if that was given, otherwise for one block.
  uint64_t least_kv_bytes = 0;

  uint64_t total_bytes() const {
    return weights_bytes + draft_bytes + adapter_bytes + image_bytes + step_bytes + disk_bytes +
           request_bytes + reserve_bytes + kv_bytes;
  }
  // For printing, one row per item: "weights  93.8 MiB".
  std::string table() const;
};

// The smallest budget of a server that has `bytes` left besides the memory of requests.
uint64_t server_budget_for(uint64_t bytes);

// What the request needs of the budget besides weights and pages.
uint64_t bytes_besides_layers(const MemoryRequest& request, uint64_t budget_bytes);

// Throws SetupError that names the flag and a value that works if the request does not fit.
MemoryPlan plan_memory(const MemoryRequest& request, const CachePlan& cache);

}  // namespace octavo
