// adapter_loader.h - reads LoRA adapters for an engine, within the memory planned for them. Shows no
// MLX. Any thread.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>

#include "engine/engine_options.h"
#include "models/adapters/adapter_row_bytes.h"
#include "models/adapters/adapter_targets.h"
#include "models/model_description.h"
#include "scheduler/adapter.h"

namespace octavo {

class AdapterLoader {
 public:
  // `model` must outlive it.
  AdapterLoader(const ModelDescription& model, const AdapterOptions& options);

  // Throws SetupError if the folder has no adapter that fits the model, or if max_cpu_loras adapters
  // are loaded (one more may be while it `replaces` another); those that were unloaded count until
  // their last request has ended.
  std::shared_ptr<const Adapter> load(const std::string& name, const std::string& folder,
                                      bool replaces);

 private:
  const ModelDescription& model_;
  AdapterOptions options_;
  AdapterTargets targets_;
  std::mutex mutex_;  // one file at a time
  uint64_t last_id_ = 0;
  std::shared_ptr<std::atomic<int>> open_ = std::make_shared<std::atomic<int>>(0);
};

// The projections that the options plan memory for.
AdapterTargets planned_adapter_targets(const ModelDescription& model,
                                       const AdapterOptions& options);

// Throws SetupError that names the flag if the options are not valid or do not combine with others.
void check_adapter_options(const ModelDescription& model, const EngineOptions& options);

// Memory of the slots, of the adapters in host memory, of reading a file and, on the CPU, of the products
// with adapters; 0 without LoRA.
uint64_t planned_adapter_bytes(const ModelDescription& model, const EngineOptions& options);

// What adapters add to the memory of steps; 0 without LoRA and on the CPU.
AdapterRowBytes planned_adapter_rows(const ModelDescription& model, const EngineOptions& options);

}  // namespace octavo
